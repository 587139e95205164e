"""Table 2: which trunk, which loss, test words seen and unseen in training: `python experiments/table2/run.py`."""

from __future__ import annotations

from experiments.lib.paper_tables import Method, PaperTable, run_table

TABLE = PaperTable(
    name="table2",
    title="Which trunk, and which supervisors of the head",
    paper="Table 2",
    rows=(
        Method(name="trunk of the dictionary", trunk="dictionary", paper=(2.68, 3.57, 1.21, 1.29)),
        Method(name="trunk of annotations", trunk="continuous", paper=(13.09, 17.25, 6.74, 8.94)),
        Method(name="trunk of both", paper=(19.81, 25.57, 4.81, 6.89)),
        Method(name="+ classification", config="table2-classification", paper=(36.75, 40.15, 10.28, 14.19)),
        Method(name="+ InfoNCE", config="table2-infonce", paper=(42.52, 53.54, 10.88, 14.23)),
        Method(name="+ Watch-Lookup", config="table2-watch-lookup", paper=(43.65, 53.03, 11.05, 14.62)),
        Method(name="+ Watch-Read-Lookup", config="table2-watch-read-lookup", paper=(48.11, 58.71, 13.69, 17.79)),
    ),
    differences=(("+ Watch-Read-Lookup", "+ Watch-Lookup"),),
)

if __name__ == "__main__":
    run_table(TABLE, __file__)
