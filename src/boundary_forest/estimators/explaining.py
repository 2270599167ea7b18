"""How a fitted forest answers a query: paths of its trees, and what each leaf has in the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.adaptive import (
    column_importances,
    importances_of,
    mixture_in,
    most_important,
    named_importances,
)
from boundary_forest.estimators.contributions import contributions_of
from boundary_forest.estimators.explanation import (
    Example,
    Explanation,
    RecentRow,
    Share,
    Step,
    TreePath,
)
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.forest_settings import lifetimes_of
from boundary_forest.estimators.ids import names_of
from boundary_forest.estimators.labels import ClassLabels, Endings
from boundary_forest.estimators.lifetime_stats import turnover_in


def explanation_of(fitted: Fitted, row: NDArray[Any]) -> Explanation:
    """Return how a fitted forest answers one query, of shape (1, n_features)."""
    trees, weights, estimate, examples, recent = fitted.engine.paths(row)
    positions, labels, arrivals, ids = examples
    arrivals = fitted.rows(arrivals)
    policy = fitted.labels
    weights, shown = policy.weighed(weights), policy.shown(labels)
    paths = [
        TreePath(
            tuple(
                Step(int(arrivals[place]), float(distance), shown[place])
                for place, distance in zip(places, distances, strict=True)
            ),
            float(weight),
            lifetime or None,
        )
        for (places, distances), weight, lifetime in zip(
            trees, weights, _lives(fitted), strict=True
        )
    ]
    leaves = np.array([places[-1] for places, _ in trees])
    answer, confidence = policy.concluded(
        Endings(
            query=row[0],
            estimate=estimate,
            weights=weights,
            distances=np.array([distances[-1] for _, distances in trees]),
            arrivals=arrivals[leaves],
            positions=positions[leaves],
            labels=labels[leaves],
            names=names_of(ids, arrivals)[leaves],
            deviation=fitted.engine.label_deviation,
        )
    )
    encoder = fitted.encoder
    names = [None] * len(leaves) if ids is None else names_of(ids, arrivals)[leaves].tolist()
    weighs = fitted.settings.adaptive.get("feature_weights") is not None
    features = fitted.engine.features() if weighs else None
    column_names: Iterable[Any] = (
        [f"x{i}" for i in range(fitted.n_columns)]
        if fitted.feature_names is None
        else fitted.feature_names
    )
    mixture = mixture_in(fitted)
    shares: tuple[Share, ...] = ()
    if isinstance(policy, ClassLabels):
        shares = _mixed_shares(paths, policy, estimate) if mixture else _shares(paths, answer)
    explained = Explanation(
        answer,
        min(1.0, max(0.0, float(confidence))),
        tuple(paths),
        () if features is None else _importances(fitted, column_names, *features),
        shares,
        _with_rows(
            _examples(paths, names),
            dict(zip(arrivals.tolist(), positions, strict=True)),
            partial(
                contributions_of,
                fitted.settings.metric,
                fitted.settings.metric_params,
                None if features is None else np.asarray(features[0]),
                row[0],
            ),
        ),
        turnover_in(fitted),
        row[0],
        tuple(map(str, column_names)),
        tuple(mixture.items()),
        _recent_rows(fitted, *recent),
    )
    if encoder is None or (encoder.layout.is_plain and row.shape[1] == encoder.n_columns):
        return explained
    return explained.in_columns(explained.feature_names, encoder.column_of, encoder.decoded)


def _recent_rows(
    fitted: Fitted,
    arrivals: NDArray[np.uint64],
    labels: NDArray[np.float64],
    distances: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> tuple[RecentRow, ...]:
    """Return the rows that experts of a stream answer from, the largest share first."""
    if not len(arrivals):
        return ()
    found = (
        RecentRow(int(arrival), label, float(distance), float(share))
        for arrival, label, distance, share in zip(
            fitted.rows(arrivals), fitted.labels.shown(labels), distances, shares, strict=True
        )
    )
    return tuple(sorted(found, key=lambda row: (-row.share, row.distance, -row.arrival)))


def _lives(fitted: Fitted) -> list[int]:
    """Return the lifetime of each tree; 0 is unlimited."""
    n = fitted.settings.n_estimators
    return lifetimes_of(fitted.settings.adaptive.get("forgetting"), n) or [0] * n


def _shares(paths: list[TreePath], answer: Any) -> tuple[Share, ...]:
    """Return what each class has of the votes, the answer's first, the others by their size."""
    found: dict[Any, Share] = {}
    for path in paths:
        label = path.steps[-1].label
        known = found.get(label, Share(label, 0.0, 0))
        found[label] = Share(label, known.share + path.weight, known.trees + 1)
    return tuple(sorted(found.values(), key=lambda share: (share.label != answer, -share.share)))


def _mixed_shares(
    paths: list[TreePath], policy: ClassLabels, estimate: NDArray[np.float64]
) -> tuple[Share, ...]:
    """Return the probability of each class, and how many trees end at it, the largest first."""
    ends = Counter(path.steps[-1].label for path in paths)
    labels = policy.shown(estimate[:, :1])
    shares = (
        Share(label, share, ends[label])
        for label, share in zip(labels, estimate[:, 1].tolist(), strict=True)
    )
    return tuple(sorted(shares, key=lambda share: -share.share))


def _examples(paths: list[TreePath], ids: list[Any]) -> tuple[Example, ...]:
    """Return the examples that trees end at, the largest share first, of equals the nearest.

    Shares may be negative in a mixture: then those that count most come first.
    """
    found: dict[int, Example] = {}
    for path, name in zip(paths, ids, strict=True):
        end = path.steps[-1]
        new = Example(end.arrival, name, end.label, end.distance, 0.0, 0)
        known = found.get(end.arrival, new)
        found[end.arrival] = replace(known, share=known.share + path.weight, trees=known.trees + 1)
    return tuple(sorted(found.values(), key=lambda e: (-abs(e.share), e.distance, e.arrival)))


def _with_rows(
    examples: tuple[Example, ...],
    positions: dict[int, NDArray[Any]],
    contributions_in: Callable[[NDArray[Any]], NDArray[np.float64] | None],
) -> tuple[Example, ...]:
    """Return examples with their rows, by arrival number, and what features contribute."""
    rows = np.stack([positions[example.arrival] for example in examples])
    contributions = contributions_in(rows)
    each = [None] * len(rows) if contributions is None else list(contributions)
    return tuple(
        replace(example, values=row, contributions=shares)
        for example, row, shares in zip(examples, rows, each, strict=True)
    )


def _importances(
    fitted: Fitted,
    names: Iterable[Any],
    weights: NDArray[np.float64],
    variances: NDArray[np.float64],
) -> tuple[tuple[str, float], ...]:
    importances = column_importances(fitted, importances_of(weights, variances))
    return most_important(named_importances(names, importances))
