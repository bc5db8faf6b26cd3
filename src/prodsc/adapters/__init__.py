"""Other programs that work with clusters: maps, topics, annotation, image collections.

>>> from prodsc import adapters
>>> map = adapters.data_map(model, X)                        # datamapplot.create_plot(map.coordinates, ...)
>>> adapters.embedding_atlas("map.parquet", model, X)        # embedding-atlas map.parquet --x x --y y ...
>>> adapters.label_studio("tasks.json", texts, model.labels_)
>>> adapters.ToponymyLayers(PRODSC(20))                      # Toponymy(clusterer=...)
>>> adapters.fiftyone(samples, model.labels_)

BERTopic, Cleanlab, latent-scope and scikit-learn take an estimator or its labels as they are: docs/adapters.md.
"""

from prodsc.adapters.atlas import embedding_atlas
from prodsc.adapters.data_map import DataMap, data_map
from prodsc.adapters.image_samples import fiftyone
from prodsc.adapters.tasks import label_studio, read_label_studio
from prodsc.adapters.topic_layers import ToponymyLayers

__all__ = [
    "DataMap",
    "ToponymyLayers",
    "data_map",
    "embedding_atlas",
    "fiftyone",
    "label_studio",
    "read_label_studio",
]
