"""A clusterer for Toponymy, which names the topics of nested layers of clusters."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone

from prodsc.adapters.data_map import labels_of, representation_of
from prodsc.core.graph import nested_layers
from prodsc.errors import require
from prodsc.estimators.base import Clusterer


class ToponymyLayers:
    """Layers of clusters for `Toponymy(clusterer=...)`: the clusters of a fit, and coarser unions of them.

    Parameters
    ----------
    model : estimator
        Any method of prodsc, not fitted; its `n_clusters` is that of the finest layer.
    min_clusters : int, default=2
        The coarsest layer has at least so many clusters.

    Attributes
    ----------
    model_ : estimator
        The fitted copy of `model`.
    cluster_layers_ : list
        Toponymy's layers, the finest first.
    cluster_tree_ : dict
        From (layer, cluster) to the clusters of finer layers that are parts of it.
    """

    def __init__(self, model: Clusterer, min_clusters: int = 2):
        self.model = model
        self.min_clusters = min_clusters

    def fit(
        self,
        clusterable_vectors: np.ndarray,
        embedding_vectors: np.ndarray,
        layer_class: Any = None,
        **layer_options: Any,
    ) -> Self:
        """Cluster the embedding vectors.

        Parameters
        ----------
        clusterable_vectors : ndarray of shape (n, m)
            Not used: a map in few dimensions has lost what a deep method learns from.
        embedding_vectors : ndarray of shape (n, d)
            The rows to cluster.
        layer_class : type, optional
            Toponymy's class of a layer; for texts by default.
        **layer_options
            Further arguments of that class.

        Returns
        -------
        self
        """
        toponymy = require("toponymy.clustering", extra="toponymy", caller="ToponymyLayers")
        make_layer = toponymy.ClusterLayerText if layer_class is None else layer_class
        self.model_ = clone(self.model).fit(embedding_vectors)
        labels = labels_of(self.model_, embedding_vectors)[0]
        layers = nested_layers(representation_of(self.model_, embedding_vectors), labels, self.min_clusters)
        self.cluster_tree_ = toponymy.build_cluster_tree(layers)
        self.cluster_layers_ = [
            make_layer(
                layer,
                toponymy.centroids_from_labels(layer, embedding_vectors),
                layer_id=number,
                **layer_options,
            )
            for number, layer in enumerate(layers)
        ]
        return self

    def fit_predict(
        self,
        clusterable_vectors: np.ndarray,
        embedding_vectors: np.ndarray,
        layer_class: Any = None,
        **layer_options: Any,
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Cluster the embedding vectors, and give layers and tree.

        Parameters
        ----------
        clusterable_vectors, embedding_vectors, layer_class, **layer_options
            As for `fit`.

        Returns
        -------
        layers : list
            The finest first.
        tree : dict
        """
        self.fit(clusterable_vectors, embedding_vectors, layer_class, **layer_options)
        return self.cluster_layers_, self.cluster_tree_
