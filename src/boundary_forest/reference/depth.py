"""The limit on the depth of trees, in forests whose trees are not the paper's.

A tree is looked at every ``period`` arrivals; and every 512 while its latest nodes are not in order
of arrival, as some of them were learned again. If the deepest of the latest is too deep, nodes
around it are learned again, from the node above them on: as many as a tree learns of n arrivals,
the largest power of two that divides their number.

>>> most_regrown(512, 1.0), most_regrown(6144, 0.3), period(6144)
(512, 614, 1024)
"""

from __future__ import annotations

from typing import Any

Nodes = list[Any]  # of a tree, in order of creation: each has its arrival and its parent

DEPTH_PERIOD = 512  # arrivals
LONGEST_PERIOD = 4096  # likewise
DEPTH_STRIDE = 16  # of the nodes, every 16th is looked at
LEAST_LIMIT, DEPTH_PER_DOUBLING = 64, 8


def period(seen: int) -> int:
    return min(max((1 << seen.bit_length() - 1) // 4, DEPTH_PERIOD), LONGEST_PERIOD)


def is_due(nodes: Nodes, seen: int) -> bool:
    """Whether a tree is looked at after so many arrivals."""
    if seen % DEPTH_PERIOD:
        return False
    latest = range(max(len(nodes) - period(seen), 0), len(nodes))
    arrivals = [nodes[v].arrival for v in latest if v % DEPTH_STRIDE == 0]
    return seen % period(seen) == 0 or arrivals != sorted(arrivals)


def most_depth(n_nodes: int) -> int:
    """The greatest depth in a tree of so many nodes; that of the root is 0."""
    return LEAST_LIMIT + DEPTH_PER_DOUBLING * n_nodes.bit_length()


def most_regrown(seen: int, max_samples: float) -> int:
    return int((seen & -seen) * max_samples)


def ancestors(v: Any) -> Nodes:
    """Its parent first, the root last."""
    found = []
    while v.parent is not None:
        v = v.parent
        found.append(v)
    return found


def chain_below(nodes: Nodes, seen: int, max_samples: float, *, replays: bool) -> set[Any]:
    """The nodes that are learned again after so many arrivals."""
    deepest, depth = None, most_depth(len(nodes))
    for number in reversed(range(len(nodes))):
        v = nodes[number]
        is_replayed = replays and number >= len(nodes) - 2 * DEPTH_PERIOD
        if v.arrival < seen - DEPTH_PERIOD and not is_replayed:
            break
        if number % DEPTH_STRIDE == 0 and len(ancestors(v)) > depth:
            deepest, depth = v, len(ancestors(v))
    if deepest is None:
        return set()
    n_nodes = dict.fromkeys(nodes, 1)
    for v in reversed(nodes[1:]):
        n_nodes[v.parent] += n_nodes[v]
    most = most_regrown(seen, max_samples)
    chain = {[deepest, *(v for v in ancestors(deepest) if n_nodes[v] <= most)][-1]}
    for v in nodes:
        if v.parent in chain:
            chain.add(v)
    return chain
