"""Tables of numbers, categories, booleans and dates, and ways to remove values from them.

Five are public ones, read from ``$BOUNDARY_FOREST_DATA`` where they are; five are generated in the
likeness of tables that tutorials use, some with values that are missing for a reason.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.data import Array, stored
from paper.datasets import names

MOST_ROWS = 6_000
SHARE_REMOVED = 0.1
SHARE_OF_HIGH_REMOVED = 0.4  # of the top quarter of a column
AT_RANDOM, HIGH = "at random", "because high"
PUBLIC = ("car", "credit.g", "sick", "abalone", "covtype")
ONE_HOT = {"covtype": {"area": (10, 14), "soil": (14, 54)}}  # columns by first and end


@dataclass(frozen=True)
class FrameTable:
    """A frame and what is to be predicted of its rows."""

    name: str
    frame: Any  # pandas.DataFrame
    y: Array
    regression: bool
    is_real: bool


def frame_tables(seed: int, n: int = MOST_ROWS, *, smoke: bool = False) -> Iterator[FrameTable]:
    """Yield the tables that are at hand, each of at most n rows, shuffled."""
    for name in () if smoke else PUBLIC:
        found = _public(name)
        if found is not None:
            X, y, regression = found
            rows = np.random.default_rng(seed).permutation(len(y))[:n]
            frame = _with_categories(X[rows], ONE_HOT.get(name))
            yield FrameTable(name, frame, y[rows], regression, is_real=True)
    for name, (make, regression) in GENERATED.items():
        frame, y = make(np.random.default_rng(seed), n)
        yield FrameTable(name, frame, y, regression, is_real=False)


def with_removed(frame: Any, how: str, rng: np.random.Generator) -> Any:
    """Return a copy in which a tenth of each column's values are missing.

    "at random": any of them; "because high": two fifths of the top quarter, of categories by name.
    """
    frame = frame.copy()
    for name in frame.columns:
        column = frame[name]
        if how == AT_RANDOM:
            gone = rng.random(len(frame)) < SHARE_REMOVED
        else:
            high = _is_high(column)
            gone = high & (rng.random(len(frame)) < SHARE_OF_HIGH_REMOVED)
        if column.dtype == bool:
            column = column.astype("boolean")
        frame[name] = column.mask(gone)
    return frame


def _is_high(column: Any) -> Array:
    """Return which values are in the top quarter; at least the last category."""
    if pd.api.types.is_bool_dtype(column) or column.dtype == "category":
        codes = column.astype("category").cat.codes  # -1 where it is missing
        share_from = codes.value_counts(normalize=True).sort_index()[::-1].cumsum()
        high = [code for code, share in share_from.items() if share <= 0.25]
        return np.asarray(codes.isin([*high, codes.max()]))
    return np.asarray(column >= column.quantile(0.75))


# Public tables


def _public(name: str) -> tuple[Array, Array, bool] | None:
    if name in names():
        arrays = stored(name)
        if arrays is None:
            return None
        X, y = (np.concatenate([arrays[f"{v}_train"], arrays[f"{v}_test"]]) for v in "Xy")
        return X.astype(float), y, name == "abalone"
    path = Path(os.environ.get("BOUNDARY_FOREST_DATA", ".")).expanduser() / f"tables/{name}.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["X"], arrays["y"], str(arrays["kind"]) == "r"


def _with_categories(X: Array, known: dict[str, tuple[int, int]] | None) -> Any:
    """Return a frame in which what was one-hot encoded is a column of categories again."""
    if known is None:
        known = {f"category {begin}": (begin, end) for begin, end in _one_hot_runs(X)}
    columns: dict[str, Any] = {}
    starts = {begin: (name, end) for name, (begin, end) in known.items()}
    j = 0
    while j < X.shape[1]:
        if j in starts:
            name, end = starts[j]
            columns[name] = pd.Categorical([f"c{code:02}" for code in X[:, j:end].argmax(axis=1)])
            j = end
            continue
        values = X[:, j]
        is_boolean = np.isin(values, (0, 1)).all()
        columns[f"{'boolean' if is_boolean else 'number'} {j}"] = (
            values.astype(bool) if is_boolean else values
        )
        j += 1
    return pd.DataFrame(columns)


def _one_hot_runs(X: Array) -> Iterator[tuple[int, int]]:
    """Yield where neighbouring columns of zeros and ones sum to 1 in every row."""
    is_binary: Array = np.all(np.isin(X, (0, 1)), axis=0)
    j = 0
    while j < X.shape[1]:
        end, total = j, np.zeros(len(X))
        while end < X.shape[1] and is_binary[end] and total.max() <= 1 and total.min() < 1:
            total = total + X[:, end]
            end += 1
        if end > j + 1 and (total == 1).all():
            yield j, end
            j = end
        else:
            j += 1


# Generated tables: (rng, n) -> frame, y


def _categories(codes: Array, letters: str) -> Any:
    return pd.Categorical([f"{letters}{code}" for code in codes], ordered=False)


def _chance(z: Array, rng: np.random.Generator) -> Array:
    """Return 1 with the probability that has these log odds, else 0."""
    return (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(np.int64)


def _passengers(rng: np.random.Generator, n: int) -> tuple[Any, Array]:
    """Like titanic: ages are missing more often of those who died, decks of the poor."""
    n = min(n, 2_500)
    travel_class, female = rng.choice(3, n, p=[0.24, 0.21, 0.55]), rng.random(n) < 0.35
    age = np.clip(rng.gamma(4, 7.5, n) - 3 * travel_class, 0.4, 80)
    family = rng.choice(6, n, p=[0.55, 0.2, 0.12, 0.07, 0.04, 0.02])
    fare = np.exp(4.3 - travel_class + 0.25 * family + 0.5 * rng.normal(size=n))
    harbour = np.where(rng.random(n) < 0.3 + 0.2 * (travel_class == 0), 0, rng.integers(1, 3, n))
    deck = (2 * travel_class + rng.integers(0, 4, n)).astype(float)
    z = 0.2 + 2.6 * female - 0.9 * travel_class - 0.03 * age + 1.5 * (age < 12)
    y = _chance(1.6 * (z - 0.35 * np.maximum(family - 2, 0) + 0.4 * (harbour == 0)), rng)
    age[rng.random(n) < np.where(y == 1, 0.1, 0.27)] = np.nan
    frame = pd.DataFrame(
        {
            "class": _categories(travel_class, "class "),
            "female": female,
            "age": age,
            "family": family,
            "fare": fare,
            "harbour": _categories(harbour, "port "),
            "deck": pd.Series(_categories(deck.astype(int), "deck ")).mask(
                rng.random(n) < np.where(travel_class == 0, 0.2, 0.9) - 0.1 * y
            ),
        }
    )
    return frame, y


def _penguins(rng: np.random.Generator, n: int) -> tuple[Any, Array]:
    n = min(n, 1_500)
    species, male = rng.choice(3, n, p=[0.44, 0.2, 0.36]), rng.random(n) < 0.5
    island = np.array([0, 1, 2])[np.where(species == 0, rng.integers(0, 3, n), species)]
    means = np.array([[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3730], [47.5, 15, 217, 5080]])
    spread = np.array([3.2, 1.3, 8.2, 540])
    sizes = means[species] + spread * rng.normal(size=(n, 4))
    sizes += male[:, np.newaxis] * np.array([2, 0.8, 5, 500])
    frame = pd.DataFrame(sizes, columns=["bill length", "bill depth", "flipper", "mass"])
    frame["island"] = _categories(island, "island ")
    frame["male"] = pd.Series(male).astype("boolean").mask(rng.random(n) < 0.05)
    frame["year"] = 2007 + rng.integers(0, 3, n)
    return frame, species


def _diamonds(rng: np.random.Generator, n: int) -> tuple[Any, Array]:
    carat = np.clip(np.exp(rng.normal(-0.35, 0.55, n)), 0.2, 4)
    cut, colour = rng.choice(5, n, p=[0.03, 0.09, 0.22, 0.26, 0.4]), rng.integers(0, 7, n)
    clarity = rng.choice(8, n, p=[0.02, 0.17, 0.24, 0.22, 0.15, 0.09, 0.07, 0.04])
    depth, table = rng.normal(61.7, 1.4, n), rng.normal(57.5, 2, n) + (4 - cut) / 2
    x = 6.45 * np.cbrt(carat) * np.exp(0.01 * rng.normal(size=n))
    effect = np.array([-0.75, -0.35, -0.1, 0.1, 0.3, 0.45, 0.55, 0.65])[clarity]
    log_price = 8.45 + 1.88 * np.log(carat) + 0.03 * cut + 0.09 * (3 - colour) + effect
    frame = pd.DataFrame({"carat": carat, "depth": depth, "table": table, "x": x})
    frame["z"] = depth / 100 * x
    frame["cut"] = _categories(rng.permutation(5)[cut], "cut ")
    frame["colour"] = _categories(colour, "colour ")
    frame["clarity"] = _categories(rng.permutation(8)[clarity], "clarity ")
    return frame, np.exp(log_price + 0.11 * rng.normal(size=n))


def _flights(rng: np.random.Generator, n: int) -> tuple[Any, Array]:
    """Is it late? 300 airports of very different size; gates are missing more often of the late."""
    size = rng.dirichlet(np.full(300, 0.4))
    start, goal = rng.choice(300, n, p=size), rng.choice(300, n, p=size)
    airline, day = rng.integers(0, 14, n), rng.integers(0, 365, n)
    hour = np.clip(rng.normal(13, 4.5, n), 5, 23.9)
    z = rng.normal(size=300)[start] + 0.5 * rng.normal(size=300)[goal] - 0.6
    z += 0.6 * rng.normal(size=14)[airline] + 0.14 * (hour - 13)
    z += 0.7 * np.cos(2 * np.pi * (day - 10) / 182) + 0.5 * (day % 7 >= 4)
    y = _chance(1.5 * z, rng)
    frame = pd.DataFrame(
        {
            "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D"),
            "hour": hour,
            "airline": _categories(airline, "airline "),
            "from": _categories(start, "airport "),
            "to": _categories(goal, "airport "),
            "gate": np.where(rng.random(n) < 0.3 + 0.35 * y, np.nan, rng.integers(1, 60, n)),
        }
    )
    return frame, y


def _houses(rng: np.random.Generator, n: int) -> tuple[Any, Array]:
    """800 postcodes; the year is missing more often where houses are cheap."""
    place = np.minimum(rng.geometric(1 / 160, n), 800) - 1
    kind = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    area = np.exp(rng.normal(4.6, 0.35, n)) * np.array([1, 0.7, 0.5, 1.6])[kind]
    year, day = rng.integers(1900, 2020, n).astype(float), rng.integers(0, 2500, n)
    worth = 0.35 * np.sin(2 * rng.normal(size=800)) + 0.15 * rng.normal(size=800)
    log_price = 5 + 0.8 * np.log(area) + worth[place] + 0.1 * (kind == 3)
    log_price += 0.002 * np.abs(year - 1950) + 1e-4 * day + 0.12 * rng.normal(size=n)
    year[rng.random(n) < np.where(worth[place] < 0, 0.25, 0.05)] = np.nan
    frame = pd.DataFrame(
        {
            "area": area,
            "year": year,
            "sold": pd.Timestamp("2018-01-01") + pd.to_timedelta(day, unit="D"),
            "postcode": _categories(place, "P"),
            "kind": _categories(kind, "kind "),
        }
    )
    return frame, np.exp(log_price)


GENERATED: dict[str, tuple[Callable[[np.random.Generator, int], tuple[Any, Array]], bool]] = {
    "passengers": (_passengers, False),
    "penguins": (_penguins, False),
    "diamonds": (_diamonds, True),
    "flights": (_flights, False),
    "houses": (_houses, True),
}
