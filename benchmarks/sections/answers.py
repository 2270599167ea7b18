"""Errors of ``for_tables()`` on many tables compared with boosting, a random forest and k-NN.

Every learner has its defaults and raw columns (k-NN standardised ones). Tables are split 75 to 25,
or as they come, and have at most 16,000 rows; splits and seeds change together. Regression is
judged by 1 - R2. Means over tables are geometric, of errors + 0.1 percent.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import Array, Data, generated_table, load_table, stored
from benchmarks.harness import Settings, limited, target
from benchmarks.report import new_table
from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor

try:
    import lightgbm
except ImportError:  # it is reported as not installed
    lightgbm = None

SEEDS = 3
MOST_ROWS = 16_000
BIG = 3_000  # rows from which calibration is judged
OTHERS = {"letter": False, "dna": False, "pendigits": False, "california": True, "abalone": True}
OURS, AUTO, BOOSTED, FOREST = "for_tables()", "weights='auto'", "LightGBM", "RandomForest(100)"


def learners(seed: int, *, regression: bool) -> dict[str, Callable[[], Any]]:
    """Return what is compared, by title."""
    ours: Any = BoundaryForestRegressor if regression else BoundaryForestClassifier
    forest: Any = RandomForestRegressor if regression else RandomForestClassifier
    boosting: Any = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    nearest: Any = KNeighborsRegressor if regression else KNeighborsClassifier
    compared: dict[str, Callable[[], Any]] = {
        OURS: lambda: ours.for_tables(random_state=seed),
        AUTO: lambda: ours.for_tables(weights="auto", random_state=seed),
        FOREST: lambda: forest(100, random_state=seed),
        "HistGradientBoosting": lambda: boosting(random_state=seed),
        "5-NN, scaled": lambda: make_pipeline(StandardScaler(), nearest(5)),
    }
    if lightgbm is not None:
        light: Any = lightgbm.LGBMRegressor if regression else lightgbm.LGBMClassifier
        compared[BOOSTED] = lambda: light(random_state=seed, n_jobs=1, verbose=-1)
    return compared


def tables(seed: int, *, smoke: bool) -> Iterator[tuple[Data, bool]]:
    """Yield each table that is at hand, split, and whether it has numbers as labels."""
    folder = Path(os.environ.get("BOUNDARY_FOREST_DATA", ".")).expanduser() / "tables"
    for path in () if smoke else sorted(folder.glob("*.npz")):
        with np.load(path) as table:
            X, y, regression = table["X"].astype(float), table["y"], str(table["kind"]) == "r"
        rows = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
        cut = 3 * len(rows) // 4
        a, b = rows[:cut], rows[cut:]
        yield Data(path.stem, X[a], y[a], X[b], y[b], is_real=True), regression
    for name, regression in OTHERS.items():
        if not smoke and stored(name) is not None:
            data = load_table(name, seed).shuffled(seed)
            yield data.first(3 * MOST_ROWS // 4, MOST_ROWS // 4), regression
    if smoke:
        yield generated_table(600, n_useful=2, n_features=4, name="generated"), False


def measure(settings: Settings) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with limited(1):
        for seed in range(settings.size(SEEDS, 1)):
            for data, regression in tables(seed, smoke=settings.smoke):
                part = parts.setdefault(
                    data.name,
                    {"regression": regression, "is_real": data.is_real, "rows": {},
                     "n": len(data.y_train) + len(data.y_test)},
                )  # fmt: skip
                for title, make in learners(seed, regression=regression).items():
                    settings.say(f"{data.name}, seed {seed}: {title}")
                    row = part["rows"].setdefault(title, {})
                    for name, value in judged(make(), data, regression=regression).items():
                        row.setdefault(name, []).append(value)
    found = summary(parts)
    return {
        "parts": parts,
        "checks": [],
        "missing": [BOOSTED] if lightgbm is None else [],
        "summary": found,
        "targets": [] if settings.smoke else targets(found, parts),
    }


def judged(learner: Any, data: Data, *, regression: bool) -> dict[str, float]:
    """Return the error in percent, the time of fit and predict, and for classes what of these."""
    begin = process_time()
    learner.fit(data.X_train, data.y_train)
    answers = learner.predict(data.X_test)
    seconds = process_time() - begin
    y = data.y_test
    if regression:
        return {"error": 100 * float(np.mean((answers - y) ** 2) / np.var(y)), "seconds": seconds}
    P = learner.predict_proba(data.X_test)
    known = np.isin(y, learner.classes_)
    return {
        "error": 100 * float(np.mean(answers != y)),
        "seconds": seconds,
        "log_loss": float(log_loss(y[known], P[known], labels=learner.classes_)),
        "calibration": calibration_error(P, answers == y),
    }


def calibration_error(P: Array, is_right: Array, bins: int = 10) -> float:
    """Return the expected calibration error of the largest probabilities."""
    confidence = P.max(axis=1)
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(places, is_right - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def summary(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return geometric means of errors and times relative to other learners, ranks, and more."""
    mean = {
        name: {title: float(np.mean(row["error"])) for title, row in part["rows"].items()}
        for name, part in parts.items()
    }
    peers = [title for title in next(iter(mean.values())) if title not in (OURS, AUTO)]

    def ratio(title: str, skipped: tuple[str, ...] = ()) -> float:
        logs = [
            np.log((e[OURS] + 0.1) / (e[title] + 0.1)) for n, e in mean.items() if n not in skipped
        ]
        return float(np.exp(np.mean(logs))) if logs else 1.0

    def times(title: str) -> list[float]:
        rows = [part["rows"] for part in parts.values()]
        return [float(np.sum(r[OURS]["seconds"]) / np.sum(r[title]["seconds"])) for r in rows]

    ranked = [OURS, *peers]
    ranks = dict.fromkeys(ranked, 0.0)
    for errors in mean.values():
        for title in ranked:
            better = sum(errors[other] < errors[title] for other in ranked)
            equal = sum(errors[other] == errors[title] for other in ranked)
            ranks[title] += (better + (equal + 1) / 2) / len(mean)
    classes = [part["rows"] for part in parts.values() if not part["regression"]]
    worse = {}
    for name, part in parts.items():
        ours, auto = (np.array(part["rows"][title]["error"]) for title in (OURS, AUTO))
        gap = ours - auto
        deviation = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        if gap.mean() > 2 * deviation and gap.mean() > 0:
            worse[name] = [float(gap.mean()), float(deviation)]
    return {
        "error ratios": {title: ratio(title) for title in [*peers, AUTO]},
        "without car": {title: ratio(title, ("car",)) for title in [*peers, AUTO]},
        "wins": {t: sum(e[OURS] < e[t] for e in mean.values()) for t in [*peers, AUTO]},
        "ranks": ranks,
        "log_loss": {
            title: float(np.mean([np.mean(rows[title]["log_loss"]) for rows in classes]))
            for title in [OURS, AUTO, *peers]
        },
        "calibration": {
            name: float(np.mean(part["rows"][OURS]["calibration"]))
            for name, part in parts.items()
            if not part["regression"] and part["n"] >= BIG
        },
        "time ratios": {t: float(np.exp(np.mean(np.log(times(t))))) for t in [*peers, AUTO]},
        "largest time / auto's": max(times(AUTO)),
        "worse than auto by more than two standard errors": worse,
    }


