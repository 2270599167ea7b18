"""An index as a container: its length, its ids, and the vectors that have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import NDArray

from boundary_forest.estimators.engine_constants import NONE
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.ids import checked_ids, rows_of, stored_names


class ContainerMixin:
    """Adds what containers have to an estimator that has ``fitted``."""

    fitted: Fitted | None
    _require_fitted: Callable[[], Fitted]

    def get(self, ids: Any) -> NDArray[Any]:
        """Return the stored vectors with these ids.

        Parameters
        ----------
        ids : array-like of int or str
            The ids that were passed to ``partial_fit``.

        Returns
        -------
        vectors : ndarray of shape (n_ids, n_features)
            In the order of the ids, in the type in which they are stored.

        Raises
        ------
        KeyError
            If some ids are unknown; it lists them.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0]], ids=["a", "b"])
        >>> index.get(["b"]).tolist(), len(index), "a" in index, list(index)
        ([[3.0]], 2, True, ['a', 'b'])
        """
        return rows_of(self._require_fitted(), ids)

    def __len__(self) -> int:
        """Return the number of stored examples; 0 before fitting."""
        fitted = self.fitted
        return 0 if fitted is None else int(fitted.engine.stats()["examples_stored"])

    def __bool__(self) -> bool:
        return True  # an empty index is an index

    def __contains__(self, id: object) -> bool:
        """Whether a stored example has this id."""
        fitted = self.fitted
        if fitted is None or fitted.settings.ids == NONE:
            return False
        try:
            wanted = checked_ids(fitted, [id])
        except (TypeError, ValueError):  # of a kind that no example's id is
            return False
        return bool(fitted.engine.named(wanted)[0][0])

    def __iter__(self) -> Iterator[Any]:
        """Return the ids of the stored examples, or their row numbers, in order of arrival."""
        fitted = self.fitted
        if fitted is None:
            return iter(())
        return iter(stored_names(fitted)[1].tolist())
