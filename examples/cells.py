"""Single cells: counts of genes in an .h5ad file, or an AnnData object; groups named by their genes.

python examples/cells.py [FOLDER]
"""

import sys
from pathlib import Path

import h5py
import numpy as np

from prodsc import PRODSC, open_source


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    # Three types of cells with marker genes of their own, among 60 genes that all cells express.
    rng = np.random.default_rng(0)
    types = rng.permutation(np.repeat([0, 1, 2], [200, 120, 60]))
    genes = ["CD3D", "IL7R", "CD79A", "MS4A1", "LYZ", "S100A8", *(f"GENE{i}" for i in range(54))]
    rate = np.full((3, 60), 1.0)
    for cell_type in range(3):
        rate[cell_type, 2 * cell_type : 2 * cell_type + 2] = 12
    counts = rng.poisson(rate[types] * rng.lognormal(0, 0.3, (380, 1))).astype(np.float32)
    with h5py.File(folder / "cells.h5ad", "w") as file:  # what AnnData(X).write_h5ad writes, without the library
        file["X"] = np.log1p(counts)
        for group, names in (("obs", [f"cell-{i}" for i in range(380)]), ("var", genes)):
            file.create_group(group).attrs["_index"] = "_index"
            file[group]["_index"] = np.array(names, dtype="S")

    source = open_source(folder / "cells.h5ad")
    model = PRODSC(3, scaling="centred", epochs=60).fit(source)
    report = model.report(source, title="Cells")
    print(report.names)
    print(report.save(folder / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/cells"))
