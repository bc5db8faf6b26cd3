"""Which columns of an input are what: names of rows, features, texts; and what becomes of missing values."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from prodsc.errors import InputError, ParameterError, did_you_mean
from prodsc.sources.arrays import listed
from prodsc.sources.stored import StoredRows

IMPUTE_WORDS = ("median", "drop")
Impute: TypeAlias = Literal["median", "drop"] | Mapping[str, float]
Names: TypeAlias = str | Sequence[str] | None


@dataclass(frozen=True)
class ColumnChoice:
    """What a user said about the columns of an input.

    Parameters
    ----------
    id : str or None
        The column with the name of each row.
    columns : tuple of str
        The features, by name, pattern (`emb_*`) or number; empty for all columns that are nothing else.
    drop : tuple of str
        Columns that are no features.
    text : tuple of str
        Columns of text: no features, but they name clusters and are shown with the rows.
    impute : {"median", "drop"}, mapping from column to value, or None
        What becomes of missing values; None leaves them, and a fit refuses them.
    strict : bool
        Whether an id, a text or a dropped column that the input does not have is an error.
    """

    id: str | None = None
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    impute: Impute | None = None
    strict: bool = True

    @classmethod
    def of(
        cls, id: str | None = None, columns: Names = None, drop: Names = None, text: Names = None, impute: Any = None
    ) -> Self:
        """A choice from what a user gives: one name or several."""
        known = impute is None or isinstance(impute, Mapping) or impute in IMPUTE_WORDS
        if not known:
            raise ParameterError(f"impute must be 'median', 'drop' or a value for each column, got {impute!r}.")
        return cls(id, _names(columns), _names(drop), _names(text), impute)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """What `to_json` gave."""
        return cls.of(**{name: content.get(name) for name in ("id", "columns", "drop", "text", "impute")})

    def to_json(self) -> dict[str, Any]:
        """The choice as JSON can hold it; what was not chosen is left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "strict"}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {name: value for name, value in plain.items() if value}

    def __bool__(self) -> bool:
        return bool(self.to_json())

    def over(self, usual: Self) -> Self:
        """This choice, completed by a usual one, which may name columns that are not there."""
        if not self:
            return replace(usual, strict=False)
        return replace(self, **{name: value for name, value in vars(usual).items() if not getattr(self, name)})

    def within(self, names: Collection[str], where: str) -> Self:
        """The choice with patterns replaced by the names that they match.

        Parameters
        ----------
        names : collection of str
            All columns of the input.
        where : str
            How messages call the input.

        Returns
        -------
        ColumnChoice

        Raises
        ------
        InputError
            If a column is not there, or is chosen for two things.
        """
        id = None if self.id is None else next(iter(self._found([self.id], names, where, "id")), None)
        text = self._found(self.text, names, where, "text")
        drop = self._found(self.drop, names, where, "drop")
        columns = self._found(self.columns, names, where, "columns", strict=True)
        other = {*drop, *text, *([id] if id else [])}
        if self.strict and (both := [name for name in columns if name in other and name in self.columns]):
            raise InputError(
                f"the column '{both[0]}' of {where} is chosen as a feature and as something else; name it once."
            )
        return replace(self, id=id, columns=tuple(name for name in columns if name not in other), drop=drop, text=text)

    def no_features(self, names: Collection[str]) -> set[str]:
        """Columns that are no features; the choice must be one that `within` gave."""
        others = {*self.drop, *self.text, *([self.id] if self.id else [])}
        return others | (set(names) - set(self.columns) if self.columns else set())

    def _found(
        self, wanted: Iterable[str], names: Collection[str], where: str, option: str, strict: bool = False
    ) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for word in wanted:
            matches = [word] if word in names else [name for name in names if fnmatchcase(name, word)]
            if not matches and (strict or self.strict):
                hint = did_you_mean(word, list(names)) or f"; it has {listed(names) or 'no named columns'}."
                raise InputError(f"--{option}: {where} has no column '{word}'{hint}")
            found |= dict.fromkeys(matches)
        return tuple(found)


