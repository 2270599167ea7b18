"""Histories of streams that never ran, for the tests of what is shown of them."""

import math
import random

from boundary_forest.estimators.lifetime_stats import Lifetime, Turnover, vote_rule
from boundary_forest.session.class_measures import Bin, ClassScores
from boundary_forest.session.history import HardExample, History, SessionSnapshot
from boundary_forest.session.scores import MEASURES
from boundary_forest.session.vote_breakdown import VoteBreakdown, VotingExample


def snapshot(rows=1200, **changes):
    """A state after so many rows of a classification."""
    values = {
        "source": "rows.csv",
        "task": "classify",
        "predicting": True,
        "rows": rows,
        "total_rows": 4000,
        "about_rows": None,
        "learned": rows,
        "unlabelled": 0,
        "bad": 0,
        "unseen_categories": 0,
        "seconds": rows / 1000,
        "rows_per_s": 1000.0,
        "recent_rows_per_s": 1234.5,
        "pace": None,
        "error": 0.05 + 1 / (rows + 1),
        "recent_error": 0.04 + 0.01 * math.sin(rows),
        "accuracy": 0.95 - 1 / (rows + 1),
        "majority_accuracy": 0.125,
        "no_change_accuracy": 0.0625,
        "kappa": 0.94,
        "macro_f1": 0.945,
        "log_loss": 0.31,
        "recent_log_loss": 0.29,
        "confidence": 0.875,
        "recent_confidence": 0.89,
        "mae": None,
        "recent_mae": None,
        "rmse": None,
        "r2": None,
        "recent_r2": None,
        "stored": rows // 2,
        "trees": 50,
        "nodes_per_tree": rows / 5,
        "forest_bytes": 100 * rows,
        "memory_bytes": 400 * rows,
        "choices": (
            "task: classify, 10 distinct integers",
            "scale: standard, of the first 1,000 rows",
        ),
    }
    return SessionSnapshot(**(values | changes))


def regression(rows=1200, **changes):
    """The same of a regression."""
    values = {"task": "regress"} | dict.fromkeys(MEASURES)
    values |= {"mae": 0.5 + 1 / (rows + 1), "recent_mae": 0.45 + 0.02 * math.sin(rows)}
    values |= {"rmse": 0.75, "r2": 0.6, "recent_r2": 0.65}
    return snapshot(rows, **(values | changes))


def classified(n_classes=10, n_snapshots=40, names=None, **parts):
    """The history of a classification."""
    rng = random.Random(0)
    names = names or [f"class {i}" for i in range(n_classes)]
    confusion = {(c, c): rng.randint(50, 90) for c in names}
    for _ in range(3 * len(names)):
        confusion.setdefault((rng.choice(names), rng.choice(names)), rng.randint(1, 9))
    hardest = [
        HardExample(
            row=100 + i,
            true=names[0],
            answered=names[-1],
            confidence=0.9 - i / 100,
            residual=None,
            features={f"f{j}": f"{rng.random():.4f}" for j in range(16)},
            shares=((names[-1], 0.9 - i / 100), (names[0], 0.1 + i / 100)),
            votes=_votes([names[-1] if t % 9 else names[0] for t in range(25)]),
        )
        for i in range(20)
    ]
    values = {
        "snapshots": [snapshot(100 * (i + 1)) for i in range(n_snapshots)],
        "confusion": confusion,
        "by_class": _by_class(confusion),
        "reliability": [Bin(10 + i, (i + 0.5) / 10, (i + 0.5) / 12) for i in range(2, 10)],
        "hardest": hardest,
        "tree_depths": [[1, 12, 40 + t, 30, 5] for t in range(50)],
        "importances": importances(),
        "parameters": {"n_estimators": 50, "metric": "euclidean"},
        "summary": {"saved to": "model.bf"},
        "run": {"date": "2026-01-02 03:04", "command": "boundary-forest stream rows.csv"},
    }
    return History(**(values | parts))


def importances(n_columns=24):
    """Of columns of which one ends with half, recorded at three decisions and at the end."""
    shares = [0.5, *([0.5 / (n_columns - 1)] * (n_columns - 1))]
    names = [f"f{j}" for j in range(n_columns)]
    return [
        (rows, dict(zip(names, shares[i:] + shares[:i], strict=True)))
        for i, rows in ((2, 1000), (1, 2000), (0, 4000), (0, 4100))
    ]


def regressed(n_pairs=5000, n_snapshots=40, **parts):
    """The history of a regression."""
    rng = random.Random(0)
    pairs = [(t := rng.gauss(0, 1), t + rng.gauss(0, 0.4)) for _ in range(n_pairs)]
    hardest = [
        HardExample(
            row=100 + i,
            true=f"{i}.25",
            answered=f"{i - 4}.5",
            confidence=None,
            residual=-3.75,
            features={"a": "1", "b": "2.5"},
            shares=(),
            votes=_votes([i - 4 + t / 25 for t in range(25)]),
        )
        for i in range(20)
    ]
    values = {
        "snapshots": [regression(100 * (i + 1)) for i in range(n_snapshots)],
        "pairs": pairs,
        "hardest": hardest,
        "tree_depths": [[1, 12, 40 + t, 30, 5] for t in range(50)],
        "parameters": {"n_estimators": 50, "epsilon": "auto"},
    }
    return History(**(values | parts))


def standing(rows, rule=0, classes=True):
    """How six trees stand after so many rows."""
    good = (0.9, None) if classes else (None, 0.5)
    groups = (Lifetime(16, 2, 8, 20, rows // 8, *good), Lifetime(None, 4, rows, rows, 3, *good))
    return Turnover(rows // 8 + 3, vote_rule(rule, classes=classes), rule, groups)


def forgetful():
    """The history of a classification by a forest that forgets."""
    rows = range(100, 4001, 100)
    states = [snapshot(n, turnover=standing(n, rule=n // 100 % 8)) for n in rows]
    return classified(snapshots=states)


def _by_class(confusion):
    """The scores of each class that go with a confusion matrix."""
    scores = ClassScores()
    for (true, answered), n in confusion.items():
        scores.add([true] * n, [answered] * n)
    return scores.by_class()


def _votes(labels):
    """Pairs of trees that ended at an example of each label."""
    ends = [
        VotingExample(t, label, 1.5 + t / 5, 2, 1 / len(labels)) for t, label in enumerate(labels)
    ]
    return VoteBreakdown(tuple(ends))
