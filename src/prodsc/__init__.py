"""Deep subspace clustering with PRO-DSC: feature matrices or images in, labels and a model that labels new rows out.

X --> pre-feature --> Z, Y --> S = YY' --> C, A --> loss terms --> one loop --> Y --> graph --> labels --> report

>>> from prodsc import PRODSC
>>> model = PRODSC(n_clusters=10).fit(X)          # X: array, tensor, frame, memory map or path; never needs y
>>> model.labels_, model.predict(X_new), model.transform(X_new)
>>> model.save("run/"); PRODSC.load("run/")       # safetensors + JSON, never pickle
>>> compare(X, y, ["k-means", "turtle", "pro-dsc"], seeds=5)
>>> reproduce("faces-objects", datasets=["orl"]).against_paper()

`import prodsc` loads no other library; each public name is loaded when it is first used (PEP 562).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prodsc._version import __version__

if TYPE_CHECKING:
    from prodsc import adapters, errors, export
    from prodsc.bench.compare import compare
    from prodsc.bench.tune import tune
    from prodsc.core import metrics, theory
    from prodsc.paper.reproduce import reproduce
    from prodsc.pro_dsc.diagnosis import diagnose
    from prodsc.pro_dsc.estimator import PRODSC
    from prodsc.pro_dsc.monitoring import monitor
    from prodsc.pro_dsc.number import estimate_k
    from prodsc.pro_dsc.sedsc import SEDSC
    from prodsc.pro_dsc.updating import align
    from prodsc.registry import load, make
    from prodsc.runs.label_files import predict_to_file
    from prodsc.sources.door import load_dataset, open_source
    from prodsc.sources.readers import read

__all__ = [
    "PRODSC",
    "SEDSC",
    "__version__",
    "adapters",
    "align",
    "compare",
    "diagnose",
    "errors",
    "estimate_k",
    "export",
    "load",
    "load_dataset",
    "make",
    "metrics",
    "monitor",
    "open_source",
    "predict_to_file",
    "read",
    "reproduce",
    "theory",
    "tune",
]

_MODULES = {
    "PRODSC": "prodsc.pro_dsc.estimator",
    "SEDSC": "prodsc.pro_dsc.sedsc",
    "adapters": "prodsc",
    "align": "prodsc.pro_dsc.updating",
    "compare": "prodsc.bench.compare",
    "diagnose": "prodsc.pro_dsc.diagnosis",
    "errors": "prodsc",
    "estimate_k": "prodsc.pro_dsc.number",
    "export": "prodsc",
    "load": "prodsc.registry",
    "load_dataset": "prodsc.sources.door",
    "make": "prodsc.registry",
    "metrics": "prodsc.core",
    "monitor": "prodsc.pro_dsc.monitoring",
    "open_source": "prodsc.sources.door",
    "predict_to_file": "prodsc.runs.label_files",
    "read": "prodsc.sources.readers",
    "reproduce": "prodsc.paper.reproduce",
    "theory": "prodsc.core",
    "tune": "prodsc.bench.tune",
}  # where each public name is defined; a name of a package is a module of it


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        from prodsc.errors import did_you_mean

        raise AttributeError(f"module 'prodsc' has no attribute {name!r}{did_you_mean(name, __all__)}")
    package = _MODULES[name]
    if package in ("prodsc", "prodsc.core"):
        value: Any = import_module(f"{package}.{name}")
    else:
        value = getattr(import_module(package), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
