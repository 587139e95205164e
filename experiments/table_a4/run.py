"""Table A.4: own layers of the head for each domain, or shared ones: `python experiments/table_a4/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="table_a4",
    title="Layers of the head for each domain",
    paper="Table A.4",
    rows=(
        Method(name="domain-specific layers", config="table-a4-domain-specific", paper=(43.58, 53.54)),
        Method(name="shared layers", config="table2-watch-lookup", paper=(43.65, 53.03)),
    ),
    columns=("seen",),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
