"""What a stream has to show: the state at a moment, and what the whole run leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Snapshot:
    """What a panel or a plain line shows, several times a second at most.

    ``error`` is the share of wrong answers (classification), ``mae`` and ``r2`` are regression's;
    the others are None. "Recent" is over the latest answers, or the latest seconds.
    """

    source: str
    task: str  # "classify" or "regress"
    rows: int
    total_rows: int | None
    learned: int
    unlabelled: int
    bad: int
    unseen_categories: int
    seconds: float
    rows_per_s: float
    recent_rows_per_s: float
    error: float | None
    recent_error: float | None
    mae: float | None
    recent_mae: float | None
    r2: float | None
    recent_r2: float | None
    stored: int
    trees: int
    nodes_per_tree: float
    memory_bytes: int
    choices: tuple[str, ...]  # one line each: what was inferred and decided


@dataclass(frozen=True)
class HardExample:
    """A row that was answered wrongly with high confidence, or with a large residual.

    ``explanation`` is that of ``model.explain``, one dict for each tree: label, distance, weight
    and arrival number of the example that the tree ended at.
    """

    row: int
    true: str
    answered: str
    confidence: float | None
    residual: float | None
    features: dict[str, str]
    explanation: list[dict[str, Any]]


@dataclass
class History:
    """What a report is made of; bounded in size, whatever the length of the stream."""

    snapshots: list[Snapshot] = field(default_factory=list)  # thinned to about 500
    # (true, answered) -> count; the largest 50 classes, the rest as "other"
    confusion: dict[tuple[str, str], int] = field(default_factory=dict)
    pairs: list[tuple[float, float]] = field(default_factory=list)  # (true, predicted), a sample
    hardest: list[HardExample] = field(default_factory=list)  # at most 20
    tree_depths: list[list[int]] = field(default_factory=list)  # per tree: nodes at each depth
    parameters: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
