"""The paper's classification benchmarks, and digits, which every machine with scikit-learn has.

Smaller scales learn the first rows of a large set only; what is found then is told, but not held
against the paper's number.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from boundary_forest.datasets import DataAbsentError
from boundary_forest.paper.context import Context
from boundary_forest.paper.item import DATA_ABSENT, Row, Value

BENCHMARKS = ("dna", "letter", "mnist", "pendigits", "protein", "seismic")
DIGITS = "digits"  # not in the paper
DIGITS_TRAINED = 1_000  # of its 1797 rows


@dataclass(frozen=True)
class Task:
    """Rows to learn and rows to ask, with their classes."""

    name: str
    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    whole: bool  # as the paper has it

    @property
    def title(self) -> str:
        """The name, with the number of rows where they are not all."""
        return self.name if self.whole else f"{self.name}, {len(self.X_train):,} rows"

    def first(self, n: int) -> "Task":
        """The same with n rows to learn at most, and n to ask."""
        if len(self.X_train) <= n and len(self.X_test) <= n:
            return self
        rows = (self.X_train[:n], self.y_train[:n], self.X_test[:n], self.y_test[:n])
        return Task(self.name, *rows, whole=False)

    def error(self, predicted: NDArray[Any]) -> float:
        """Per cent of the test rows that have another class than predicted."""
        return float(100 * (predicted != self.y_test).mean())


def task(context: Context, name: str, most: int | None = None) -> Task:
    """One benchmark; DataAbsentError where it is absent.

    ``most`` is how many rows are learned at most, and asked; None is all.
    """
    if name == DIGITS:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        X, n = X.astype("uint8"), DIGITS_TRAINED
        parts = X[:n], y[:n], X[n:], y[n:]
    else:
        data = context.load(name)
        parts = data.X_train, data.y_train, data.X_test, data.y_test
    found = Task(name, *parts, whole=True)
    return found if most is None else found.first(most)


def present(
    context: Context, most: int | None = None, names: Iterable[str] = (*BENCHMARKS, DIGITS)
) -> Iterator[Task]:
    """Those of the benchmarks that are at hand, one after the other."""
    for name in names:
        try:
            found = task(context, name, most)
        except DataAbsentError:
            continue
        yield found


def absent_rows(context: Context, what: str, paper: dict[str, Value], unit: str = "") -> list[Row]:
    """A row for each set of the paper that is not at hand; {} in ``what`` is its name."""
    at_hand = {found.name for found in present(context, most=1, names=paper)}
    return [
        Row(what.format(name), number, None, DATA_ABSENT, unit=unit)
        for name, number in paper.items()
        if name not in at_hand
    ]
