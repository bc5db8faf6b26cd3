"""Faces, or any small images: rows of pixels, thumbnails on the map.

    python examples/faces.py [FOLDER]

Uses the ORL faces if they are here (`prodsc data show orl`), else handwritten digits.
"""

import sys
from pathlib import Path

from sklearn.datasets import load_digits

from prodsc import PRODSC, load_dataset
from prodsc.errors import InputError


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        faces = load_dataset("orl")
        some = faces.y < 10  # ten people, ten photos of each
        images, y = faces.X[some], faces.y[some]
    except InputError as error:
        print(error)
        digits = load_digits()
        images, y = digits.images[:500], digits.target[:500]

    X = images.reshape(len(images), -1)
    model = PRODSC(10, scaling="centred", epochs=60).fit(X)
    report = model.report(X, images=images, y=y, title="Faces")
    print(report)
    print(report.save(folder / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/faces"))
