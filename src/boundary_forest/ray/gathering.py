"""What actors report of their trees, joined as an engine that holds them all reports it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.fitted import Driver
from boundary_forest.estimators.ids import taken_ids
from boundary_forest.ray.states import State, TreeRange


class Gathered:
    """One state of a forest, as the compiled engine's ``Snapshot``.

    Parameters
    ----------
    forest : SpreadForest
        Whose state it is. It is gathered when it is first needed.
    """

    def __init__(self, forest: Any) -> None:
        self._forest = forest
        self._whole: State | None = None

    def state(self, with_positions: bool = True) -> State:
        """Return the state as arrays, examples by arrival."""
        if self._whole is None or (with_positions and "positions" not in self._whole):
            self._whole = self._forest.state(with_positions)
        return self._whole

    @property
    def size(self) -> int:
        """Examples that are stored."""
        return len(self.state()["arrivals"])

    def positions(self, begin: int, end: int) -> NDArray[Any]:
        """Return the rows of examples begin to end, by arrival."""
        return np.asarray(self.state()["positions"][begin:end])

    def arrivals(self, begin: int, end: int) -> NDArray[np.uint64]:
        """Return the arrival numbers of examples begin to end."""
        return np.asarray(self.state()["arrivals"][begin:end])

    def ids(self, begin: int, end: int) -> Any:
        """Return the ids of examples begin to end, or None if they have none."""
        ids = self.state()["ids"]
        return None if ids is None else ids[begin:end]

    def neighbors(self, rows: NDArray[Any], n: int, n_jobs: int, **options: Any) -> Any:
        """Return what the forest's ``neighbors`` returns."""
        return self._forest.neighbors(rows, n, n_jobs, **options)


def composed_digest(parts: list[Any], trees: list[TreeRange], *, planted: bool) -> Any:
    """Return the digest of a forest: sums over examples add up, and trees stand by place.

    None if one of the actors returned None.
    """
    if any(part is None for part in parts):
        return None
    if not planted:  # all actors have the same examples, and no trees
        return parts[0]
    answering = [part[0][: end - first] for part, (first, end) in zip(parts, trees, strict=True)]
    growing = [part[0][end - first :] for part, (first, end) in zip(parts, trees, strict=True)]
    examples = np.zeros(2, dtype=np.uint64)
    for part in parts:
        examples += part[1]  # modulo 2**64, as in the engine
    return np.concatenate([*answering, *growing]), examples, *parts[0][2:]


def joined_stats(
    parts: list[dict[str, Any]], n_stored: int, driver: Driver | None
) -> dict[str, Any]:
    """Return the counts, costs and bytes of all actors."""
    stats = dict(parts[0])
    for group in ("comparisons", "evaluations", "bytes"):
        stats[group] = {name: sum(part[group][name] for part in parts) for name in parts[0][group]}
    stats["examples_stored"] = n_stored
    stats["nodes_per_tree"] = [n for part in parts for n in part["nodes_per_tree"]]
    if driver is not None and "turnover" in stats:
        reports = [part["turnover"] for part in parts]
        votes = driver.state()
        stats["turnover"] = {
            "generations": [n for of_part in reports for n in of_part["generations"]],
            "ages": [n for of_part in reports for n in of_part["ages"]],
            "losses": votes["tree_losses"].tolist() if driver.is_planted else [],
            "rule": votes["vote_power"],
        }
    return stats


def joined_paths(parts: list[Any], driver: Driver) -> Any:
    """Return the engine's ``paths`` of all trees, which are weighed by the driver."""
    examples = [part[3] for part in parts]
    met = np.concatenate([of_part[2] for of_part in examples])
    arrivals, first = np.unique(met, return_index=True)
    positions, labels = (np.concatenate([e[j] for e in examples])[first] for j in (0, 1))
    ids = taken_ids([of_part[3] for of_part in examples], first)
    trees = [
        (np.searchsorted(arrivals, of_part[2][places]).astype(np.uint32), distances)
        for part, of_part in zip(parts, examples, strict=True)
        for places, distances in part[0]
    ]
    leaves = np.array([places[-1] for places, _ in trees])
    leaf_labels = np.ascontiguousarray(labels[leaves][None])
    distances = np.array([[distances[-1] for _, distances in trees]])
    answer, weights = driver.answer(leaf_labels, distances, True)
    if answer.shape[1] != labels.shape[1] or driver.n_classes:  # shares, by code
        codes = np.unique(labels[leaves][:, 0])
        answer = np.stack([codes, answer[0, codes.astype(np.intp)]], axis=1)
    return trees, weights[0], answer, (positions, labels, arrivals, ids), parts[0][4]
