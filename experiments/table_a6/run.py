"""Table A.6: how far windows are apart at test time: `python experiments/table_a6/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="table_a6",
    title="The stride at test time",
    paper="Table A.6",
    rows=(
        Method(name="stride 8", config="table-a6-stride-8", paper=(38.46, 47.38)),
        Method(name="stride 1", config="table2-watch-lookup", paper=(43.65, 53.03)),
    ),
    columns=("seen",),
    differences=(("stride 1", "stride 8"),),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
