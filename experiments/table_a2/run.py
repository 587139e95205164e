"""Table A.2: the dictionaries of Table 3 with three seeds: `python experiments/table_a2/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="table_a2",
    title="The dictionaries with three seeds",
    paper="Table A.2",
    rows=(
        Method(name="training words", config="table3-dictionary-of-training-words", paper=(14.86, 19.85)),
        Method(name="all words", config="table3-full-dictionary", paper=(15.82, 21.67)),
    ),
    columns=("unseen",),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
