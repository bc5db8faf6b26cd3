"""Every error a user can cause. Each message gives the rule, the value that broke it, and the way out.

ProdscError
├── InputError (ValueError)     the data: shape, type, NaN, too few rows, a file that cannot be read
├── ParameterError (ValueError) a parameter of an estimator
│   └── RecipeError             a key or value in a recipe file
├── TrainingError               training diverged
│   └── CollapseError           the representation collapses and on_collapse="raise"
├── RankError                   another process of a run on several was lost
├── ModelFileError              a saved model or checkpoint that is damaged, newer, or not one
├── OutputError                 a place that cannot be written to
└── MissingExtraError           an optional library that is not installed
"""


class ProdscError(Exception):
    """Base of all errors that prodsc raises on purpose; the command line prints them as one sentence."""


class InputError(ProdscError, ValueError):
    """The data cannot be clustered as it is."""


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


def require(module: str, *, extra: str, caller: str):  # type: ignore[no-untyped-def]  # returns a module
    """Import an optional library at the door of the feature that needs it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{caller} needs {module}, which is not installed; install it with: pip install 'prodsc[{extra}]'"
        ) from error


def reason_of(error: Exception) -> str:
    """What a library said, cut to be part of a sentence."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".:")


def did_you_mean(word: str, known: "list[str] | tuple[str, ...]") -> str:
    """'; did you mean 'gamma'?' when something known is close to the word, else an empty string."""
    import difflib

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
