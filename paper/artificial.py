"""The paper's artificial tree: all points are equidistant, so chance alone leads down the tree.

At a node of q children the descent stops with probability 1 / (q + 1), and continues with each
child with the same probability; at a node of k children it always continues. The forest itself
could grow such trees, from points that are all ties; but it settles all ties of a descent by one
order of the examples, so that the node that won among its siblings is likely to win over its
children too. The paper draws again at every node, and so does this.
"""

import math
import random
from typing import Any

import numpy as np


class ArtificialTree:
    """A tree of equidistant points; nodes are numbered by arrival, and the root is 0."""

    def __init__(self, k: int | None, seed: int) -> None:
        self.k = math.inf if k is None else k
        self.children: list[list[int]] = [[]]
        self.parents = [0]
        self._draw = random.Random(seed).random

    def grow(self, N: int) -> None:
        """Learn points until there are N nodes."""
        children, parents, k, draw = self.children, self.parents, self.k, self._draw
        for new in range(len(parents), N):
            v = 0
            while True:
                below = children[v]
                q = len(below)
                pick = int(draw() * (q + 1 if q < k else q))
                if pick == q:
                    break
                v = below[pick]
            below.append(new)
            children.append([])
            parents.append(v)

    def query_cost(self) -> float:
        """Return the expected number of comparisons of a query, root included.

        It is exact: the mean over all paths, weighted by their probabilities.
        """
        below = [0.0] * len(self.parents)  # of the children's costs, the sum
        for v in range(len(below) - 1, -1, -1):  # children come after their parents
            q = len(self.children[v])
            cost = q + below[v] / (q + 1 if q < self.k else q) if q else 0.0
            if v:
                below[self.parents[v]] += cost
        return 1 + cost

    def root_children(self) -> int:
        """Return the number of children of the root."""
        return len(self.children[0])

    def children_of_roots_children(self) -> float:
        """Return the mean number of children of the root's children."""
        return float(np.mean([len(self.children[v]) for v in self.children[0]]))


def mean_line(k: int | None, ends: list[int], n_trees: int, seed: int) -> dict[str, Any]:
    """Return means over independent trees at each N, and the query cost's standard error."""
    query, root, second = (np.zeros((n_trees, len(ends))) for _ in range(3))
    for i in range(n_trees):
        tree = ArtificialTree(k, seed * 1_000_003 + i)
        for j, N in enumerate(ends):
            tree.grow(N)
            query[i, j] = tree.query_cost()
            root[i, j] = tree.root_children()
            second[i, j] = tree.children_of_roots_children()
    return {
        "query": query.mean(axis=0).tolist(),
        "error": (query.std(axis=0) / math.sqrt(n_trees)).tolist(),
        "root": root.mean(axis=0).tolist(),
        "second": second.mean(axis=0).tolist(),
    }
