"""Gather what a report is made from while a session runs; bounded, whatever its length."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.adaptive import last_decision
from boundary_forest.frames.columns import CLASSIFY, REGRESS
from boundary_forest.frames.model import FrameModel
from boundary_forest.session.class_measures import MOST_CLASSES as COUNTED_CLASSES
from boundary_forest.session.class_measures import OTHER, as_text
from boundary_forest.session.events import Answered
from boundary_forest.session.hard_rows import (
    Examples,
    StoredExamples,
    WaitingExamples,
    hard_example,
)
from boundary_forest.session.history import HardExample, History, SessionSnapshot
from boundary_forest.session.quality_curve import QualityCurve

NO_PARENT = -1
MOST_SNAPSHOTS = 500
MOST_PAIRS = 5000
MOST_EXAMPLES = 20
MOST_IMPORTANCES = 200  # times
MOST_CLASSES = 50  # shown by name


def tree_depths(forest: Any) -> list[list[int]]:
    """Return, for each tree of a forest, the number of nodes at depth 0, 1, 2, ..."""
    if forest.examples_seen == 0:
        return []
    return [_depths(arrivals, parents) for arrivals, parents in forest.trees()]


def _depths(arrivals: NDArray[np.int64], parents: NDArray[np.int64]) -> list[int]:
    """Count level by level: the children of a level's nodes are the next level."""
    at = arrivals[parents == NO_PARENT]
    counts: list[int] = []
    order = np.argsort(parents, kind="stable")
    by_parent = parents[order]
    while len(at):
        counts.append(len(at))
        begin, end = np.searchsorted(by_parent, at), np.searchsorted(by_parent, at, side="right")
        at = arrivals[order[_ranges(begin, end)]]
    return counts


def _ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all numbers from each begin to its end."""
    lengths = end - begin
    starts = np.repeat(begin - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return starts + np.arange(lengths.sum())


class HistoryRecorder:
    """Gather the history of a session from its events and snapshots."""

    def __init__(self) -> None:
        self._snapshots: list[SessionSnapshot] = []
        self._pairs: list[tuple[float, float]] = []
        self._every = 1  # rows between two snapshots
        self._next = 0
        self._confusion: Counter[tuple[str, str]] = Counter()
        self._classes: set[str] = set()
        self._pairs_seen = 0
        self._random = random.Random(0)
        self._hardest: list[tuple[bool, float, int, HardExample]] = []
        self._importances: list[tuple[int, dict[str, float]]] = []
        self._next_importances = 1  # examples, from which on they are looked at again
        self._waiting = WaitingExamples()
        self._curves = {CLASSIFY: QualityCurve(), REGRESS: QualityCurve()}

    def snapshot_due(self, rows: int) -> bool:
        """Return whether a snapshot is due after so many rows."""
        return rows >= self._next

    def add_snapshot(self, snapshot: SessionSnapshot) -> None:
        """Keep a snapshot; once there are too many, keep every second one, and take fewer."""
        kept = self._snapshots
        kept.append(snapshot)
        if len(kept) > MOST_SNAPSHOTS:
            del kept[::2]
            self._every *= 2
        self._next = snapshot.rows + self._every

    def add_quality(self, task: str, totals: NDArray[np.float64] | None, rows: int) -> None:
        """Keep how good answers were, from what their scores returned after so many rows."""
        if totals is not None:
            self._curves[task].add(totals, rows)

    def add(self, rows: Answered, model: FrameModel | None, columns: Sequence[str]) -> None:
        """Keep what was answered, right after the call that answered it.

        ``model`` is what answered the rows, None during the warm-up; ``columns`` are those that
        the answers were made from.
        """
        if rows.y is None:
            return
        examples: Examples = self._waiting
        if rows.arrival is None:
            self._waiting.add(rows.table.select(columns))
        elif model is not None:
            self._waiting.clear()
            examples = StoredExamples(model)
        self.add_answers(rows)
        if rows.answers is not None:
            self._look_for_hard(rows, lambda i: hard_example(rows, i, model, columns, examples))

    def add_answers(self, rows: Answered) -> None:
        """Keep how answers and targets agree, without looking for hard rows."""
        if rows.y is None or rows.answers is None:
            return
        if rows.task == CLASSIFY:
            self._confuse(rows)
        else:
            self._pair(rows)

    def add_importances(self, model: FrameModel) -> None:
        """Keep the importances of columns if weights were learned since they were last kept."""
        adaptive = model.forest.fitted.settings.adaptive
        forgets = adaptive["forgetting"] is not None
        decided = last_decision(model.examples_seen, forgets=forgets)
        if decided >= self._next_importances and adaptive["feature_weights"]:
            self.keep_importances(decided, model.feature_importances_)

    def keep_importances(self, decided: int, importances: dict[str, float]) -> None:
        """Keep the importances of columns that were decided after so many examples."""
        kept = self._importances
        if decided < self._next_importances:
            return
        kept.append((decided, importances))
        if len(kept) > MOST_IMPORTANCES:  # of a forest that forgets: every second one
            del kept[1:-1:2]
        self._next_importances = 1 + decided + (kept[-1][0] - kept[0][0]) // MOST_IMPORTANCES

    def kept_importances(self) -> list[tuple[int, dict[str, float]]]:
        """Return what was kept of them."""
        return list(self._importances)

    def importances(self, model: FrameModel) -> list[tuple[int, dict[str, float]]]:
        """Return what was kept of them, and what they are now: variances change meanwhile."""
        self.add_importances(model)
        kept, seen = self._importances, model.examples_seen
        if kept and kept[-1][0] < seen:
            return [*kept, (seen, model.feature_importances_)]
        return list(kept)

    def history(self, forest: Any, last: SessionSnapshot) -> History:
        """Return what was gathered up to the state ``last``; ``forest`` is None if there is none.

        The history is the caller's own: the recorder continues.
        """
        classified = last.task == CLASSIFY
        ranked = sorted(self._hardest, key=lambda entry: entry[:3], reverse=True)
        return History(
            snapshots=[*self._snapshots, last],
            curve=self._curves[last.task].points(last.task),
            confusion=self._folded() if classified else {},
            pairs=[] if classified else list(self._pairs),
            hardest=[example for *_, example in ranked],
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

    def _look_for_hard(self, rows: Answered, look: Callable[[int], HardExample]) -> None:
        """Keep the hardest rows; those of the warm-up only as far as there are no others.

        In the warm-up the nearest row alone decides, and is always sure.
        """
        assert rows.y is not None
        assert rows.answers is not None
        if rows.confidence is not None:
            hardness = np.where(rows.answers != rows.y, rows.confidence, 0.0)
        else:
            hardness = np.abs(rows.answers - rows.y)
        by_forest = rows.arrival is not None
        for i in np.argsort(-hardness, kind="stable").tolist():
            # Equals are ranked by a hash: else the first mistakes would fill the list.
            key = by_forest, float(hardness[i]), int(rows.numbers[i]) * 2654435761 % 2**32
            full = len(self._hardest) == MOST_EXAMPLES
            if hardness[i] == 0 or (full and key[:2] < self._hardest[0][:2]):
                break
            if not full:
                heapq.heappush(self._hardest, (*key, look(i)))
            elif key > self._hardest[0][:3]:
                heapq.heapreplace(self._hardest, (*key, look(i)))
