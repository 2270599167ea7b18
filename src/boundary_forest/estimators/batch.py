"""What a learning call was given, once it was checked: what is learned, and what is recorded."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from numpy.typing import NDArray


@dataclass(frozen=True)
class Batch:
    """Examples that were found fit to be learned.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Positions, in the forest's element type unless they are sparse.
    y : ndarray or None
        Labels as they were given, but checked; None in retrieval.
    ids : ndarray of shape (n_rows,) or None
        int64, or objects that are str.
    classes : ndarray or None
        Classes that the call declared.
    feature_names : ndarray of shape (n_features,) or None
        Of the first batch, if it had some.
    first : int
        How many examples had been seen before.
    """

    X: Any
    y: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    feature_names: NDArray[Any] | None = None
    first: int = 0

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def head(self, n: int) -> Batch:
        """Return the batch of the first n rows.

        Parameters
        ----------
        n : int
            How many.
        """
        y, ids = (None if part is None else part[:n] for part in (self.y, self.ids))
        return replace(self, X=self.X[:n], y=y, ids=ids)


class Recorder(Protocol):
    """Whoever writes down what a forest is about to learn."""

    def recording(self, batch: Batch) -> AbstractContextManager[None]:
        """Return a context inside which the batch is learned.

        If it ends with an exception, the forest's ``examples_seen`` tells how much was learned.
        """
