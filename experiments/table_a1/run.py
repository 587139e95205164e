"""Table A.1: the heads of Table 2 with three seeds: `python experiments/table_a1/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="table_a1",
    title="The heads with three seeds",
    paper="Table A.1",
    rows=(
        Method(name="classification", config="table2-classification", paper=(37.13, 39.68, 10.33, 13.33)),
        Method(name="InfoNCE", config="table2-infonce", paper=(43.59, 52.59, 11.4, 14.76)),
        Method(name="Watch-Lookup", config="table2-watch-lookup", paper=(44.72, 55.51, 11.02, 15.03)),
        Method(name="Watch-Read-Lookup", config="table2-watch-read-lookup", paper=(47.93, 60.76, 14.86, 19.85)),
    ),
    differences=(("Watch-Lookup", "InfoNCE"), ("InfoNCE", "classification")),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