def targets(found: Mapping[str, Any], parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the figures that the project wants to reach."""
    ratios, times = found["error ratios"], found["time ratios"]
    wanted = [
        target("error / RandomForest(100)'s", ratios[FOREST], at_most=0.82, goal=0.77),
        target("rank, less the best of the others",
               found["ranks"][OURS] - min(v for t, v in found["ranks"].items() if t != OURS),
               at_most=0.0),
        target("log-loss / RandomForest(100)'s",
               found["log_loss"][OURS] / found["log_loss"][FOREST], at_most=1.0),
        target("largest calibration error", max(found["calibration"].values(), default=0.0),
               at_most=0.03),
        target("time / weights='auto'", times[AUTO], at_most=1.6),
        target("largest time / weights='auto'", found["largest time / auto's"], at_most=3.0),
        target("time / RandomForest(100)'s", times[FOREST], at_most=0.5),
        target("tables worse than weights='auto'",
               len(found["worse than auto by more than two standard errors"]), at_most=0),
    ]  # fmt: skip
    if BOOSTED in ratios:
        wins = found["wins"][BOOSTED] / len(parts)
        loss = found["log_loss"][OURS] / found["log_loss"][BOOSTED]
        wanted += [
            target("error / LightGBM's", ratios[BOOSTED], at_most=0.96, goal=0.90),
            target("share of tables better than LightGBM", wins, at_least=14 / 23),
            target("log-loss / LightGBM's", loss, at_most=1.0),
        ]
    return wanted


def report(result: dict[str, Any], console: Console) -> None:
    titles = list(next(iter(result["parts"].values()))["rows"])
    for what, digits in (("error", 2), ("seconds", 2), ("log_loss", 3)):
        table = new_table({"error": "error in %", "seconds": "seconds"}.get(what, "log-loss"))
        table.add_column("", no_wrap=True)
        for title in titles:
            table.add_column(title, justify="right")
        for name, part in result["parts"].items():
            if what in next(iter(part["rows"].values())):
                values = (np.mean(part["rows"][title][what]) for title in titles)
                table.add_row(name, *(f"{value:.{digits}f}" for value in values))
        console.print(table)
    for what, value in result["summary"].items():
        console.print(f"{what}: {value}")
    for title in result["missing"]:
        console.print(f"{title}: not installed")
