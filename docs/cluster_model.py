"""Print the tables of cluster.md: a simulation of clusters that nobody has measured.

Run it as ``.venv/bin/python docs/cluster_model.py``; a test compares. It multiplies costs per tree,
which were measured on one core up to the sizes that are said below, by what a cluster would do. The
network and the nodes are assumptions.
"""

from __future__ import annotations

import itertools
import math

# Measured: MNIST (784 bytes a row), 50 trees, one core, up to 60,000 rows; comparisons a row and
# tree grow by 10.1 with each doubling, and are extrapolated beyond. On generated rows a comparison
# took 1.5 times as long after 1,000,000 of them as after 30,000, because fewer are in cache.
ROW_BYTES = 784
NANOSECONDS = 15.0  # a comparison
CACHE = 1.5
TREES = 50
QUERY_SHARE = 0.95  # of a query's time in that of learning a row
NODE_BYTES = 18
KEPT = 0.18  # of the rows, by one tree, of 30,000
STORED = {1: 0.18, 5: 0.45, 10: 0.60, 25: 0.76, 50: 0.845}  # by so many trees together
CALL_SECONDS = 0.010  # of the driver, a batch of 5,000 rows put and its results taken
COMBINE_SECONDS = 0.09e-6  # of the driver, a row and tree of a query

# Assumed.
CORES = 16  # a node
SPEEDUP = 0.8  # of each further core
BANDWIDTH = 1.25e9  # bytes a second: 10 Gbit Ethernet
SUBMIT_SECONDS = 0.0002  # of the driver, a call to one actor
LATENCY = 0.001  # of a call
BATCH = 8192  # rows
END_BYTES = 24  # arrival, label and distance that a tree answers with
CLASSES = 10  # of which a shard answers with the shares
SHARE_SECONDS = 2e-9  # of the driver, to add one

NODES = (1, 10, 100, 1000)
EXAMPLES = (10**6, 10**7, 10**8, 10**9)


def seconds(n: float) -> float:
    """Return the time of one row in one tree that has seen n rows."""
    comparisons = max(20.0, 10.1 * math.log2(n) - 80)
    return comparisons * NANOSECONDS * 1e-9 * (CACHE if n >= 10**6 else 1.0)


def on_cores(trees: float, cores: int = CORES) -> float:
    """Return how many rows' times in one tree it takes a node to show a row to so many trees."""
    at_once = min(trees, 1 + (cores - 1) * SPEEDUP)
    return trees / at_once


def by_trees(nodes: int, n: int) -> tuple[float, float, float]:
    """Return rows learned a second, queries a second, and GB a node, if trees are spread."""
    used = min(nodes, TREES)
    trees = TREES / used
    overhead = (CALL_SECONDS + LATENCY + used * SUBMIT_SECONDS) / BATCH
    copies = math.ceil(math.log2(used + 1)) if used > 1 else 0  # nodes pass rows on to others
    network = ROW_BYTES * copies / BANDWIDTH
    learn = max(on_cores(trees) * seconds(n), network) + overhead
    ends = TREES * END_BYTES / BANDWIDTH if used > 1 else 0.0
    query = (
        max(on_cores(trees) * seconds(n) * QUERY_SHARE, network + ends)
        + TREES * COMBINE_SECONDS
        + overhead
    )
    stored = stored_by(trees)
    memory = n * (stored * (ROW_BYTES + 24) + trees * KEPT * NODE_BYTES)
    return 1 / learn, 1 / query, memory / 1e9


def by_examples(nodes: int, n: int) -> tuple[float, float, float]:
    """Return the same if each node has a forest of its own over a part of the rows."""
    share = n / nodes
    overhead = (CALL_SECONDS + LATENCY + nodes * SUBMIT_SECONDS) / (BATCH * nodes)
    network = ROW_BYTES / BANDWIDTH if nodes > 1 else 0.0  # each row goes to one node
    learn = max(on_cores(TREES) * seconds(share) / nodes, network) + overhead
    copies = math.ceil(math.log2(nodes + 1)) if nodes > 1 else 0
    answers = nodes * CLASSES * 8 / BANDWIDTH if nodes > 1 else 0.0
    query = (
        max(
            on_cores(TREES) * seconds(share) * QUERY_SHARE, ROW_BYTES * copies / BANDWIDTH + answers
        )
        + (nodes * CLASSES * SHARE_SECONDS if nodes > 1 else TREES * COMBINE_SECONDS)
        + (CALL_SECONDS + LATENCY + nodes * SUBMIT_SECONDS) / BATCH
    )
    memory = share * (STORED[TREES] * (ROW_BYTES + 24) + TREES * KEPT * NODE_BYTES)
    return 1 / learn, 1 / query, memory / 1e9


def stored_by(trees: float) -> float:
    """Return which share of the rows so many trees store together, between those measured."""
    known = sorted(STORED)
    for low, high in itertools.pairwise(known):
        if trees <= high:
            part = (math.log(trees) - math.log(low)) / (math.log(high) - math.log(low))
            return STORED[low] + part * (STORED[high] - STORED[low])
    return STORED[known[-1]]


def table() -> str:
    """Return the table as Markdown."""
    lines = [
        "| nodes | examples | trees spread: learned/s | queries/s | GB a node "
        "| examples sharded: learned/s | queries/s | GB a node |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for nodes in NODES:
        for n in EXAMPLES:
            figures = [*by_trees(nodes, n), *by_examples(nodes, n)]
            shown = [
                f"{value:,.1f}" if i % 3 == 2 else f"{float(f'{value:.2g}'):,.0f}"
                for i, value in enumerate(figures)
            ]
            lines.append(f"| {nodes:,} | {n:.0e} | ".replace("+0", "") + " | ".join(shown) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
