"""Searches for neighbours: their options, checked, as the engine takes them; and their results.

Results are the neighbours of a forest's own examples, and neighbours as sparse graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

from boundary_forest.estimators.blocks import joined, slices
from boundary_forest.estimators.engine_constants import GRAPH, NONE
from boundary_forest.estimators.fitted import Fitted, Forest
from boundary_forest.estimators.ids import checked_ids, stored_names
from boundary_forest.estimators.queries import Neighbors, named_neighbors

MODES = ("connectivity", "distance")


def search_options(
    fitted: Fitted, beam: Any, default_beam: int, *, exact: bool | None, allowed: Any
) -> dict[str, Any]:
    """Return the options of the engine's ``neighbors`` and ``within``.

    Parameters
    ----------
    fitted : Fitted
        The forest that is searched.
    beam : int or None
        Of this call; None is the estimator's.
    default_beam : int
        The estimator's.
    exact : bool or None
        Whether all stored examples are compared; None is where that is cheaper.
    allowed : array-like, callable or None
        A mask over arrivals, ids, or a function of an id.
    """
    if beam is not None and fitted.settings.adaptive.get("search") != GRAPH:
        raise ValueError("beam requires search='graph', but this forest has search='paper'")
    beam = default_beam if beam is None else beam  # set_params may have set anything
    if not isinstance(beam, Integral) or isinstance(beam, bool) or beam < 1:
        raise ValueError(f"beam must be an integer >= 1, got {beam!r}")
    options = {"beam": min(int(beam), 2**32), "exact": None if exact is None else bool(exact)}
    return options if allowed is None else {**options, **_filter(fitted, allowed)}


def as_radius(radius: Any) -> float:
    """Return a radius, or raise if it is none."""
    if not isinstance(radius, Real) or isinstance(radius, bool) or np.isnan(float(radius)):
        raise ValueError(f"radius must be a number and not NaN, got {radius!r}")
    return float(radius)


def _filter(fitted: Fitted, allowed: Any) -> dict[str, Any]:
    if callable(allowed):
        if not isinstance(fitted.engine, Forest):
            raise NotImplementedError(
                "a function as allowed is not available on a cluster: pass ids or a boolean mask"
            )
        arrivals, names = stored_names(fitted)
        mask = np.zeros(fitted.engine.seen, np.uint8)
        mask[arrivals] = [bool(allowed(name)) for name in names.tolist()]
        return {"mask": mask}
    if isinstance(allowed, str | bytes) or not isinstance(allowed, Iterable):
        raise TypeError(
            f"allowed must be a boolean mask, ids or a function of an id, got {allowed!r}"
        )
    if not isinstance(allowed, Sized) or not hasattr(allowed, "__getitem__"):
        allowed = list(allowed)  # a set, or what can be gone through once
    array = np.asarray(allowed)
    if array.dtype == np.bool_:
        n_seen = fitted.engine.seen
        if array.shape != (n_seen,):
            raise ValueError(
                f"allowed must have one value per example seen ({n_seen}), got shape {array.shape}"
            )
        return {"mask": np.ascontiguousarray(array).view(np.uint8)}
    if fitted.settings.ids == NONE:
        raise ValueError(
            "allowed must be a boolean mask, because the examples of this forest have no ids "
            "(pass ids=... to fit() and partial_fit() to use them)"
        )
    return {"ids": checked_ids(fitted, allowed)}


def neighbors_of_stored(fitted: Fitted, n: int, threads: int, options: dict[str, Any]) -> Neighbors:
    """Return the neighbours of every stored example, in order of arrival, without itself."""
    snapshot, found = fitted.engine.snapshot(searched=True), []
    if n >= snapshot.size:
        raise ValueError(
            "n_neighbors must be smaller than the number of stored examples if X is None, got "
            f"{n} with {snapshot.size} stored: use a smaller n_neighbors, or learn more examples "
            "first"
        )
    if options.keys() & {"mask", "ids"}:
        raise ValueError("allowed requires queries: pass X")
    for block in slices(snapshot.size, fitted.settings.n_features):
        rows = snapshot.positions(block.start, block.stop)
        neighbors = named_neighbors(fitted, snapshot.neighbors(rows, n + 1, threads, **options))
        others = neighbors[1] != snapshot.arrivals(block.start, block.stop)[:, None]
        others[others.all(axis=1), -1] = False  # it is hidden behind its own duplicates
        found.append(tuple(part[others].reshape(-1, n) for part in neighbors))
    distances, arrivals, names = joined(found)
    return distances, arrivals, names


def graph_of(fitted: Fitted, neighbors: Neighbors, mode: str) -> csr_matrix:
    """Return neighbours as a sparse matrix whose columns are arrival numbers."""
    distances, arrivals, _ = neighbors
    n_rows, n_edges = distances.shape
    weights = distances.ravel() if mode == "distance" else np.ones(distances.size)
    starts = np.arange(0, n_rows * n_edges + 1, n_edges)
    shape = (n_rows, fitted.engine.seen)
    return csr_matrix((weights, arrivals.ravel(), starts), shape=shape)
