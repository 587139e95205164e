"""Figure 5 (b): the temperature of Watch-Lookup: `python experiments/figure5_temperature/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="figure5_temperature",
    title="The temperature",
    paper="Figure 5 (b)",
    rows=(
        Method(name="0.03", config="figure5b-temperature-0.03"),
        Method(name="0.07", config="figure5b-temperature-0.07"),
        Method(name="0.1", config="figure5b-temperature-0.1"),
        Method(name="0.3", config="figure5b-temperature-0.3"),
        Method(name="0.5", config="figure5b-temperature-0.5"),
        Method(name="1.0", config="figure5b-temperature-1.0"),
    ),
    columns=("seen",),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
