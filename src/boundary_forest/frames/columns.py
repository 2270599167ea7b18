"""What the columns of a stream mean, decided once and kept with the model.

Numbers are shifted and scaled; text and booleans are one-hot encoded. A category that was not among
the first rows has no feature of its own: all of the column's are 0. Each row that cannot be used is
reported with the column and what is wrong there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.estimators.labels.class_table import as_given
from boundary_forest.frames.values import (
    BOOLEAN,
    NUMBER,
    TEXT,
    as_booleans,
    as_numbers,
    as_plain,
    as_texts,
    columns_of,
    numbers_in,
)

INTEGER = "integer"
CLASSIFY, REGRESS = "classify", "regress"
SCALES = ("none", "standard", "minmax")
MISSING = ("error", "mean", "drop")
VALUES_AT_ONCE = 1 << 20  # so that what is worked on stays small beside the positions
LARGEST = 1e18  # its square is a float32
NO_NUMBER = "is not a number, unlike the values before it"
NEITHER = "is neither true nor false, unlike the values before it"


@dataclass(frozen=True)
class Feature:
    """A column that positions are computed from.

    Parameters
    ----------
    name : str
        The column's name.
    kind : str
        "number", "text" or "boolean".
    mean : tuple of float
        What replaces a missing value: the mean, or the share of each category.
    shift, scale : float
        A number x becomes (x - shift) / scale.
    categories : tuple of str
        The values of a column of text or booleans, sorted.
    """

    name: str
    kind: str
    mean: tuple[float, ...]
    shift: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Number of features that it is encoded as."""
        return 1 if self.kind == NUMBER else len(self.categories)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, which ``from_json`` reads."""
        return {**self.__dict__, "mean": list(self.mean), "categories": list(self.categories)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the feature in JSON; ValueError, TypeError or KeyError if it is not one."""
        feature = cls(
            name=_text(content["name"]),
            kind=_one_of(content["kind"], (NUMBER, TEXT, BOOLEAN)),
            mean=tuple(_number(value) for value in content["mean"]),
            shift=_number(content["shift"]),
            scale=_number(content["scale"]),
            categories=tuple(_text(value) for value in content["categories"]),
        )
        if len(feature.mean) != feature.width or feature.scale == 0:
            raise ValueError(f"feature {feature.name!r} is inconsistent")
        if len(set(feature.categories)) != len(feature.categories):
            raise ValueError(f"feature {feature.name!r} has a category twice")
        return feature


@dataclass(frozen=True)
class Problem:
    """Why a row cannot be used."""

    column: str
    what: str
    missing: bool = False

    def __str__(self) -> str:
        return f"column {self.column!r} {self.what}"


@dataclass(frozen=True)
class Positions:
    """Rows as the forest takes them; those in ``problems`` must not be used."""

    X: NDArray[Any]
    problems: dict[int, Problem]
    unseen: NDArray[np.int64]  # per row: in how many columns it has an unknown category


@dataclass(frozen=True)
class _Odd:
    """The rows in which a column has no value, and those whose value cannot be used, and why."""

    missing: NDArray[np.bool_]
    refused: tuple[tuple[NDArray[np.bool_], str], ...] = ()


@dataclass(frozen=True)
class Labels:
    """The target's values; where ``known`` is false, ``y`` is meaningless."""

    y: NDArray[Any]
    known: NDArray[np.bool_]
    problems: dict[int, Problem]


