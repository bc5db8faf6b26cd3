"""Deep subspace clustering with PRO-DSC: feature matrices or images in, labels and a model that labels new rows out.

X --> pre-feature --> Z, Y --> S = YY' --> C, A --> loss terms --> one loop --> Y --> graph --> labels --> report

>>> from prodsc import PRODSC
>>> model = PRODSC(n_clusters=10).fit(X)          # X: array, tensor, frame, memory map or path; never needs y
>>> model.labels_, model.predict(X_new), model.transform(X_new)
>>> model.save("run/"); PRODSC.load("run/")       # safetensors + JSON, never pickle
>>> compare(X, y, ["k-means", "turtle", "pro-dsc"], seeds=5)
>>> reproduce("faces-objects", datasets=["orl"]).against_paper()
"""

from prodsc import errors, export
from prodsc._version import __version__
from prodsc.bench.compare import compare
from prodsc.bench.tune import tune
from prodsc.core import metrics, theory
from prodsc.paper.reproduce import reproduce
from prodsc.pro_dsc.diagnosis import diagnose
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.pro_dsc.number import estimate_k
from prodsc.pro_dsc.sedsc import SEDSC
from prodsc.registry import load, make
from prodsc.sources.named import load_dataset
from prodsc.sources.readers import read

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
