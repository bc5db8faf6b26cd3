"""Deep subspace clustering with PRO-DSC: feature matrices or images in, labels and a model that labels new rows out.

X --> pre-feature --> Z, Y --> S = YY' --> C, A --> loss terms --> one loop --> Y --> graph --> labels --> report

>>> from prodsc import PRODSC
>>> model = PRODSC(n_clusters=10).fit(X)          # X: array, tensor, frame, memory map or path; never needs y
>>> model.labels_, model.predict(X_new), model.transform(X_new)
>>> model.save("run/"); PRODSC.load("run/")       # safetensors + JSON, never pickle
>>> compare(X, y, ["k-means", "turtle", "pro-dsc"], seeds=5)
>>> reproduce("faces-objects", datasets=["orl"]).against_paper()
"""

from prodsc import errors, export, metrics, theory
from prodsc._version import __version__
from prodsc.data.readers import read
from prodsc.data.sets import load_dataset
from prodsc.experiments.compare import compare
from prodsc.experiments.reproduce import reproduce
from prodsc.experiments.tune import tune
from prodsc.methods import PRODSC, SEDSC, diagnose, load
from prodsc.methods.number import estimate_k
from prodsc.methods.registry import make

__all__ = [
    "PRODSC",
    "SEDSC",
    "__version__",
    "compare",
    "diagnose",
    "errors",
    "estimate_k",
    "export",
    "load",
    "load_dataset",
    "make",
    "metrics",
    "read",
    "reproduce",
    "theory",
    "tune",
]
