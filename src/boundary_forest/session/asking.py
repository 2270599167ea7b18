"""Answers with their confidence, and learning, of one forest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.frames.columns import CLASSIFY

Answers = tuple[NDArray[Any] | None, NDArray[np.float64] | None]


def is_taught(forest: Any) -> bool:
    """Whether a forest, durable or not, has anything to answer with."""
    return int(forest.examples_seen) > 0


def ask(task: str, forest: Any, X: NDArray[Any]) -> Answers:
    """Answers and, in classification, the share of the votes that each had."""
    if not is_taught(forest):
        return None, None
    if task != CLASSIFY:
        return forest.predict(X), None
    return _best(forest, forest.predict_proba(X))


def ask_then_teach(task: str, forest: Any, X: NDArray[Any], y: NDArray[Any]) -> Answers:
    """The same, from before each row was learned."""
    if task != CLASSIFY:
        return forest.predict_then_learn(X, y), None
    return _best(forest, forest.predict_proba_then_learn(X, y))


def _best(forest: Any, shares: NDArray[np.float64]) -> Answers:
    best = shares.argmax(axis=1)
    return forest.classes_[best], shares[np.arange(len(best)), best]
