"""A customer table with ids, a text column and gaps: names of groups, a labelled CSV and a page.

python examples/customers.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from prodsc import PRODSC, export, open_source


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    # Three kinds of customers; some values are missing, as in any table.
    rng = np.random.default_rng(0)
    kind = rng.permutation(np.repeat([0, 1, 2], [220, 150, 80]))
    means = np.array([[34, 28, 2, 40], [52, 61, 9, 120], [45, 95, 30, 640]])
    table = pd.DataFrame(
        means[kind] * rng.lognormal(0, 0.25, (450, 4)), columns=["age", "income", "orders", "spent"]
    ).round(1)
    remarks = ["asked for a discount code", "wants faster delivery", "orders for a whole office, needs an invoice"]
    table.insert(0, "customer", [f"C{i:04d}" for i in range(450)])
    table["remark"] = np.array(remarks)[kind]
    table.loc[rng.choice(450, 40, replace=False), "income"] = np.nan
    table.to_csv(folder / "customers.csv", index=False)

    source = open_source(folder / "customers.csv", id="customer", text="remark", impute="median")
    model = PRODSC(3, scaling="standard", epochs=60).fit(source)
    print(model.name_clusters(source.X, columns=source.columns))  # named by columns; report() names them by the remarks
    report = model.report(source, title="Customers")
    export.table(folder / "labelled.csv", folder / "customers.csv", model.labels_, names=report.names, force=True)
    print(
        pd.read_csv(folder / "labelled.csv")
        .groupby("cluster_name")[["age", "income", "orders", "spent"]]
        .mean()
        .round(0)
    )
    print(report.save(folder / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/customers"))
