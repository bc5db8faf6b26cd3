"""A folder of photos: features with an encoder of one's own, thumbnails on the page, one folder per cluster.

    python examples/photos.py [FOLDER]

The photos are parts of the two that scikit-learn brings along. `prodsc extract photos/ --encoder clip-vit-l-14
-o photos.npz` uses a pre-trained encoder instead of the colours.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from prodsc import PRODSC, export, open_source
from prodsc.extract import extract
from prodsc.extract.encoders import Encoder


def main(folder: Path) -> None:
    photos = folder / "photos"
    photos.mkdir(parents=True, exist_ok=True)
    for name, image in zip(("china", "flower"), load_sample_images().images, strict=True):
        for top in range(0, image.shape[0] - 63, 42):
            for left in range(0, image.shape[1] - 63, 42):
                Image.fromarray(image[top : top + 64, left : left + 64]).save(photos / f"{name}_{top}_{left}.jpg")

    def colours(image: Image.Image) -> torch.Tensor:
        """The image in 4 x 4 pixels."""
        return torch.from_numpy(np.asarray(image.convert("RGB").resize((4, 4)), dtype=np.float32).ravel())

    features = extract(photos, Encoder("colours", colours, torch.stack), folder / "photos.npz", overwrite=True)
    source = open_source(folder / "photos.npz")  # it knows the names of the photos, and where they are
    model = PRODSC(3, scaling="centred", epochs=60).fit(source)
    report = model.report(source, title="Photos")
    print(report.names)
    export.folders(folder / "by-cluster", photos, model.labels_, ids=features.ids, force=True)
    print(report.save(folder / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/photos"))
