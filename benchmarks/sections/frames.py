"""Frames as they are: ``for_tables()`` on columns of all kinds with missing values.

Values are removed from ten tables, from the rows to fit and from those to predict: a tenth at
random, or two fifths of the top quarter of each column, so that a value is missing because it is
high. ``for_tables()`` gets the frames. HistGradientBoosting gets them as far as it takes them:
dates as numbers, and the rarest categories as one if there are more than 255. The third learner is
what people do otherwise: ``for_tables()`` on numbers, after imputation of means and one-hot
encoding. Errors are misclassified rows in %, or 100 (1 - R2).
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from benchmarks.data import Array
from benchmarks.frame_tables import AT_RANDOM, HIGH, FrameTable, frame_tables, with_removed
from benchmarks.harness import Settings, check, limited, target
from benchmarks.report import new_table, seconds_text
from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor
from paper.timing import timed

SPLITS = 3
MOST_CATEGORIES = 255  # that HistGradientBoosting takes
MOST_ONE_HOT = 400
LEAST_ERROR = 0.1  # in %; added, so that no table decides because it has nearly no errors
OURS, BOOSTING, IMPUTED = "for_tables()", "HistGradientBoosting", "imputed, one-hot"
MOST_RATIO = {AT_RANDOM: 1.08, HIGH: 1.10}  # of the geometric mean, to the better of the others
MOST_ROW_TIME = 3.0  # times that of as many numbers, for one row of mixed columns


def learners(seed: int, *, regression: bool) -> dict[str, Any]:
    """Return what is compared, by title."""
    forest: Any = BoundaryForestRegressor if regression else BoundaryForestClassifier
    boosting: Any = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_ONE_HOT, sparse_output=False
    )
    encoded = make_column_transformer(
        (SimpleImputer(), make_column_selector(dtype_include="number")),
        (one_hot, make_column_selector(dtype_include="category")),
    )
    same = {"random_state": seed, "n_jobs": 1}
    return {
        OURS: forest.for_tables(**same),
        BOOSTING: boosting(random_state=seed, categorical_features="from_dtype"),
        IMPUTED: make_pipeline(encoded, forest.for_tables(columns=None, **same)),
    }


def measure(settings: Settings) -> dict[str, Any]:
    parts: dict[str, dict[str, Any]] = {AT_RANDOM: {}, HIGH: {}}
    checks: list[dict[str, Any]] = []
    n_splits, n = settings.size(SPLITS, 1), settings.size(6_000, 400)
    with limited(1):
        for split in range(n_splits):
            seed = settings.seed + split
            for table, how in product(frame_tables(seed, n, smoke=settings.smoke), parts):
                settings.say(f"{table.name}, missing {how}, split {split + 1}")
                rows = parts[how].setdefault(table.name, {})
                compare(table, how, seed, rows)
                if split == 0 and how == AT_RANDOM:
                    checks.append(same_in_batches(table, seed))
        row_times = one_row(settings)
    for rows in [rows for part in parts.values() for rows in part.values()]:
        for row in rows.values():
            row["mean"] = float(np.mean(row["errors"]))
            row["median_s"] = float(np.median(row["seconds"]))
    return {
        "parts": parts,
        "row": row_times,
        "checks": checks,
        "targets": targets(parts, row_times),
    }


def compare(table: FrameTable, how: str, seed: int, rows: dict[str, Any]) -> None:
    """Add each learner's error and time to its row."""
    frame = with_removed(table.frame, how, removal_rng(seed))
    plain = as_peers_take_it(frame)
    n = len(table.y) * 3 // 4
    for title, learner in learners(seed, regression=table.regression).items():
        X = frame if title == OURS else plain
        _, fit_s = timed(learner.fit, X[:n], table.y[:n])
        answers, predict_s = timed(learner.predict, X[n:])
        row = rows.setdefault(title, {"errors": [], "seconds": []})
        row["errors"].append(error(answers, table.y[n:], regression=table.regression))
        row["seconds"].append(fit_s + predict_s)


def removal_rng(seed: int) -> np.random.Generator:
    """Return other random numbers than those that the tables are generated from."""
    return np.random.default_rng((seed, 1))


def as_peers_take_it(frame: Any) -> Any:
    """Return dates and booleans as numbers, and at most 255 categories per column."""
    plain = frame.copy()
    for name, column in frame.items():
        if pd.api.types.is_datetime64_any_dtype(column):
            days = (column - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1)
            plain[name] = days.astype(float)
        elif pd.api.types.is_bool_dtype(column):
            plain[name] = column.astype("Float64").to_numpy(dtype=float, na_value=np.nan)
        elif column.dtype == "category" and column.nunique() > MOST_CATEGORIES:
            frequent = column.value_counts().index[: MOST_CATEGORIES - 1]
            text = column.astype(object)
            merged = text.where(column.isin(frequent) | column.isna(), "other")
            plain[name] = merged.astype("category")
    return plain