NO_CHOICE = ColumnChoice()


def chosen_columns(X: Any, names: list[str] | None, choice: ColumnChoice, where: str) -> tuple[Any, list[str] | None]:
    """The chosen columns of a matrix that is not a table; columns without names have the names 0, 1, ...

    Parameters
    ----------
    X : array of shape (n, d)
    names : list of str or None
        Names of its columns.
    choice : ColumnChoice
        Its `columns` and `drop` are used.
    where : str
        How messages call the input.

    Returns
    -------
    X : array
    names : list of str or None
    """
    if not (choice.columns or choice.drop) or X.ndim != 2:
        return X, names
    every = names if names is not None else [str(j) for j in range(X.shape[1])]
    only = replace(choice, id=None, text=()).within(every, where)
    left = only.no_features(every)
    kept = [j for j, name in enumerate(every) if name not in left]
    if not kept:
        raise InputError(f"no column of {where} is left as a feature; drop fewer.")
    if kept == list(range(len(every))):
        return X, names
    return X[:, np.array(kept)], None if names is None else [names[j] for j in kept]


# ---- missing values --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Completed:
    """A matrix without missing values."""

    X: Any
    kept: np.ndarray | None = None  # numbers of the rows that are left; None for all
    fill_values: dict[str, float] | None = None  # what missing values of each column became


def completed(X: Any, names: Sequence[str] | None, impute: Impute | None, where: str) -> Completed:
    """Fill missing values, or drop the rows that have them.

    Parameters
    ----------
    X : array of shape (n, d)
    names : sequence of str or None
        Names of its columns; without names they are called 0, 1, ...
    impute : {"median", "drop"}, mapping from column to value, or None
        A mapping is what an earlier call gave as `fill_values`.
    where : str
        How messages call the input.

    Returns
    -------
    Completed
    """
    if impute is None:
        return Completed(X)
    if isinstance(X, StoredRows) or X.ndim != 2:
        raise InputError(
            f"impute is for tables that fit in memory; {where} has shape {X.shape}: fill its missing values first."
        )
    columns = [str(j) for j in range(X.shape[1])] if names is None else list(names)
    missing = np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, dtype=bool)
    if impute == "drop":
        kept = np.flatnonzero(~missing.any(1))
        if not len(kept):
            raise InputError(f"every row of {where} has a missing value; drop columns (--drop), or impute='median'.")
        return Completed(X, None) if len(kept) == len(X) else Completed(X[kept], kept)
    values = _medians(X, missing, columns, where) if impute == "median" else _given(impute, missing, columns, where)
    filled = np.where(missing, values.astype(X.dtype), X) if missing.any() else X
    return Completed(filled, None, dict(zip(columns, values.tolist(), strict=True)))


def _medians(X: np.ndarray, missing: np.ndarray, columns: list[str], where: str) -> np.ndarray:
    empty = np.flatnonzero(missing.all(0))
    if len(empty):
        raise InputError(f"the column '{columns[empty[0]]}' of {where} has no value at all; drop it: --drop.")
    return np.nanmedian(X.astype(np.float64), axis=0)


def _given(impute: Any, missing: np.ndarray, columns: list[str], where: str) -> np.ndarray:
    lacking = [name for j, name in enumerate(columns) if missing[:, j].any() and name not in impute]
    if lacking:
        raise InputError(f"impute has no value for the column '{lacking[0]}' of {where}, which has missing values.")
    return np.array([float(impute.get(name, np.nan)) for name in columns])


def joined_texts(columns: Sequence[Any]) -> list[str]:
    """The texts of each row, one after the other; missing ones are left out."""
    rows = zip(*(np.asarray(column, dtype=object) for column in columns), strict=True)
    return [
        " ".join(str(cell).strip() for cell in row if cell is not None and cell == cell and str(cell)) for row in rows
    ]


def _names(given: Names) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)
