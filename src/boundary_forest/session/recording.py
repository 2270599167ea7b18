"""What a report is made of, gathered while the stream runs; bounded, whatever its length."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from typing import Any

import numpy as np

from boundary_forest.estimators.explanation import Step
from boundary_forest.frames.columns import CLASSIFY
from boundary_forest.session.events import Answered
from boundary_forest.session.progress import HardExample, History, Snapshot
from boundary_forest.session.shapes import tree_depths

MOST_SNAPSHOTS = 500
MOST_PAIRS = 5000
MOST_EXAMPLES = 20
MOST_CLASSES = 50  # told by name
COUNTED_CLASSES = 1000  # told apart while the stream runs
OTHER = "other"


class Recorder:
    """Gathers a history."""

    def __init__(self) -> None:
        self.history = History()
        self._every = 1  # rows between two snapshots
        self._next = 0
        self._confusion: Counter[tuple[str, str]] = Counter()
        self._classes: set[str] = set()
        self._pairs_seen = 0
        self._random = random.Random(0)
        self._hardest: list[tuple[float, int, HardExample]] = []

    def wants(self, rows: int) -> bool:
        """Whether a snapshot is due after so many rows."""
        return rows >= self._next

    def see(self, snapshot: Snapshot) -> None:
        """Keep a snapshot; when there are too many, every second one, and fewer from then on."""
        kept = self.history.snapshots
        kept.append(snapshot)
        if len(kept) > MOST_SNAPSHOTS:
            del kept[::2]
            self._every *= 2
        self._next = snapshot.rows + self._every

    def add(self, rows: Answered, forest: Any) -> None:
        """Keep what was answered; ``forest`` is None during the warm-up."""
        if rows.y is None or rows.answers is None:
            return
        if rows.task == CLASSIFY:
            self._confuse(rows)
        else:
            self._pair(rows)
        if forest is not None and rows.arrival is not None:
            self._look_for_hard(rows, forest)

    def finish(self, forest: Any, last: Snapshot) -> History:
        """The whole history."""
        history = self.history
        if not history.snapshots or history.snapshots[-1] is not last:
            history.snapshots.append(last)
        history.confusion = self._folded()
        if last.task == CLASSIFY:
            history.pairs = []
        else:
            history.confusion = {}
        ranked = sorted(self._hardest, key=lambda entry: entry[:2], reverse=True)
        history.hardest = [example for _, _, example in ranked]
        history.tree_depths = tree_depths(forest)
        return history

    def _confuse(self, rows: Answered) -> None:
        assert rows.y is not None
        true, true_codes = np.unique(rows.y, return_inverse=True)
        assert rows.answers is not None
        said, said_codes = np.unique(rows.answers, return_inverse=True)
        pairs, counts = np.unique(true_codes * len(said) + said_codes, return_counts=True)
        for pair, n in zip(pairs.tolist(), counts.tolist(), strict=True):
            a, b = divmod(pair, len(said))
            self._confusion[self._class(true[a]), self._class(said[b])] += n

    def _class(self, label: Any) -> str:
        name = as_text(label)
        if name not in self._classes:
            if len(self._classes) >= COUNTED_CLASSES:
                return OTHER
            self._classes.add(name)
        return name

    def _folded(self) -> dict[tuple[str, str], int]:
        """The largest classes by name, the rest together."""
        sizes: Counter[str] = Counter()
        for (true, _), n in self._confusion.items():
            sizes[true] += n
        named = {name for name, _ in sizes.most_common(MOST_CLASSES)}
        folded: Counter[tuple[str, str]] = Counter()
        for (true, said), n in self._confusion.items():
            folded[true if true in named else OTHER, said if said in named else OTHER] += n
        return dict(folded)

    def _pair(self, rows: Answered) -> None:
        """A sample of all pairs, each as likely as any other (reservoir sampling)."""
        assert rows.y is not None
        assert rows.answers is not None
        pairs = self.history.pairs
        for pair in zip(rows.y.tolist(), rows.answers.tolist(), strict=True):
            self._pairs_seen += 1
            if len(pairs) < MOST_PAIRS:
                pairs.append(pair)
            elif (place := self._random.randrange(self._pairs_seen)) < MOST_PAIRS:
                pairs[place] = pair

    def _look_for_hard(self, rows: Answered, forest: Any) -> None:
        assert rows.y is not None
        assert rows.answers is not None
        if rows.confidence is not None:
            hardness = np.where(rows.answers != rows.y, rows.confidence, -1.0)
        else:
            hardness = np.abs(rows.answers - rows.y)
        order = np.argsort(-hardness, kind="stable")
        least = self._hardest[0][0] if len(self._hardest) == MOST_EXAMPLES else 0.0
        for i in order[hardness[order] >= max(least, 1e-300)].tolist():
            # Among equals each is as likely to stay: else the first mistakes would fill the list.
            number = int(rows.numbers[i])
            key = float(hardness[i]), number * 2654435761 % 2**32
            if len(self._hardest) == MOST_EXAMPLES and key <= self._hardest[0][:2]:
                continue
            entry = (*key, _hard_example(rows, i, forest))
            if len(self._hardest) < MOST_EXAMPLES:
                heapq.heappush(self._hardest, entry)
            else:
                heapq.heapreplace(self._hardest, entry)


def as_text(label: Any) -> str:
    """A class or a number for people."""
    value = label.item() if isinstance(label, np.generic) else label
    return str(value).lower() if isinstance(value, bool) else str(value)


def _hard_example(rows: Answered, i: int, forest: Any) -> HardExample:
    assert rows.y is not None
    assert rows.answers is not None
    assert rows.arrival is not None
    row = rows.table.slice(i, 1).to_pylist()[0]
    regressing = rows.confidence is None
    return HardExample(
        row=int(rows.numbers[i]),
        true=as_text(rows.y[i]),
        answered=as_text(rows.answers[i]),
        confidence=None if rows.confidence is None else float(rows.confidence[i]),
        residual=float(rows.answers[i] - rows.y[i]) if regressing else None,
        features={name: str(value) for name, value in row.items()},
        explanation=_before(forest, rows.X[i], rows.arrival + i),
    )


def _before(forest: Any, x: Any, arrival: int) -> list[dict[str, Any]]:
    """What each tree ended at when the example had not been learned yet.

    By now it has been, with the rest of its batch, and is a child of what answered it. So of each
    path the part before it is taken. Where an example that came later lies on the path, that is the
    last one from before, which may differ from the one that answered.
    """
    ends: list[Step] = []
    for tree in forest.explain(x).trees:
        older = [step for step in tree.steps if step.arrival < arrival]
        if older:
            ends.append(older[-1])
    distances = np.array([step.distance for step in ends])
    if len(ends) and (distances == 0).any():  # Shepard's weights
        weights = (distances == 0) / (distances == 0).sum()
    else:
        weights = (1 / distances) / (1 / distances).sum() if len(ends) else distances
    return [
        {"label": s.label, "distance": s.distance, "weight": float(w), "arrival": s.arrival}
        for s, w in zip(ends, weights, strict=True)
    ]
