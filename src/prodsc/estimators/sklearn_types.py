"""scikit-learn's base classes, with types.

scikit-learn has no annotations, so a class that inherits from it has a base of type `Any`, and a type checker then
accepts every attribute of it. Estimators import these names instead. At run time they are scikit-learn's own classes;
a type checker sees the signatures below.
"""

from typing import TYPE_CHECKING, Any, Self

__all__ = ["BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "ClusterMixin", "TransformerMixin"]

if TYPE_CHECKING:
    import numpy as np
    from sklearn.utils import Tags

    class BaseEstimator:
        """Parameters by name, and tags."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Tags: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...

    class ClusterMixin:
        """Labels of the rows that were fitted."""

        def fit_predict(self, X: Any, y: Any = None, **options: Any) -> np.ndarray: ...
        def __sklearn_tags__(self) -> Tags: ...

    class TransformerMixin:
        """A representation of rows."""

        def fit_transform(self, X: Any, y: Any = None, **options: Any) -> np.ndarray: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...
        def __sklearn_tags__(self) -> Tags: ...

    class ClassNamePrefixFeaturesOutMixin:
        """Names of the columns of a representation."""

        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...
else:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
