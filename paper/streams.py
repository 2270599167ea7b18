"""Streams of examples, endless or from a data set, of which any rows can be drawn again.

Rows are drawn block by block, each block from a generator of its own, so that the first million is
always the same, and never has to be kept in memory as a whole.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.context import Context

BLOCK = 10_000
QUERIES = 1_000_000  # number of the block that queries are drawn from; no stream is that long
N_GAUSSIANS = 10
KEPT = 16  # blocks that stay in memory

Rows = NDArray[Any]


class Stream:
    """Rows by number, and queries from the same distribution."""

    def __init__(self, block: Callable[[int], Rows], queries: Rows, length: int | None = None):
        self.block, self.queries, self.length = block, queries, length

    def rows(self, start: int, stop: int) -> Rows:
        """Return the rows from ``start`` up to, but excluding, ``stop``."""
        parts = []
        for i in range(start // BLOCK, -(-stop // BLOCK)):
            first = i * BLOCK
            parts.append(self.block(i)[max(start - first, 0) : stop - first])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def hypercube(context: Context, D: int, n_queries: int) -> Stream:
    """Return a stream of uniform points in the D-dimensional unit hypercube."""

    def block(i: int) -> Rows:
        return context.rng(1, D, i).random((BLOCK, D), dtype=np.float32)

    return Stream(lru_cache(maxsize=KEPT)(block), block(QUERIES)[:n_queries])


def gaussians(context: Context, D: int, n_queries: int) -> Stream:
    """Return a stream from a mixture of Gaussians of arbitrary size and orientation.

    The paper says no more about it. Here there are ten, equally likely, with centres uniform in the
    unit hypercube. The axes of each are a random rotation's, with lengths between 0.01 and 1,
    spread evenly by their logarithms, times a size of its own between 0.3 and 3.
    """
    rng = context.rng(2, D)
    centres = rng.random((N_GAUSSIANS, D))
    shapes = []
    for _ in range(N_GAUSSIANS):
        rotation, _ = np.linalg.qr(rng.normal(size=(D, D)))
        lengths = 10 ** rng.uniform(-2, 0, D) * 10 ** rng.uniform(-0.5, 0.5)
        shapes.append(lengths[:, None] * rotation)

    def block(i: int) -> Rows:
        draw = context.rng(2, D, i)
        which, rows = draw.integers(N_GAUSSIANS, size=BLOCK), draw.normal(size=(BLOCK, D))
        for g in range(N_GAUSSIANS):
            rows[which == g] = rows[which == g] @ shapes[g] + centres[g]
        return rows.astype(np.float32)

    return Stream(lru_cache(maxsize=KEPT)(block), block(QUERIES)[:n_queries])


def unlabelled(X: Rows, queries: Rows, n_queries: int) -> Stream:
    """Return a data set's examples in their order, as a stream."""

    def block(i: int) -> Rows:
        return X[i * BLOCK : (i + 1) * BLOCK]

    return Stream(block, queries[:n_queries], len(X))


def mnist(context: Context, n_queries: int) -> Stream:
    """Return MNIST as a stream of raw pixels, without its labels."""
    data = context.load("mnist")
    return unlabelled(data.X_train, data.X_test, n_queries)


def shuffled(stream: Stream, n: int, rng: np.random.Generator) -> Stream:
    """Return the first n rows of a stream in another order."""
    order = rng.permutation(n)
    return unlabelled(stream.rows(0, n)[order], stream.queries, len(stream.queries))
