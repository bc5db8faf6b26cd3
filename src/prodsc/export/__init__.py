"""Results as files: labels joined to the input, images by cluster, a model card, figures, ONNX, the Hub.

>>> from prodsc import export
>>> export.table("labelled.csv", "features.csv", model.labels_)
>>> export.folders("by-cluster/", "photos/", model.labels_)
>>> export.card("MODEL.md", model, X)
>>> export.figure("singular-values", model, X, "spectrum.pdf")
>>> export.onnx("model.onnx", model)                          # methods that label rows by a network
>>> export.push_to_hub(model, "user/name", X); export.from_hub("user/name")

An existing target raises OutputError unless force=True. Every target is written completely or not at all.
"""

from prodsc.export.cards import card
from prodsc.export.hub import from_hub, push_to_hub
from prodsc.export.images import folders
from prodsc.export.onnx_file import onnx
from prodsc.export.pictures import figure
from prodsc.export.tables import table

__all__ = ["card", "figure", "folders", "from_hub", "onnx", "push_to_hub", "table"]
