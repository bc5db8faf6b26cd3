"""scikit-learn's base classes, with types.

scikit-learn has no annotations, so a class that inherits from it has a base of type `Any`, and a type checker then
accepts every attribute of it. Estimators import these names instead. At run time they are scikit-learn's own classes;
a type checker sees the signatures below. Callbacks came with scikit-learn 1.9; before, an estimator has none to call.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

__all__ = [
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "ClusterMixin",
    "TransformerMixin",
    "with_callbacks",
]

Method = TypeVar("Method", bound=Callable[..., Any])

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

    class CallbackSupportMixin:
        """Callbacks of scikit-learn."""

        def set_callbacks(self, *callbacks: Any) -> Self: ...
        def _init_callback_context(self, task_name: str = "fit", *, max_subtasks: int | None = 0) -> Any: ...

    def with_callbacks(method: Method) -> Method: ...
else:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """Before scikit-learn 1.9."""

        def with_callbacks(method: Method) -> Method:
            """Before scikit-learn 1.9."""
            return method
