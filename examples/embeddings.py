"""A Parquet file with a column of embeddings, as Hugging Face `datasets` and vector stores write it.

python examples/embeddings.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from prodsc import PRODSC, open_source


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    rows = np.random.default_rng(0).permutation(1797)[:600]
    frame = pd.DataFrame(
        {
            "id": [f"img-{i}" for i in rows],
            "embedding": list(digits.data[rows].astype(np.float32)),
            "label": digits.target[rows],
        }
    )
    try:
        import datasets

        given = datasets.Dataset.from_pandas(frame)
        given.to_parquet(folder / "embeddings.parquet")
    except ImportError:  # pandas writes the same file
        given = frame
        frame.to_parquet(folder / "embeddings.parquet", row_group_size=100)

    model = PRODSC(10, epochs=60).fit(given)  # the object itself
    source = open_source(folder / "embeddings.parquet", id="id")  # or the file, with its ids and labels
    assert (model.predict(source) == model.labels_).all()
    report = model.report(source, images=digits.images[rows], title="Embeddings")
    print(report)
    print(report.save(folder / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/embeddings"))
