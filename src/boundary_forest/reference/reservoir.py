"""A uniform sample of all arrivals, which trees learn again while rows come sorted by class.

Its members are the arrivals of least hash64(seed, arrival). One that is forgotten leaves its place
empty. Every 512 arrivals the classes of the latest 256 are compared with those of the members, by
Morisita's index; while they overlap too little, each arrival is followed by a member. Up to 1,024
arrivals this is done every 64, and not more than half of all arrivals are compared.

>>> overlap([0, 0, 1, 1], [0, 1, 0, 1]), overlap([0, 0, 0, 0], [1, 1, 1, 1])
(1.5, 0.0)
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from boundary_forest.reference.randomness import hash64

Row = Any  # a 1-D numpy array
Example = tuple[int, Row, Row]  # an arrival number, a position and a label

MOST_MEMBERS = 2000
REPLAY_PERIOD, EARLY_PERIOD = 512, 64  # arrivals
EARLY = 1024  # arrivals
MOST_RECENT = 256  # arrivals whose classes are compared
LEAST_OVERLAP, LEAST_OVERLAP_OF_STREAMS = 0.75, 0.6


def overlap(latest: Sequence[int], members: Sequence[int]) -> float:
    """How much more often classes are the same across samples than within one; or 1."""
    n, m = len(latest), len(members)
    if n < 2 or m < 2:
        return 1.0
    p, q = Counter(latest), Counter(members)
    within = sum(x * (x - 1) for x in p.values()) / (n * (n - 1))
    within += sum(x * (x - 1) for x in q.values()) / (m * (m - 1))
    return 2 * (sum(x * q[c] for c, x in p.items()) / (n * m)) / within if within else 1.0


class Reservoir:
    """``max_stored`` limits it to a quarter of that; 0 is no limit."""

    def __init__(self, seed: int, max_stored: int, *, forgets: bool = False) -> None:
        self.seed, self.replays = seed, False
        self.forgets = forgets
        self.capacity = min(MOST_MEMBERS, max_stored // 4) if max_stored else MOST_MEMBERS
        # By key: (key, arrival), and the example, or None once it is forgotten.
        self.keys: list[tuple[int, int]] = []
        self.examples: dict[int, Example | None] = {}

    @property
    def members(self) -> list[Example]:
        """Those that are not forgotten, by key."""
        found = (self.examples[a] for _, a in self.keys)
        return [example for example in found if example is not None]

    def add(self, a: int, y: Row, c: Row) -> None:
        bisect.insort(self.keys, (hash64(self.seed, a), a))
        self.examples[a] = (a, y, c)
        if len(self.keys) > self.capacity:
            del self.examples[self.keys.pop()[1]]

    def replayed(self, a: int) -> Example | None:
        """What trees learn again after arrival a."""
        if not self.replays:
            return None
        return self.examples[self.keys[hash64(self.seed, a, 1) % len(self.keys)][1]]

    def mixed(self, last: Sequence[Example], n: int) -> list[Example]:
        """The last arrivals and the first n members, by key."""
        found = {a: self.examples[a] for _, a in self.keys[:n]}
        found |= {example[0]: example for example in last}
        return sorted(
            (example for example in found.values() if example is not None),
            key=lambda example: (hash64(self.seed, example[0]), example[0]),
        )

    def forget(self, arrivals: Collection[int]) -> None:
        self.examples |= dict.fromkeys(self.examples.keys() & set(arrivals))

    def decide(self, seen: int, window: Sequence[Example]) -> None:
        """After so many arrivals, of which the window has the last."""
        if seen % (EARLY_PERIOD if seen < EARLY else REPLAY_PERIOD) == 0:
            first = seen - min(MOST_RECENT, seen // 2)
            latest = [example for example in window if example[0] >= first]
            classes = [[int(c[0]) for _, _, c in some] for some in (latest, self.members)]
            of_stream = self.forgets and seen >= 2 * MOST_RECENT
            least = LEAST_OVERLAP_OF_STREAMS if of_stream else LEAST_OVERLAP
            self.replays = overlap(*classes) < least