def error(answers: Array, y: Array, *, regression: bool) -> float:
    """Return misclassified rows in %, or 100 (1 - R2)."""
    wrong = np.mean((answers - y) ** 2) / np.var(y) if regression else np.mean(answers != y)
    return float(100 * wrong)


def same_in_batches(table: FrameTable, seed: int) -> dict[str, Any]:
    """Check that batches change nothing: what is learned of columns depends on the order alone."""
    forest: Any = BoundaryForestRegressor if table.regression else BoundaryForestClassifier
    frame = with_removed(table.frame, AT_RANDOM, removal_rng(seed))[:700]
    y = table.y[:700]
    once = forest.for_tables(random_state=seed, shuffle=False).fit(frame, y)
    batches = forest.for_tables(random_state=seed)
    for start in range(0, len(frame), 77):
        batches.partial_fit(frame[start : start + 77], y[start : start + 77])
    same = once.fingerprint() == batches.fingerprint()
    return check(f"{table.name}: the same forest by small batches", same)


def one_row(settings: Settings) -> dict[str, float]:
    """Return the time to predict a frame of one row, of 20 mixed columns and of 20 numbers."""
    rng = np.random.default_rng(settings.seed)
    n = settings.size(4_000, 400)
    numbers = rng.normal(size=(n, 20))
    y = (numbers[:, 0] + numbers[:, 10] > 0).astype(np.int64)
    mixed = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(20)])
    for j in range(10, 16):
        mixed[f"x{j}"] = pd.Categorical([f"c{code}" for code in np.floor(2 * numbers[:, j])])
    for j in range(16, 18):
        mixed[f"x{j}"] = numbers[:, j] > 0
    for j in range(18, 20):
        days = pd.to_timedelta(np.round(100 * numbers[:, j]), unit="D")
        mixed[f"x{j}"] = pd.Timestamp("2024-01-01") + days
    mixed = mixed.mask(rng.random(mixed.shape) < 0.05).astype(mixed.dtypes[:16])
    times = {}
    for what, X in (("mixed", mixed), ("numbers", pd.DataFrame(numbers, columns=mixed.columns))):
        forest: Any = BoundaryForestClassifier.for_tables(random_state=settings.seed).fit(X, y)
        rows = [X[i : i + 1] for i in range(settings.size(200, 10))]
        times[what] = float(np.median([timed(forest.predict, row)[1] for row in rows]))
    return times


def geometric_mean(part: Mapping[str, Any], others: tuple[str, ...]) -> float:
    """Return our error relative to the better of the others, in the geometric mean of tables."""
    logs = [
        np.log(rows[OURS]["mean"] + LEAST_ERROR)
        - np.log(min(rows[title]["mean"] for title in others) + LEAST_ERROR)
        for rows in part.values()
    ]
    return float(np.exp(np.mean(logs)))


def targets(parts: Mapping[str, Any], row_times: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the figures that the project wants to reach."""
    wanted = []
    for how, part in parts.items():
        ratio = geometric_mean(part, (BOOSTING, IMPUTED))
        wanted.append(
            target(f"missing {how}: error / better of the others", ratio, at_most=MOST_RATIO[how])
        )
    ratio = row_times["mixed"] / row_times["numbers"]
    wanted.append(target("one row: time of mixed columns / numbers", ratio, at_most=MOST_ROW_TIME))
    return wanted


def report(result: dict[str, Any], console: Console) -> None:
    for how, part in result["parts"].items():
        table = new_table(f"values missing {how}: error in %, or 100 (1 - R2); seconds")
        table.add_column("", no_wrap=True)
        titles = list(next(iter(part.values())))
        for title in titles:
            table.add_column(title, justify="right")
        for name, rows in part.items():
            table.add_row(name, *(row_text(rows[title]) for title in titles))
        console.print(table)
        ratio = geometric_mean(part, (BOOSTING,))
        console.print(f"error / HistGradientBoosting's, in the geometric mean: {ratio:.3f}\n")
    times = result["row"]
    console.print(
        f"one row: {1e6 * times['mixed']:.0f} us with 20 mixed columns, "
        f"{1e6 * times['numbers']:.0f} us with 20 numbers\n"
    )


def row_text(row: dict[str, Any]) -> str:
    return f"{row['mean']:.2f}; {seconds_text(row['median_s'])}"
