"""A column that positions are computed from: what it means, as it was decided."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from boundary_forest.frames.column_kinds import BOOLEAN, LIST, NUMBER, TEXT, TIME


@dataclass(frozen=True)
class Feature:
    """A column that positions are computed from.

    Parameters
    ----------
    name : str
        The column's name.
    kind : str
        "number", "time", "list", "text" or "boolean".
    mean : tuple of float
        What replaces a missing value: the mean, of each position of a list, or the share of each
        category.
    shift, scale : float
        A number x becomes (x - shift) / scale; a time is a number of seconds.
    categories : tuple of str
        The values of a column of text or booleans that are features of their own, sorted.
    other : bool
        Whether all other values are one more category.
    """

    name: str
    kind: str
    mean: tuple[float, ...]
    shift: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    other: bool = False

    @property
    def width(self) -> int:
        """Number of features that it is encoded as."""
        if self.kind in (TEXT, BOOLEAN):
            return len(self.categories) + self.other
        return len(self.mean) if self.kind == LIST else 1

    @property
    def is_numeric(self) -> bool:
        """Whether it is numbers that are shifted and scaled."""
        return self.kind in (NUMBER, TIME, LIST)

    def decoded(self, numbers: list[float]) -> Any:
        """Return the value that these numbers encode; None for an unknown or missing category."""
        if not self.is_numeric:
            if 1 not in numbers:
                return None
            code = numbers.index(1)
            return self.categories[code] if code < len(self.categories) else "other"
        values = numbers
        if (self.shift, self.scale) != (0, 1):  # to digits that float32 has not rounded
            digits = 5 - math.floor(math.log10(abs(self.scale)))
            values = [round(x * self.scale + self.shift, digits) for x in numbers]
        if self.kind == TIME:
            try:
                return str(datetime.fromtimestamp(values[0], UTC).replace(tzinfo=None))
            except (OSError, OverflowError, ValueError):  # a year that Python does not have
                return values[0]
        return values if self.kind == LIST else values[0]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, which ``from_json`` reads."""
        return {**self.__dict__, "mean": list(self.mean), "categories": list(self.categories)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the feature in JSON; ValueError, TypeError or KeyError if it is not one."""
        feature = cls(
            name=text(content["name"]),
            kind=one_of(content["kind"], (NUMBER, TEXT, BOOLEAN, TIME, LIST)),
            mean=tuple(number(value) for value in content["mean"]),
            shift=number(content["shift"]),
            scale=number(content["scale"]),
            categories=tuple(text(value) for value in content["categories"]),
            other=truth(content["other"]),
        )
        if len(feature.mean) != feature.width or feature.scale == 0:
            raise ValueError(f"feature {feature.name!r} is inconsistent")
        if len(set(feature.categories)) != len(feature.categories):
            raise ValueError(f"feature {feature.name!r} has a category twice")
        return feature


# Checks of what a file contains


def text(value: Any) -> str:
    """Return a value that is text; ValueError if it is not."""
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r} is not text")
    return value


def number(value: Any) -> float:
    """Return a value that is a finite number; ValueError if it is not."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]!r} is not a finite number")
    return float(value)


def one_of(value: Any, allowed: tuple[str, ...]) -> str:
    """Return a value that is one of those allowed; ValueError if it is not."""
    if value not in allowed:
        raise ValueError(f"{str(value)[:40]!r} is not one of {', '.join(allowed)}")
    return str(value)


def truth(value: Any) -> bool:
    """Return a value that is true or false; ValueError if it is not."""
    if not isinstance(value, bool):
        raise ValueError(f"{str(value)[:40]!r} is neither true nor false")
    return value
