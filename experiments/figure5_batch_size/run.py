"""Figure 5 (a): the size of a minibatch of Watch-Lookup: `python experiments/figure5_batch_size/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="figure5_batch_size",
    title="The size of a minibatch",
    paper="Figure 5 (a)",
    rows=(
        Method(name="32", config="figure5a-batch-size-32"),
        Method(name="64", config="figure5a-batch-size-64"),
        Method(name="128", config="figure5a-batch-size-128"),
        Method(name="256", config="figure5a-batch-size-256"),
        Method(name="512", config="figure5a-batch-size-512"),
        Method(name="1024", config="figure5a-batch-size-1024"),
    ),
    columns=("seen",),
    differences=(("1024", "32"), ("1024", "512")),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
