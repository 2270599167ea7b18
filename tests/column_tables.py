"""Tables with columns of all kinds, for tests."""

from __future__ import annotations

import numpy as np
import pandas as pd


def mixed_table(n=300, seed=0, missing=0.1):
    """A frame of numbers, text, categories, booleans and dates with missing values; two classes."""
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n)
    city = rng.choice(["Rome", "Oslo", "Lima", "Bern"], n)
    frame = pd.DataFrame(
        {
            "age": age,
            "city": pd.Series(city, dtype=object),
            "member": pd.Series(rng.random(n) < 0.5, dtype="boolean"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "colour": pd.Categorical(rng.choice(["red", "blue", "green"], n)),
            "visits": rng.integers(0, 50, n).astype(np.float64),
        }
    )
    y = np.where((city == "Rome") | (age > 50), "yes", "no")
    for column in frame.columns:
        frame.loc[rng.random(n) < missing, column] = None
    return frame, y
