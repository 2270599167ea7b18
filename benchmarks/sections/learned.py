"""A distance that is learned: ``for_tables()`` beside the paper's forest and its alternatives.

Every learner gets raw columns, once, and one setting for all data sets, except that k-NN and the
paper's forest are also given standardised columns, which is how people use them. Shuffles of the
training rows are averaged over. Regression is judged by R2, classification by the error.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import Array, Data, generated_table, load_table
from benchmarks.harness import Settings, check, limited, target
from benchmarks.report import new_table, seconds_text
from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor
from paper.timing import timed

SHUFFLES = 5
CLASSES = ("letter", "dna", "pendigits", "covtype")
NOISY = ("letter", "pendigits")  # once more with a fifth of the labels drawn at random
NUMBERS = ("california", "abalone")
LIMITS = {"letter": 0.028, "dna": 0.064, "pendigits": 0.021, "covtype": 0.051}
LEAST_R2 = {"california": 0.832, "abalone": 0.53}


def learners(seed: int, threads: int, *, regression: bool) -> dict[str, Callable[[], Any]]:
    """Return what is compared, by title."""
    forest: Any = BoundaryForestRegressor if regression else BoundaryForestClassifier
    random_forest: Any = RandomForestRegressor if regression else RandomForestClassifier
    boosting: Any = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    nearest: Any = KNeighborsRegressor if regression else KNeighborsClassifier
    same = {"random_state": seed, "n_jobs": threads}
    return {
        "for_tables()": lambda: forest.for_tables(**same),
        "weights='auto'": lambda: forest.for_tables(weights="auto", **same),
        "50 trees, 0.5": lambda: forest.for_tables(n_estimators=50, max_samples=0.5, **same),
        "paper's forest": lambda: forest(**same),
        "paper's, scaled": lambda: make_pipeline(StandardScaler(), forest(**same)),
        "RandomForest(100)": lambda: random_forest(100, **same),
        "HistGradientBoosting": lambda: boosting(random_state=seed),
        "5-NN, scaled": lambda: make_pipeline(StandardScaler(), nearest(5, n_jobs=threads)),
    }


def measure(settings: Settings) -> dict[str, Any]:
    tables: list[tuple[Data, bool]] = []
    for name in CLASSES:
        data = load_table(name, settings.seed, smoke=settings.smoke)
        tables.append((data, False))
        if name in NOISY:
            tables.append((noisy(data, settings.seed), False))
    tables += [(load_table(name, settings.seed, smoke=settings.smoke), True) for name in NUMBERS]
    useful = generated_table(settings.size(50_000, 2_000), n_useful=3, n_features=20)
    tables.append((useful, False))
    parts = {
        data.name: compared(data, settings, regression=regression) for data, regression in tables
    }
    importances = for_tables(settings).fit(useful.X_train, useful.y_train).feature_importances_
    parts[useful.name]["importances"] = importances.tolist()
    return {"parts": parts, "checks": checks(tables[0][0], settings), "targets": targets(parts)}


def for_tables(settings: Settings, **more: Any) -> BoundaryForestClassifier:
    return BoundaryForestClassifier.for_tables(random_state=settings.seed, **more)


def noisy(data: Data, seed: int) -> Data:
    """Return the same with a fifth of the training labels drawn at random."""
    rng = np.random.default_rng(seed)
    flipped = rng.random(len(data.y_train)) < 0.2
    y = data.y_train.copy()
    y[flipped] = rng.choice(np.unique(y), flipped.sum())
    return replace(data, name=f"{data.name}, 20 % flipped", y_train=y)


def compared(data: Data, settings: Settings, *, regression: bool) -> dict[str, Any]:
    """Return each learner's scores and times over the shuffles, on one thread."""
    rows: dict[str, Any] = {}
    with limited(1):
        for shuffle in range(settings.size(SHUFFLES, 1)):
            shuffled = data.shuffled(shuffle)
            for title, make in learners(shuffle, 1, regression=regression).items():
                settings.say(f"{data.name}, shuffle {shuffle + 1}: {title}")
                learner = make()
                _, fit_s = timed(learner.fit, shuffled.X_train, shuffled.y_train)
                answers, predict_s = timed(learner.predict, shuffled.X_test)
                row = rows.setdefault(title, {"scores": [], "seconds": []})
                row["scores"].append(score(answers, shuffled.y_test, regression=regression))
                row["seconds"].append(fit_s + predict_s)
                if hasattr(learner, "stats"):
                    row["bytes"] = learner.stats()["bytes"]
    for row in rows.values():
        row["mean"] = float(np.mean(row["scores"]))
        row["sd"] = float(np.std(row["scores"], ddof=1)) if len(row["scores"]) > 1 else 0.0
        row["median_s"] = float(np.median(row["seconds"]))
    return {"title": data.title, "is_real": data.is_real, "regression": regression, "rows": rows}


