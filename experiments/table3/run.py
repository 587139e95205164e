"""Table 3: which dictionary is read, test words unseen in training: `python experiments/table3/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="table3",
    title="Reading with the dictionary of the training words, or of all words",
    paper="Table 3",
    rows=(
        Method(name="training words", config="table3-dictionary-of-training-words", paper=(13.69, 17.79)),
        Method(name="all words", config="table3-full-dictionary", paper=(15.39, 20.87)),
    ),
    columns=("unseen",),
    differences=(("all words", "training words"),),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
