"""Ours: bags and head as the paper writes or as released: `python experiments/bags/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

PAPER = "as the paper writes"
ROWS = (
    Method(name=PAPER, config="table2-watch-read-lookup"),
    Method(name="released bags", config="ours-released-bags"),
    Method(name="activation after the last layer", config="ours-released-activation"),
    Method(name="both as released", config="ours-released-bags-and-activation"),
    Method(name="background bags by word", config="ours-background-bags-by-word"),
    Method(name="anchors weighted equally", config="ours-average-over-anchors"),
    Method(name="entries counted once", config="ours-entries-once"),
)
TABLE = PaperTable(
    name="bags",
    title="Bags and head, as written or as released",
    rows=ROWS,
    columns=("unseen",),
    differences=tuple((PAPER, row.name) for row in ROWS[1:]),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