def score(answers: Array, y: Array, *, regression: bool) -> float:
    """Return R2, or the error."""
    if regression:
        return float(1 - np.mean((answers - y) ** 2) / np.var(y))
    return float(np.mean(answers != y))


def targets(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the figures that the project wants to reach on real data."""
    wanted = []
    for name, part in parts.items():
        if not part["is_real"]:
            continue
        rows = part["rows"]
        ours, theirs = rows["for_tables()"], rows["RandomForest(100)"]
        ratio = ours["median_s"] / theirs["median_s"]
        wanted.append(target(f"{name}: time / RandomForest(100)'s", ratio, at_most=1.0))
        if name in LIMITS:
            wanted.append(target(f"{name}: error", ours["mean"], at_most=LIMITS[name]))
        elif name in LEAST_R2:
            wanted.append(target(f"{name}: R2", ours["mean"], at_least=LEAST_R2[name]))
        else:
            ratio = ours["mean"] / theirs["mean"]
            wanted.append(target(f"{name}: error / RandomForest(100)'s", ratio, at_most=1.1))
        if name == "covtype":
            cheap = rows["50 trees, 0.5"]["median_s"] / rows["paper's forest"]["median_s"]
            wanted.append(target("covtype: 50 trees, 0.5: time / paper's", cheap, at_most=2.0))
    for part in parts.values():
        if "importances" in part:
            rows = part["rows"]
            ratio = rows["for_tables()"]["mean"] / rows["paper's forest"]["mean"]
            wanted.append(target("3 useful of 20: error / paper's", ratio, at_most=0.2))
            largest = max(part["importances"][3:])
            wanted.append(target("3 useful of 20: useless importance", largest, at_most=0.01))
    return wanted


def checks(data: Data, settings: Settings) -> list[dict[str, Any]]:
    """Check that threads and batches change nothing, also across decisions."""
    data = data.first(3000, 500)
    once = for_tables(settings, shuffle=False).fit(data.X_train, data.y_train)
    batches = for_tables(settings, n_jobs=2)
    for start in range(0, len(data.y_train), 77):
        batches.partial_fit(data.X_train[start : start + 77], data.y_train[start : start + 77])
    same = once.fingerprint() == batches.fingerprint()
    return [check(f"{data.name}: the same forest by two threads and small batches", same)]


def report(result: dict[str, Any], console: Console) -> None:
    parts = result["parts"].values()
    titles = list(next(iter(parts))["rows"])
    for what, show in (
        ("error in %, or R2; sd over shuffles", score_text),
        (
            "seconds for fit and predict, one thread",
            lambda row, part: seconds_text(row["median_s"]),
        ),
    ):
        table = new_table(what)
        table.add_column("", no_wrap=True)
        for title in titles:
            table.add_column(title, justify="right")
        for name, part in result["parts"].items():
            table.add_row(name, *(show(part["rows"][title], part) for title in titles))
        console.print(table)


def score_text(row: dict[str, Any], part: dict[str, Any]) -> str:
    scale, digits = (1, 3) if part["regression"] else (100, 2)
    return f"{scale * row['mean']:.{digits}f} ({scale * row['sd']:.{digits}f})"


def time_text(row: dict[str, Any], part: dict[str, Any]) -> str:
    return seconds_text(row["median_s"])
