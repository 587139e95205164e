"""Table A.5: words that may name the same sign as negatives or not: `python experiments/table_a5/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="table_a5",
    title="Synonyms among the negatives",
    paper="Table A.5",
    rows=(
        Method(name="English synonyms discarded", config="table-a5-english-synonyms", paper=(43.27, 54.24)),
        Method(name="sign synonyms discarded", config="table-a5-sign-synonyms", paper=(45.03, 54.19)),
        Method(name="kept", config="table2-watch-lookup", paper=(43.65, 53.03)),
    ),
    columns=("seen",),
    differences=(("sign synonyms discarded", "kept"),),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
