"""Turn raw rows into positions.

Numbers are shifted and scaled; times are numbers of seconds, and a list is a number for each of its
positions. Text and booleans are one-hot encoded: a category that was not among the first rows has
no feature of its own, and all of the column's are 0 unless it has one for all others. Each row that
cannot be used is reported with the column and what is wrong there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.frames.arrow_columns import (
    as_booleans,
    as_plain,
    as_texts,
    columns_of,
    mask_of,
    plain_columns,
)
from boundary_forest.frames.column_errors import Problem
from boundary_forest.frames.column_kinds import (
    BOOLEAN,
    LIST,
    NO_TIME,
    NUMBER,
    TIME,
    as_lists,
    as_times,
    no_list,
    numbers_in,
    why_no_number,
)
from boundary_forest.frames.dialect import Dialect
from boundary_forest.frames.features import Feature

LARGEST = 1e18  # its square is a float32
TOO_LARGE = "is too large compared with the earlier values"
NEITHER = "is neither true nor false, but the earlier values are"


@dataclass(frozen=True)
class Positions:
    """Rows as the forest takes them; those in ``problems`` must not be used."""

    X: NDArray[Any]
    problems: dict[int, Problem]
    unseen: NDArray[np.int64]  # per row: in how many columns it has an unknown category


@dataclass(frozen=True)
class _Odd:
    """The rows in which a column has no value, whose value is unfit, or is too large."""

    missing: NDArray[np.bool_]
    misfit: NDArray[np.bool_] | None = None
    why: str | Callable[[Any], str] = NEITHER
    too_large: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Encoder:
    """What writes the rows of a table as positions.

    Parameters
    ----------
    features : tuple of Feature
        The columns, in the order of their numbers in a position.
    dialect : Dialect
        How numbers are written in text.
    replacing : bool
        Whether a missing value is replaced by the mean; else it is a problem.
    """

    features: tuple[Feature, ...]
    dialect: Dialect
    replacing: bool

    def put(self, table: Any, X: NDArray[Any], unseen: NDArray[np.int64]) -> dict[int, Problem]:
        """Write a few rows into ``X``; return what is wrong with some."""
        problems: dict[int, Problem] = {}
        columns = plain_columns(columns_of(table, self._names))
        nothing = pa.nulls(len(X))
        values = [columns.get(name, nothing) for name in self._names]
        odd: dict[int, _Odd | None] = {**self._put_numbers(values, X)}
        for i in sorted({*odd, *self._others}):  # there may be 100,000 columns of numbers
            feature, start = self.features[i], self._starts[i]
            into = X[:, start : start + feature.width]
            if feature.kind in (TIME, LIST):
                odd[i] = _put_times_or_lists(feature, values[i], into)
            elif feature.kind != NUMBER:
                odd[i] = _put_categories(feature, values[i], into, unseen)
            found = odd[i]
            if found is not None:
                self._replace_or_report(problems, feature, values[i], into, found)
        return problems

    @cached_property
    def _names(self) -> list[str]:
        return [feature.name for feature in self.features]

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where each column begins in a position."""
        widths = np.array([feature.width for feature in self.features], dtype=np.int64)
        return np.cumsum(widths) - widths

    @cached_property
    def _numbers(self) -> list[int]:
        return [i for i, feature in enumerate(self.features) if feature.kind == NUMBER]

    @cached_property
    def _others(self) -> list[int]:
        return [i for i, feature in enumerate(self.features) if feature.kind != NUMBER]

    @cached_property
    def _scales(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The shift and the scale of each column of numbers, as columns of an array."""
        both = [(self.features[i].shift, self.features[i].scale) for i in self._numbers]
        shift, scale = np.array(both).T[:, :, np.newaxis]
        return shift, scale

    def _replace_or_report(
        self,
        problems: dict[int, Problem],
        feature: Feature,
        values: Any,
        into: NDArray[Any],
        odd: _Odd,
    ) -> None:
        """Report what is odd about a column, or replace what is missing."""
        report_values(problems, feature.name, values, odd.misfit, odd.why, misfit=True)
        report_values(problems, feature.name, values, odd.too_large, TOO_LARGE)
        if not odd.missing.any():
            return
        if self.replacing:
            into[odd.missing] = (np.array(feature.mean) - feature.shift) / feature.scale
        else:
            _report(problems, odd.missing, partial(_missing_in, feature, values))

    def _put_numbers(self, values: list[Any], X: NDArray[Any]) -> dict[int, _Odd]:
        """Write all columns of numbers at once; return what is odd about some of them."""
        which = self._numbers
        if not which:
            return {}
        places = self._starts[which]
        shift, scale = self._scales
        numbers, misfits = numbers_in([values[i] for i in which], self.dialect)
        scaled, fine = _scaled(numbers, shift, scale)
        why = partial(why_no_number, dialect=self.dialect)
        odd = {
            which[j]: _odd(numbers[j], fine[j], misfits.get(j), why)
            for j in np.flatnonzero(~fine.all(axis=1)).tolist()
        }
        side_by_side = places[-1] - places[0] + 1 == len(places)  # then it is far quicker
        X[:, slice(places[0], places[-1] + 1) if side_by_side else places] = scaled.T
        return odd


def column_in(columns: dict[str, Any], name: str, n: int) -> Any:
    """Return a column as plain values; nulls if it is not there."""
    return as_plain(columns[name], name) if name in columns else pa.nulls(n)


def report_values(
    problems: dict[int, Problem],
    name: str,
    values: Any,
    where: NDArray[np.bool_] | None,
    why: str | Callable[[Any], str],
    *,
    misfit: bool = False,
) -> None:
    """Report that values cannot be used, and why, unless their rows have a problem already."""

    def problem(i: int) -> Problem:
        value = values[i].as_py()
        what = why if isinstance(why, str) else why(value)
        return Problem(name, f"has {_shown(value)}, which {what}", misfit=misfit)

    if where is not None:
        _report(problems, where, problem)


def _scaled(
    numbers: NDArray[np.float64], shift: Any, scale: Any
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return scaled numbers, 0 where they cannot be used, and where they can."""
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = numbers - shift
        scaled /= scale
        fine = np.abs(scaled) <= LARGEST  # not where it is NaN
    if not fine.all():
        scaled[~fine] = 0.0
    return scaled, fine


def _odd(
    numbers: NDArray[np.float64],
    fine: NDArray[np.bool_],
    misfit: NDArray[np.bool_] | None,
    why: str | Callable[[Any], str],
) -> _Odd:
    """Return what is odd about numbers, some of which cannot be used."""
    missing = np.isnan(numbers)
    too_large = ~fine & ~missing
    return _Odd(missing if misfit is None else missing & ~misfit, misfit, why, too_large)


def _put_times_or_lists(feature: Feature, values: Any, into: NDArray[Any]) -> _Odd | None:
    why: str = NO_TIME
    if feature.kind == TIME:
        numbers, misfit = as_times(values)
        numbers = numbers[:, np.newaxis]
    else:
        numbers, misfit = as_lists(values, feature.width)
        why = no_list(feature.width)
    scaled, fine = _scaled(numbers, feature.shift, feature.scale)
    into[:] = scaled
    usable: NDArray[np.bool_] = np.all(fine, axis=1)
    # A list lacks a value if one of its numbers is missing.
    return None if usable.all() else _odd(numbers.sum(axis=1), usable, misfit, why)


def _put_categories(
    feature: Feature, values: Any, into: NDArray[Any], unseen: NDArray[np.int64]
) -> _Odd:
    if feature.kind == BOOLEAN:
        texts, misfit = as_booleans(values)
    else:
        texts, misfit = as_texts(values), None
    codes = pc.index_in(texts, pa.array(feature.categories, pa.string()))
    known = mask_of(codes.is_valid())
    into[np.flatnonzero(known), codes.drop_null().to_numpy()] = 1
    missing = mask_of(texts.is_null())
    if misfit is not None:
        missing &= ~misfit
    if feature.other:
        into[~known & ~missing, -1] = 1
    else:
        unseen += ~known & ~missing
    return _Odd(missing, misfit)


def _missing_in(feature: Feature, values: Any, i: int) -> Problem:
    value = values[i].as_py()
    read = f" ({value!r} counts as missing)" if isinstance(value, str) else ""
    return Problem(feature.name, f"has no value{read}", missing=True)


def _report(
    problems: dict[int, Problem], where: NDArray[np.bool_], problem: Callable[[int], Problem]
) -> None:
    for i in np.flatnonzero(where).tolist():
        if i not in problems:
            problems[i] = problem(i)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
