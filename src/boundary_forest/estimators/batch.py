"""What a learning call was given, once it was checked: what is learned, and what is recorded."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from numpy.typing import NDArray


@dataclass(frozen=True)
class LearningBatch:
    """Examples that were found fit to be learned.

    Parameters
    ----------
    X : ndarray, CSR matrix or RawRows of shape (n_rows, n_features)
        Positions, in the forest's element type unless they are sparse; or rows of columns of any
        kind, which become positions when they are learned.
    y : ndarray or None
        Labels as they were given, but checked; None in retrieval.
    ids : ndarray of shape (n_rows,) or None
        int64, or objects that are str.
    classes : ndarray or None
        Classes that the call declared.
    feature_names : ndarray of shape (n_features,) or None
        Of the first batch, if it had some, or of one with further columns.
    first : int
        How many examples had been seen before.
    replaces : bool
        Whether they take the places of those that have their ids.
    """

    X: Any
    y: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    feature_names: NDArray[Any] | None = None
    first: int = 0
    replaces: bool = False

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def head(self, n: int) -> LearningBatch:
        """Return the batch of the first n rows.

        Parameters
        ----------
        n : int
            How many.
        """
        return self.part(0, n)

    def part(self, begin: int, end: int) -> LearningBatch:
        """Return the batch of the rows from ``begin`` up to but not including ``end``.

        Only the first part has the declared classes and the feature names.

        Parameters
        ----------
        begin, end : int
            Rows of this batch.
        """
        if begin == 0 and end >= len(self):
            return self
        y, ids = (None if values is None else values[begin:end] for values in (self.y, self.ids))
        part = replace(self, X=self.X[begin:end], y=y, ids=ids, first=self.first + begin)
        return part if begin == 0 else replace(part, classes=None, feature_names=None)


class BatchRecorder(Protocol):
    """Whoever writes down what a forest is about to learn."""

    def recording(self, batch: LearningBatch) -> AbstractContextManager[Iterable[LearningBatch]]:
        """Return a context inside which the batch is learned, block after block.

        The context gives the blocks: parts of the batch, in order. Between two of them an interrupt
        may be raised. If the context ends with an exception, the forest's ``examples_seen`` tells
        how much was learned.

        Parameters
        ----------
        batch : LearningBatch
            All that the call is to learn.
        """

    def erased(self) -> None:
        """Take note that what was forgotten has left the trees, before it would have by itself."""
