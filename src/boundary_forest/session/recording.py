"""Gather what a report is made from while a session runs; bounded, whatever its length."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from typing import Any

import numpy as np

from boundary_forest.estimators.adaptive import last_decision
from boundary_forest.frames.columns import CLASSIFY
from boundary_forest.frames.model import FrameModel
from boundary_forest.session.class_scores import MOST_CLASSES as COUNTED_CLASSES
from boundary_forest.session.class_scores import OTHER, as_text
from boundary_forest.session.deciding import Decision
from boundary_forest.session.events import Answered
from boundary_forest.session.progress import HardExample, History, Snapshot
from boundary_forest.session.shapes import tree_depths

MOST_SNAPSHOTS = 500
MOST_PAIRS = 5000
MOST_EXAMPLES = 20
MOST_CLASSES = 50  # shown by name


class Recorder:
    """Gather the history of a session from its events and snapshots."""

    def __init__(self) -> None:
        self._snapshots: list[Snapshot] = []
        self._pairs: list[tuple[float, float]] = []
        self._every = 1  # rows between two snapshots
        self._next = 0
        self._confusion: Counter[tuple[str, str]] = Counter()
        self._classes: set[str] = set()
        self._pairs_seen = 0
        self._random = random.Random(0)
        self._hardest: list[tuple[float, int, HardExample]] = []
        self._importances: list[tuple[int, dict[str, float]]] = []

    def wants(self, rows: int) -> bool:
        """Return whether a snapshot is due after so many rows."""
        return rows >= self._next

    def see(self, snapshot: Snapshot) -> None:
        """Keep a snapshot; once there are too many, keep every second one, and take fewer."""
        kept = self._snapshots
        kept.append(snapshot)
        if len(kept) > MOST_SNAPSHOTS:
            del kept[::2]
            self._every *= 2
        self._next = snapshot.rows + self._every

    def add(self, rows: Answered, forest: Any) -> None:
        """Keep what was answered, right after the call that answered it.

        ``forest`` is what answered the rows; None during the warm-up.
        """
        if rows.y is None or rows.answers is None:
            return
        if rows.task == CLASSIFY:
            self._confuse(rows)
        else:
            self._pair(rows)
        if forest is not None and rows.arrival is not None:
            self._look_for_hard(rows, forest)

    def weigh(self, model: FrameModel) -> None:
        """Keep the importances of columns if weights were learned since they were last kept."""
        decided = last_decision(model.examples_seen)
        before = self._importances[-1][0] if self._importances else 0
        if decided > before and model.forest.fitted.settings.adaptive["feature_weights"]:
            self._importances.append((decided, model.feature_importances_))

    def importances(self, model: FrameModel) -> list[tuple[int, dict[str, float]]]:
        """Return what was kept of them, and what they are now: variances change meanwhile."""
        self.weigh(model)
        kept, seen = self._importances, model.examples_seen
        if kept and kept[-1][0] < seen:
            return [*kept, (seen, model.feature_importances_)]
        return list(kept)

    def history(self, forest: Any, last: Snapshot) -> History:
        """Return what was gathered up to the state ``last``; ``forest`` is None if there is none.

        The history is the caller's own: the recorder continues.
        """
        classified = last.task == CLASSIFY
        ranked = sorted(self._hardest, key=lambda entry: entry[:2], reverse=True)
        return History(
            snapshots=[*self._snapshots, last],
            confusion=self._folded() if classified else {},
            pairs=[] if classified else list(self._pairs),
            hardest=[example for _, _, example in ranked],
            tree_depths=[] if forest is None else tree_depths(forest),
        )

    def _confuse(self, rows: Answered) -> None:
        assert rows.y is not None
        true, true_codes = np.unique(rows.y, return_inverse=True)
        assert rows.answers is not None
        answers, answer_codes = np.unique(rows.answers, return_inverse=True)
        pairs, counts = np.unique(true_codes * len(answers) + answer_codes, return_counts=True)
        for pair, n in zip(pairs.tolist(), counts.tolist(), strict=True):
            a, b = divmod(pair, len(answers))
            self._confusion[self._class(true[a]), self._class(answers[b])] += n

    def _class(self, label: Any) -> str:
        name = as_text(label)
        if name not in self._classes:
            if len(self._classes) >= COUNTED_CLASSES:
                return OTHER
            self._classes.add(name)
        return name

    def _folded(self) -> dict[tuple[str, str], int]:
        """Return the counts with the largest classes by name, the rest together."""
        sizes: Counter[str] = Counter()
        for (true, _), n in self._confusion.items():
            sizes[true] += n
        named = {name for name, _ in sizes.most_common(MOST_CLASSES)}
        folded: Counter[tuple[str, str]] = Counter()
        for (true, answer), n in self._confusion.items():
            folded[true if true in named else OTHER, answer if answer in named else OTHER] += n
        return dict(folded)

    def _pair(self, rows: Answered) -> None:
        """Keep a sample of all pairs, each as likely as any other (reservoir sampling)."""
        assert rows.y is not None
        assert rows.answers is not None
        pairs = self._pairs
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
            # Equals are ranked by a hash: else the first mistakes would fill the list.
            number = int(rows.numbers[i])
            key = float(hardness[i]), number * 2654435761 % 2**32
            if len(self._hardest) == MOST_EXAMPLES and key <= self._hardest[0][:2]:
                continue
            entry = (*key, _hard_example(rows, i, forest))
            if len(self._hardest) < MOST_EXAMPLES:
                heapq.heappush(self._hardest, entry)
            else:
                heapq.heapreplace(self._hardest, entry)


def _hard_example(rows: Answered, i: int, forest: Any) -> HardExample:
    assert rows.y is not None
    assert rows.answers is not None
    row = rows.table.slice(i, 1).to_pylist()[0]
    shares: dict[Any, float] = {}
    if rows.result.shares is not None and rows.result.classes is not None:
        every = zip(rows.result.classes.tolist(), rows.result.shares[i].tolist(), strict=True)
        shares = {label: share for label, share in every if share > 0}
    answer, ends = rows.answers[i], rows.result.ends
    if ends is None:  # nothing is learned, so that the forest is still what answered
        decision = Decision.of_explanation(forest.explain(rows.X[i]))
    else:
        decision = Decision.of_row(ends, i)
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return HardExample(
        row=int(rows.numbers[i]),
        true=as_text(rows.y[i]),
        answered=as_text(answer),
        confidence=None if rows.confidence is None else float(rows.confidence[i]),
        residual=float(answer - rows.y[i]) if rows.confidence is None else None,
        features={name: str(value) for name, value in row.items()},
        shares=tuple((as_text(label), share) for label, share in ranked),
        decision=decision,
    )
