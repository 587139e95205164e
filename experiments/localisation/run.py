"""Paper 4.4: is a known word found at the right time: `python experiments/localisation/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="localisation",
    title="Localisation of a known word",
    paper="Section 4.4",
    rows=(
        Method(name="Watch-Lookup", config="table2-watch-lookup"),
        Method(name="Watch-Read-Lookup", config="table2-watch-read-lookup", paper=(83.08,)),
    ),
    measures=("localisation",),
    differences=(("Watch-Read-Lookup", "Watch-Lookup"),),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
