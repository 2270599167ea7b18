"""What the columns of a stream mean, decided once and kept with the model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.estimators.element_type import LARGEST_INTEGER
from boundary_forest.estimators.labels.class_codes import as_given
from boundary_forest.frames.arrow_columns import as_booleans, as_texts, columns_of
from boundary_forest.frames.column_errors import Problem
from boundary_forest.frames.column_kinds import BOOLEAN, NUMBER, TEXT, as_numbers, why_no_number
from boundary_forest.frames.dialect import PLAIN, Dialect
from boundary_forest.frames.features import Feature, number, one_of, text
from boundary_forest.frames.positions import (
    NEITHER,
    Encoder,
    Positions,
    column_in,
    report_values,
)

INTEGER = "integer"
CLASSIFY, REGRESS = "classify", "regress"
SCALES = ("none", "standard", "minmax")
MISSING = ("error", "mean", "drop")
VALUES_AT_ONCE = 1 << 20  # so that what is worked on stays small beside the positions


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
    dialect : Dialect
        How text is written, numbers in it above all.
    """

    task: str
    target: str
    target_kind: str
    features: tuple[Feature, ...]
    scaling: str
    missing: str
    warmup: int
    id: str | None = None
    dialect: Dialect = PLAIN

    @cached_property
    def width(self) -> int:
        """Number of features of a position."""
        return sum(feature.width for feature in self.features)

    @cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self.features, self.dialect, replacing=self.missing == "mean")

    def summed(self, values: Iterable[float]) -> dict[str, float]:
        """Return the sums of what the features of each column have, by column."""
        each = iter(values)
        return {f.name: sum(itertools.islice(each, f.width)) for f in self.features}

    def decoded(self, position: NDArray[Any]) -> list[Any]:
        """Return the values of the columns that a position was computed from."""
        each = iter(position.tolist())
        return [f.decoded(list(itertools.islice(each, f.width))) for f in self.features]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, which ``from_json`` reads."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        features = [feature.to_json() for feature in self.features]
        return {**plain, "features": features, "dialect": self.dialect.to_json()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the columns in JSON; ValueError, TypeError or KeyError if it is not valid."""
        kinds = (TEXT, BOOLEAN, INTEGER, NUMBER)
        columns = cls(
            task=one_of(content["task"], (CLASSIFY, REGRESS)),
            target=text(content["target"]),
            target_kind=one_of(content["target_kind"], kinds),
            features=tuple(Feature.from_json(feature) for feature in content["features"]),
            scaling=one_of(content["scaling"], SCALES),
            missing=one_of(content["missing"], MISSING),
            warmup=int(number(content["warmup"])),
            id=None if content["id"] is None else text(content["id"]),
            dialect=Dialect.from_json(content["dialect"]),
        )
        names = [feature.name for feature in columns.features]
        if len(set(names)) != len(names) or columns.width < 1:
            raise ValueError("its features are empty or not unique")
        if columns.task == REGRESS and columns.target_kind != NUMBER:
            raise ValueError(
                f"its target is {columns.target_kind}, but regression requires numbers"
            )
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
            found = self._encoder.put(table.slice(begin, rows), X[here], unseen[here])
            problems |= {begin + row: problem for row, problem in found.items()}
        return Positions(X, problems, unseen)

    def labels(self, table: Any) -> Labels:
        """Return the target's values, in the type in which the forest learns them."""
        values = column_in(columns_of(table, [self.target]), self.target, len(table))
        problems: dict[int, Problem] = {}
        report = partial(report_values, problems, self.target, values)
        if self.target_kind == TEXT:
            return _text_labels(as_texts(values), problems)
        if self.target_kind == BOOLEAN:
            truths, misfit = as_booleans(values)
            report(misfit, NEITHER, misfit=True)
            known = ~pc.is_null(truths).to_numpy(zero_copy_only=False).astype(bool)
            true = pc.equal(pc.fill_null(truths, ""), "true")
            return Labels(true.to_numpy(zero_copy_only=False).astype(bool), known, problems)
        numbers, misfit = as_numbers(values, self.dialect)
        report(misfit, partial(why_no_number, dialect=self.dialect), misfit=True)
        report(np.isinf(numbers), "is not finite")
        if self.target_kind == INTEGER:
            with np.errstate(invalid="ignore"):
                other = ~np.isnan(numbers) & (
                    (numbers != np.floor(numbers)) | (np.abs(numbers) > LARGEST_INTEGER)
                )
            report(other, "is not an integer, but the earlier values are")
        known = np.isfinite(numbers)
        known[list(problems)] = False
        numbers = np.where(known, numbers, 0.0)
        if self.target_kind == INTEGER:
            return Labels(numbers.astype(np.int64), known, problems)
        if self.task == CLASSIFY:
            return Labels(np.array([repr(x) for x in numbers.tolist()] or [""]), known, problems)
        return Labels(numbers, known, problems)


def _text_labels(texts: Any, problems: dict[int, Problem]) -> Labels:
    coded = texts.dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    known = ~np.isnan(codes) if codes.dtype.kind == "f" else np.ones(len(codes), dtype=bool)
    classes = np.asarray(as_given(coded.dictionary.to_pylist() or [""]))
    return Labels(classes[np.where(known, codes, 0).astype(np.int64)], known, problems)
