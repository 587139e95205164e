"""Table A.3: minibatches of one passage per word or of any, and their size: `python experiments/table_a3/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="table_a3",
    title="Balanced minibatches, and their size",
    paper="Table A.3",
    rows=(
        Method(name="not balanced, 512", config="table-a3-not-balanced-512", paper=(41.65, 54.73)),
        Method(name="not balanced, 1024", config="table-a3-not-balanced-1024", paper=(42.07, 54.25)),
        Method(name="not balanced, 2048", config="table-a3-not-balanced-2048", paper=(43.14, 54.28)),
        Method(name="balanced, 512", config="table-a3-balanced-512", paper=(43.65, 53.03)),
        Method(name="balanced, 1024", config="table-a3-balanced-1024", paper=(43.55, 54.2)),
    ),
    columns=("seen",),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
