"""External ids: names that the user gives to examples, kept for those that are stored.

A table lives as long as the engine whose examples it names. Its answers are published as one tuple,
so that a query reads all of it or none: the names of what was stored, and of the batch that is
being learned, because a query may meet an example of it before the call is over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.errors import plain

_LARGEST = np.iinfo(np.int64).max


def as_ids(ids: Any, n_rows: int) -> NDArray[Any]:
    """Ids as an array of int64, or of str objects, which no fixed width cuts short."""
    array = np.asarray(ids)
    if array.ndim != 1 or len(array) != n_rows:
        raise ValueError(
            f"ids must have one value for each of the {n_rows} rows of X, got shape {array.shape}"
        )
    if array.dtype.kind in "UTf" and not isinstance(ids, np.ndarray):
        # What numpy made text or floats of was perhaps neither: [1, "a"], or integers beyond int64.
        array = np.asarray(ids, dtype=object)
    if array.dtype.kind in "UT":
        return array.astype(object)
    if array.dtype.kind == "O":
        kinds = {str if isinstance(one, str) else type(plain(one)) for one in array}
        if kinds == {str}:
            return array
        if kinds != {int}:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(f"ids must be all int64 or all str, got values of type {names}")
    elif array.dtype.kind not in "iu":
        raise TypeError(f"ids must be int64 or str, got dtype {array.dtype}")
    for extreme in (array.max(), array.min()):
        if not -_LARGEST - 1 <= extreme <= _LARGEST:
            raise ValueError(f"ids must fit int64, got {extreme}: use str for longer ones")
    return array.astype(np.int64)


def check_ids(ids: NDArray[Any] | None, table: IdTable | None) -> None:
    """Refuse a batch's ids if they do not go with those of the examples before."""
    if ids is not None and table is not None:
        table.check_new(ids)
    elif ids is not None or table is not None:
        first = "ids: give some" if ids is None else "none: leave them out"
        raise ValueError(
            f"ids must come with every batch or with none, and the first had {first}, or begin "
            "anew with fit"
        )


class IdTable:
    """Ids of the stored examples of one engine, found by arrival number.

    16 bytes an example here (arrival number and id), 8 more for the sorted copy that finds
    duplicates; for str, what Python takes for the text as well.
    """

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._arrivals = np.empty(0, dtype=np.int64)  # ascending; the first _n count
        self._ids = np.empty(0, dtype=kind)
        self._n = 0
        self._runs: list[NDArray[Any]] = []  # the ids sorted, in runs that shrink by half or more
        self._publish()

    # Learning: check, announce, learn, and keep what was stored of it

    def check_new(self, ids: NDArray[Any]) -> None:
        """Refuse ids of another kind, ids that occur twice, and ids that are taken."""
        if ids.dtype != self._ids.dtype:
            kinds = {"i": "int64", "O": "str"}
            raise TypeError(
                f"ids must be {kinds[self._ids.dtype.kind]} as in the first batch, "
                f"got {kinds[ids.dtype.kind]}"
            )
        values, counts = np.unique(ids, return_counts=True)
        if len(values) < len(ids):
            raise ValueError(
                f"ids must be unique, but {plain(values[counts > 1][0])!r} is there "
                f"{counts.max()} times: give each example an id of its own"
            )
        for run in self._runs:
            at = np.minimum(np.searchsorted(run, values), len(run) - 1)
            taken = values[run[at] == values]
            if len(taken):
                raise ValueError(
                    f"ids must be new, but {plain(taken[0])!r} already names a stored example: "
                    "give the new one another id"
                )

    def announce(self, first: int, ids: NDArray[Any]) -> None:
        """Let queries name the examples that are about to arrive, the first with number first."""
        self._publish(first, ids)

    def keep(self, arrivals: NDArray[np.int64], first: int, ids: NDArray[Any]) -> None:
        """Of the batch announced, these have been stored; the others' names are forgotten."""
        arrivals = np.sort(arrivals)
        self._append(arrivals, ids[arrivals - first])
        self._publish()

    def _append(self, arrivals: NDArray[np.int64], kept: NDArray[Any]) -> None:
        n = self._n + len(arrivals)
        if n > len(self._ids):
            room = n + max(64, n // 8) if self._n else n
            self._arrivals = _grown(self._arrivals, self._n, room)
            self._ids = _grown(self._ids, self._n, room)
        self._arrivals[self._n : n] = arrivals
        self._ids[self._n : n] = kept
        self._n = n
        self._sort_in(kept)

    # Asking

    def named(self, arrivals: NDArray[np.int64]) -> NDArray[Any]:
        """The ids of these examples; each is stored, or of the batch announced."""
        known, ids, n, first, coming = self._published
        names = np.empty(arrivals.shape, dtype=ids.dtype)
        new = arrivals >= first
        names[new] = coming[arrivals[new] - first]
        names[~new] = ids[:n][np.searchsorted(known[:n], arrivals[~new])]
        return names

    @property
    def n_bytes(self) -> int:
        """Memory of the arrays; the text of str ids is Python's."""
        runs = sum(run.nbytes for run in self._runs)
        return self._arrivals.nbytes + self._ids.nbytes + runs

    @property
    def stored(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Arrival numbers, ascending, and ids of the stored examples."""
        return self._arrivals[: self._n], self._ids[: self._n]

    @classmethod
    def of_stored(cls, arrivals: NDArray[np.int64], ids: NDArray[Any]) -> IdTable:
        """The table that ``stored`` was asked of."""
        if len(arrivals) != len(ids) or ids.dtype != as_ids(ids, len(ids)).dtype:
            raise ValueError("ids must be int64 or str, one for each stored example")
        table = cls(ids.dtype)
        table.check_new(ids)
        table._append(arrivals, ids)
        table._publish()
        return table

    def __reduce__(self) -> tuple[Any, ...]:
        return IdTable.of_stored, self.stored

    def _publish(self, first: int = _LARGEST, coming: NDArray[Any] | None = None) -> None:
        coming = self._ids[:0] if coming is None else coming
        # Appending writes beyond n only, so whoever holds an older tuple still reads what it said.
        self._published = (self._arrivals, self._ids, self._n, first, coming)

    def _sort_in(self, ids: NDArray[Any]) -> None:
        """Merging only runs of like size costs O(log n) an id, however the stream is cut."""
        run = np.sort(ids)
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        if len(run):
            self._runs.append(run)


def _grown(array: NDArray[Any], n: int, room: int) -> NDArray[Any]:
    grown = np.empty(room, dtype=array.dtype)
    grown[:n] = array[:n]
    return grown
