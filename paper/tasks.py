"""The paper's classification benchmarks, and digits, which comes with scikit-learn.

Smaller scales use only the first rows of a large data set; their results are shown, but not judged
by the paper's number.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from paper.context import Context
from paper.datasets import DataAbsentError
from paper.item import DATA_ABSENT, Row, Value

BENCHMARKS = ("dna", "letter", "mnist", "pendigits", "protein", "seismic")
DIGITS = "digits"  # not in the paper
DIGITS_TRAINED = 1_000  # of its 1797 rows


@dataclass(frozen=True)
class Task:
    """Training and test rows with their classes."""

    name: str
    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    whole: bool  # the paper's sizes

    @property
    def title(self) -> str:
        """The name, with the number of rows if they are not all of them."""
        return self.name if self.whole else f"{self.name}, {len(self.X_train):,} rows"

    def first(self, n: int) -> "Task":
        """Return the task with at most n training rows and n test rows."""
        if len(self.X_train) <= n and len(self.X_test) <= n:
            return self
        rows = (self.X_train[:n], self.y_train[:n], self.X_test[:n], self.y_test[:n])
        return Task(self.name, *rows, whole=False)

    def error(self, predicted: NDArray[Any]) -> float:
        """Return the per cent of the test rows whose class was predicted wrongly."""
        return float(100 * (predicted != self.y_test).mean())


def task(context: Context, name: str, most: int | None = None) -> Task:
    """Load one benchmark; raise DataAbsentError if it is absent.

    ``most`` limits the number of training rows and of test rows; None is no limit.
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
    """Yield those of the benchmarks that are available, one after the other."""
    for name in names:
        try:
            found = task(context, name, most)
        except DataAbsentError:
            continue
        yield found


def absent_rows(context: Context, what: str, paper: dict[str, Value], unit: str = "") -> list[Row]:
    """Return a row for each absent data set of the paper; {} in ``what`` stands for its name."""
    at_hand = {found.name for found in present(context, most=1, names=paper)}
    return [
        Row(what.format(name), number, None, DATA_ABSENT, unit=unit)
        for name, number in paper.items()
        if name not in at_hand
    ]
