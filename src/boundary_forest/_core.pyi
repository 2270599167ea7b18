"""The compiled Boundary Forest engine."""

from collections.abc import Callable
from typing import Any

import numpy
import numpy.typing


def instruction_set() -> str:
    """Return the instruction set in use: 'scalar', 'avx2' or 'avx512'."""

def has_fast_crc32() -> bool:
    """
    Return whether the processor's carry-less multiplication computes checksums.
    """

def crc32(data: numpy.typing.NDArray[numpy.uint8] | memoryview, crc: int) -> int:
    """Return zlib's checksum of data that follow others of checksum crc."""

def metric_names() -> list[str]:
    """Return the names of the built-in metrics."""

def element_types() -> list[str]:
    """Return the names of the types that positions may be stored as."""

class Snapshot:
    """One published state of a forest, held as long as this object lives."""

    def state(self, with_positions: bool = True) -> dict[str, Any]:
        """Return the state as arrays, examples by arrival."""

    def positions(self, begin: int, end: int) -> numpy.typing.NDArray[Any]:
        """Return the rows of examples begin to end, by arrival."""

    def neighbors(self, X: numpy.typing.NDArray[Any], n_neighbors: int, n_jobs: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.int64] | list[str] | None]:
        """Return what Forest.neighbors returns, of this state."""

class Forest:
    """A forest of boundary trees; see cpp/include/boundary_forest."""

    def __init__(self, *, n_estimators: int, max_children: int | None, n_features: int, label_length: int, label_metric: str | Callable[..., float], estimator: str, epsilon: float | None, element_type: str, seed: int, metric: str | int | Callable[..., float], p: float, ids: str = 'none') -> None: ...

    def learn(self, X: numpy.typing.NDArray[Any], y: numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> None:
        """Learn rows in order, block by block."""

    def learn_offline(self, X: numpy.typing.NDArray[Any], y: numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> None:
        """Learn all rows at once, each tree in an order of its own."""

    def predict_then_learn(self, X: numpy.typing.NDArray[Any], y: numpy.typing.NDArray[numpy.float64], n_jobs: int, ids: numpy.typing.NDArray[numpy.int64] | list[str] | None = None) -> numpy.typing.NDArray[numpy.float64]:
        """Learn rows in order, and return the estimate of each from just before."""

    def check_ids(self, ids: numpy.typing.NDArray[numpy.int64] | list[str]) -> None:
        """Raise ValueError if an id occurs twice or names a stored example."""

    def regrow(self, place: int, arrivals: numpy.typing.NDArray[numpy.uint64], answering: bool = True) -> None:
        """Grow a new tree at this place from stored examples, in this order."""

    def succeed(self, place: int) -> None:
        """
        Let the tree that grows at this place take over from the one that answers there.
        """

    def apply(self, X: numpy.typing.NDArray[Any], n_jobs: int) -> numpy.typing.NDArray[numpy.uint64]:
        """Return the arrival number of the example that each tree ends at."""

    def estimate(self, X: numpy.typing.NDArray[Any], n_jobs: int) -> numpy.typing.NDArray[numpy.float64]:
        """Return what E makes of the examples that the trees end at."""

    def neighbors(self, X: numpy.typing.NDArray[Any], n_neighbors: int, n_jobs: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.int64] | list[str] | None]:
        """Return distances, arrival numbers and ids."""

    def found(self, X: numpy.typing.NDArray[Any], n_jobs: int) -> tuple[numpy.typing.NDArray[numpy.uint32], numpy.typing.NDArray[numpy.float64], tuple[Any, Any, Any, Any]]:
        """
        Return the examples that the trees end at: numbers, distances, and the examples' positions, labels, arrivals and ids.
        """

    def paths(self, x: numpy.typing.NDArray[Any]) -> tuple[list[tuple[numpy.typing.NDArray[numpy.uint32], numpy.typing.NDArray[numpy.float64]]], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], tuple[Any, Any, Any, Any]]:
        """
        Return each tree's path, the trees' weights, the estimate, and the examples met.
        """

    def snapshot(self) -> Snapshot:
        """Return the newest published state, and hold it."""

    def digest(self, label_keys: numpy.typing.NDArray[numpy.uint64] | None) -> tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64]]:
        """
        Return a hash for each tree, and a sum of hashes over the stored examples.
        """

    def widen(self, n_features: int) -> None:
        """Give the stored rows further features, all zero."""

    def restore(self, state: dict[str, Any], positions: str = 'copied') -> None:
        """
        Put a state into an empty forest; its positions are 'copied', 'kept' or 'mapped'.
        """

    def stats(self) -> dict[str, Any]:
        """Return counts, costs and bytes."""

    @property
    def seen(self) -> int:
        """Examples that have arrived."""

    @property
    def n_classes(self) -> int:
        """1 + the largest class code that was learned."""

    @property
    def label_deviation(self) -> float:
        """The standard deviation of the labels seen."""

class CoverTree:
    """A cover tree; see cpp/include/boundary_forest/baselines."""

    def __init__(self, *, base: float, n_features: int, element_type: str, separated: bool, tight: bool, metric: str | int | Callable[..., float], p: float) -> None: ...

    def insert(self, X: numpy.typing.NDArray[Any]) -> None:
        """Insert rows in order."""

    def neighbors(self, X: numpy.typing.NDArray[Any], n_neighbors: int, epsilon: float) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.uint64]]:
        """
        Return distances and arrival numbers, within a factor 1 + epsilon of the nearest.
        """

    @property
    def size(self) -> int:
        """Rows inserted."""

    @property
    def comparisons(self) -> tuple[int, int]:
        """Distances computed to insert, and to answer."""

    @property
    def nodes(self) -> tuple[numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.uint32]]:
        """Each node's level and parent, by arrival."""