@dataclass(frozen=True)
class Columns:
    """What the columns of raw rows mean.

    Parameters
    ----------
    task : str
        "classify" or "regress".
    target : str
        The column to predict.
    target_kind : str
        "text", "boolean", "integer" or "number".
    features : tuple of Feature
        The columns to predict from, in the order of their numbers in a position.
    scaling : str
        "none", "standard" (mean 0, standard deviation 1) or "minmax" (to [0, 1]).
    missing : str
        What a missing value does: "error" makes the row bad, "mean" replaces the value by the
        mean, "drop" leaves the row out.
    warmup : int
        Number of rows that this was decided from.
    id : str or None
        The column that identifies rows.
    """

    task: str
    target: str
    target_kind: str
    features: tuple[Feature, ...]
    scaling: str
    missing: str
    warmup: int
    id: str | None = None

    @property
    def width(self) -> int:
        """Number of features of a position."""
        return sum(feature.width for feature in self.features)

    def summed(self, values: Iterable[float]) -> dict[str, float]:
        """Return the sums of what the features of each column have, by column."""
        each = iter(values)
        return {f.name: sum(itertools.islice(each, f.width)) for f in self.features}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, which ``from_json`` reads."""
        return {**self.__dict__, "features": [feature.to_json() for feature in self.features]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the columns in JSON; ValueError, TypeError or KeyError if it is not valid."""
        kinds = (TEXT, BOOLEAN, INTEGER, NUMBER)
        columns = cls(
            task=_one_of(content["task"], (CLASSIFY, REGRESS)),
            target=_text(content["target"]),
            target_kind=_one_of(content["target_kind"], kinds),
            features=tuple(Feature.from_json(feature) for feature in content["features"]),
            scaling=_one_of(content["scaling"], SCALES),
            missing=_one_of(content["missing"], MISSING),
            warmup=int(_number(content["warmup"])),
            id=None if content["id"] is None else _text(content["id"]),
        )
        names = [feature.name for feature in columns.features]
        if len(set(names)) != len(names) or columns.width < 1:
            raise ValueError("its features are not distinct, or none")
        if columns.task == REGRESS and columns.target_kind != NUMBER:
            raise ValueError(f"its target is {columns.target_kind}, and regression needs numbers")
        return columns

    # Rows

    def positions(self, table: Any) -> Positions:
        """Return the rows of a table as positions."""
        n = len(table)
        X = np.zeros((n, self.width), np.float64 if self.scaling == "none" else np.float32)
        problems: dict[int, Problem] = {}
        unseen = np.zeros(n, dtype=np.int64)
        rows = max(1, VALUES_AT_ONCE // max(1, len(self.features)))
        for begin in range(0, n, rows):
            here = slice(begin, begin + rows)
            found = self._put(table.slice(begin, rows), X[here], unseen[here])
            problems |= {begin + row: problem for row, problem in found.items()}
        return Positions(X, problems, unseen)

    def _put(self, table: Any, X: NDArray[Any], unseen: NDArray[np.int64]) -> dict[int, Problem]:
        """Write a few rows as positions into ``X``; return what is wrong with some."""
        problems: dict[int, Problem] = {}
        columns = columns_of(table, [feature.name for feature in self.features])
        values = [_column(columns, feature.name, len(X)) for feature in self.features]
        numbers = self._put_numbers(values, X)
        start = 0
        for i, feature in enumerate(self.features):
            into = X[:, start : start + feature.width]
            start += feature.width
            if feature.kind == NUMBER:
                odd = numbers.get(i)
            else:
                odd = _put_categories(feature, values[i], into, unseen)
            if odd is None:
                continue
            for where, what in odd.refused:
                _report_values(problems, feature.name, values[i], where, what)
            if odd.missing.any():
                if self.missing == "mean":
                    middle = np.array(feature.mean)
                    into[odd.missing] = (middle - feature.shift) / feature.scale
                else:
                    _report(problems, odd.missing, partial(_missing_in, feature))
        return problems

    def _put_numbers(self, values: list[Any], X: NDArray[Any]) -> dict[int, _Odd]:
        """Write all columns of numbers at once; return what is odd about some of them."""
        which = [i for i, feature in enumerate(self.features) if feature.kind == NUMBER]
        if not which:
            return {}
        widths = [feature.width for feature in self.features]
        places = (np.cumsum(widths) - widths)[which]
        shift = np.array([[self.features[i].shift] for i in which])
        scale = np.array([[self.features[i].scale] for i in which])
        numbers, misfits = numbers_in([values[i] for i in which])
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = numbers - shift
            scaled /= scale
            fine = np.abs(scaled) <= LARGEST  # not where it is NaN
        odd = {}
        for j in np.flatnonzero(~fine.all(axis=1)).tolist():
            nothing, misfit = np.isnan(numbers[j]), misfits.get(j, np.zeros(len(X), dtype=bool))
            refused = (
                (misfit, NO_NUMBER),
                (~fine[j] & ~nothing, "is too large compared with the values before it"),
            )
            odd[which[j]] = _Odd(nothing & ~misfit, refused)
            scaled[j, ~fine[j]] = 0.0
        side_by_side = places[-1] - places[0] + 1 == len(places)  # then it is far quicker
        X[:, slice(places[0], places[-1] + 1) if side_by_side else places] = scaled.T
        return odd

    def labels(self, table: Any) -> Labels:
        """Return the target's values, in the type in which the forest learns them."""
        values = _column(columns_of(table, [self.target]), self.target, len(table))
        problems: dict[int, Problem] = {}
        report = partial(_report_values, problems, self.target, values)
        if self.target_kind == TEXT:
            return _text_labels(as_texts(values), problems)
        if self.target_kind == BOOLEAN:
            truths, misfit = as_booleans(values)
            report(misfit, NEITHER)
            known = ~pc.is_null(truths).to_numpy(zero_copy_only=False).astype(bool)
            true = pc.equal(pc.fill_null(truths, ""), "true")
            return Labels(true.to_numpy(zero_copy_only=False).astype(bool), known, problems)
        numbers, misfit = as_numbers(values)
        report(misfit, NO_NUMBER)
        report(np.isinf(numbers), "is not finite")
        if self.target_kind == INTEGER:
            with np.errstate(invalid="ignore"):
                other = ~np.isnan(numbers) & ((numbers != np.floor(numbers)) | _beyond(numbers))
            report(other, "is not a whole number, unlike the values before it")
        known = np.isfinite(numbers)
        known[list(problems)] = False
        numbers = np.where(known, numbers, 0.0)
        if self.target_kind == INTEGER:
            return Labels(numbers.astype(np.int64), known, problems)
        if self.task == CLASSIFY:
            return Labels(np.array([repr(x) for x in numbers.tolist()] or [""]), known, problems)
        return Labels(numbers, known, problems)


def _missing_in(feature: Feature, _: int) -> Problem:
    return Problem(feature.name, "is missing", missing=True)


def _put_categories(
    feature: Feature, values: Any, into: NDArray[Any], unseen: NDArray[np.int64]
) -> _Odd:
    if feature.kind == BOOLEAN:
        texts, misfit = as_booleans(values)
    else:
        texts, misfit = as_texts(values), None
    codes = pc.index_in(texts, pa.array(feature.categories, pa.string()))
    known: NDArray[np.bool_] = codes.is_valid().to_numpy(zero_copy_only=False).astype(bool)
    rows = np.flatnonzero(known)
    into[rows, codes.drop_null().to_numpy()] = 1
    missing: NDArray[np.bool_] = texts.is_null().to_numpy(zero_copy_only=False).astype(bool)
    if misfit is not None:
        missing &= ~misfit
    unseen += ~known & ~missing
    return _Odd(missing, () if misfit is None else ((misfit, NEITHER),))


def _text_labels(texts: Any, problems: dict[int, Problem]) -> Labels:
    coded = texts.dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    known = ~np.isnan(codes) if codes.dtype.kind == "f" else np.ones(len(codes), dtype=bool)
    classes = np.asarray(as_given(coded.dictionary.to_pylist() or [""]))
    return Labels(classes[np.where(known, codes, 0).astype(np.int64)], known, problems)


def _column(columns: dict[str, Any], name: str, n: int) -> Any:
    return as_plain(columns[name], name) if name in columns else pa.nulls(n)


def _report(
    problems: dict[int, Problem], where: NDArray[np.bool_], problem: Callable[[int], Problem]
) -> None:
    for i in np.flatnonzero(where).tolist():
        problems.setdefault(i, problem(i))


def _report_values(
    problems: dict[int, Problem],
    name: str,
    values: Any,
    where: NDArray[np.bool_] | None,
    what: str,
) -> None:
    if where is not None:
        _report(problems, where, lambda i: Problem(name, f"{_shown(values, i)} {what}"))


def _shown(values: Any, i: int) -> str:
    text = repr(values[i].as_py())
    return text if len(text) <= 40 else text[:37] + "..."


def _beyond(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.abs(numbers) > 2**53)


# Checks of what a file contains


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r} is not text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]!r} is not a finite number")
    return float(value)


def _one_of(value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{str(value)[:40]!r} is none of {', '.join(allowed)}")
    return str(value)
