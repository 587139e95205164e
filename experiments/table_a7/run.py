"""Table A.7: how sure the labels are that are learned from: `python experiments/table_a7/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="table_a7",
    title="The confidence of the labels",
    paper="Table A.7",
    rows=(
        Method(name="at least 0.9", config="table-a7-confidence-0.9", paper=(37.55, 47.54)),
        Method(name="at least 0.8", config="table-a7-confidence-0.8", paper=(39.49, 48.84)),
        Method(name="at least 0.7", config="table-a7-confidence-0.7", paper=(41.87, 51.15)),
        Method(name="at least 0.6", config="table-a7-confidence-0.6", paper=(42.44, 52.42)),
        Method(name="at least 0.5", config="table-a7-confidence-0.5", paper=(43.65, 53.03)),
    ),
    columns=("seen",),
    differences=(("at least 0.5", "at least 0.9"),),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
