"""Every error a user can cause. Each message gives the rule, the value that broke it, and the way out.

ProdscError
├── InputError (ValueError)     the data: shape, type, NaN, too few rows, a file that cannot be read
│   └── NotNumbersError (TypeError)  an object array with dates, lists or dicts
├── ParameterError (ValueError) a parameter of an estimator
│   └── RecipeError             a key or value in a recipe file
├── TrainingError               training diverged
│   └── CollapseError           the representation collapses and on_collapse="raise"
├── RankError                   another process of a run on several was lost
├── ModelFileError              a saved model or checkpoint that is damaged, newer, or not one
├── OutputError                 a place that cannot be written to
└── MissingExtraError           an optional library that is not installed

Interrupted (KeyboardInterrupt) is not an error: the user asked a run to stop, and its checkpoint is written.
"""

import difflib
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any


class ProdscError(Exception):
    """Base of all errors that prodsc raises on purpose; the command line prints them as one sentence.

    A message may quote a file, so that its control characters are shown and not sent to the terminal.
    """

    def __str__(self) -> str:
        return visible(super().__str__())


class InputError(ProdscError, ValueError):
    """The data cannot be clustered as it is."""


class NotNumbersError(InputError, TypeError):
    """The data hold objects that are not numbers; a TypeError too, as scikit-learn asks."""


class ParameterError(ProdscError, ValueError):
    """A parameter is outside its rule."""


class RecipeError(ParameterError):
    """A recipe names an unknown key or gives a value outside its rule."""


class TrainingError(ProdscError):
    """Training cannot go on with these settings."""


class CollapseError(TrainingError):
    """The representation collapses, or gamma allows it to."""


class RankError(ProdscError):
    """A run on several processes has lost one of them."""


class ModelFileError(ProdscError):
    """A saved model or checkpoint is damaged, newer than this version, or not one."""


class OutputError(ProdscError):
    """A result cannot be written where it was asked for."""


class MissingExtraError(ProdscError, ImportError):
    """An optional library is needed and not installed."""


EXTRA_OF = {
    "click": "cli",
    "rich": "cli",
    "matplotlib": "report",
    "jinja2": "report",
    "PIL": "report",
    "pyarrow": "tables",
    "psutil": "bench",
    "h5py": "hdf5",
    "optuna": "tune",
    "umap": "rivals",
    "evoc": "rivals",
    "graspologic_native": "rivals",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "huggingface_hub": "hub",
    "toponymy": "toponymy",
    "fiftyone": "fiftyone",
    "lance": "lance",
    "ray": "ray",
}  # which extra of prodsc installs a library


class Interrupted(KeyboardInterrupt):
    """The user asked the run to stop; its checkpoint is written."""


def require(module: str, *, extra: str, caller: str) -> Any:
    """Import an optional library where a feature needs it.

    Parameters
    ----------
    module : str
        The library, such as "h5py" or "PIL.Image".
    extra : str
        The extra of prodsc that installs it.
    caller : str
        The feature, as the subject of a sentence.

    Returns
    -------
    module
        The imported library.

    Raises
    ------
    MissingExtraError
        If the library is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{caller} needs {module}, which is not installed; install it with: pip install 'prodsc[{extra}]'"
        ) from error


class OptionalModule(ModuleType):
    """An optional library that is imported when one of its names is first used.

    Parameters
    ----------
    module : str
        The library.
    extra, caller : str
        As for `require`.
    submodules : sequence of str
        Parts of the library that it does not import by itself, such as "csv" of pyarrow.
    """

    def __init__(self, module: str, *, extra: str, caller: str, submodules: Sequence[str] = ()) -> None:
        super().__init__(module)
        self._about = (module, extra, caller, submodules)

    def __getattr__(self, name: str) -> Any:
        module, extra, caller, submodules = self._about
        library = require(module, extra=extra, caller=caller)
        for each in submodules:
            importlib.import_module(f"{module}.{each}")
        return getattr(library, name)


def visible(text: str, keep: str = "") -> str:
    r"""A text without control characters: each is written as its code, such as \x1b.

    Parameters
    ----------
    text : str
        Any text, such as the name of a file or column.
    keep : str
        Characters to leave as they are, such as a line end.

    Returns
    -------
    str
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else ascii(each)[1:-1] for each in text)


def reason_of(error: Exception) -> str:
    """The first line of a library's message, to be part of a sentence."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".:")


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A suggestion such as "; did you mean 'gamma'?", or an empty string if no known word is close.

    Parameters
    ----------
    word : str
        What was given.
    known : sequence of str
        What is known.
    """
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
