"""Examples from a ``ray.data.Dataset``, which may be larger than the memory of all machines.

Ray reads ahead by a few blocks and waits for whoever consumes them, so that the object store does
not fill; the order is the dataset's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

BATCH_ROWS = 4096
SHOWN_EVERY = 0.5  # seconds


class DatasetPart(NamedTuple):
    """A part of a dataset, as learning calls take it."""

    X: Any
    y: Any
    ids: Any


def is_dataset(X: Any) -> bool:
    """Whether X is a ``ray.data.Dataset``; Ray's data library is not imported to find out."""
    return any(
        kind.__module__.startswith("ray.data") and kind.__name__ == "Dataset"
        for kind in type(X).__mro__
    )


def parts_of(dataset: Any, y: Any, ids: Any, rows: int = BATCH_ROWS) -> Iterator[DatasetPart]:
    """Return a dataset in order, part by part.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The examples. One column of arrays has the positions, or all columns but ``y`` and ``ids``
        are features.
    y : str, list of str or None
        The column of the labels, or the columns of several outputs.
    ids : str or None
        The column of the ids.
    rows : int, default=BATCH_ROWS
        How many rows a part has.
    """
    labels = [y] if isinstance(y, str) else [] if y is None else list(y)
    for name in (*labels, *(() if ids is None else (ids,))):
        if not isinstance(name, str):
            raise TypeError(
                f"y and ids must be column names if X is a Dataset, got {type(name).__name__}"
            )
    dataset.context.execution_options.preserve_order = True
    batches = dataset.iter_batches(batch_size=rows, batch_format="numpy", prefetch_batches=1)
    for batch in batches:
        for name in (*labels, *(() if ids is None else (ids,))):
            if name not in batch:
                raise ValueError(
                    f"the dataset has no column {name!r}; the columns are "
                    f"{', '.join(sorted(batch))}"
                )
        features = {name: batch[name] for name in batch if name not in (*labels, ids)}
        targets = None
        if isinstance(y, str):
            targets = batch[y]
        elif labels:
            targets = np.column_stack([batch[name] for name in labels])
        yield DatasetPart(_positions(features), targets, None if ids is None else batch[ids])


def _positions(features: dict[str, Any]) -> Any:
    """Return a column of arrays as it is, and other columns as a data frame."""
    if not features:
        raise ValueError(
            "the dataset has no columns other than y and ids, so there are no features"
        )
    only = next(iter(features.values()))
    if len(features) == 1 and only.ndim > 1:
        return np.ascontiguousarray(only.reshape(len(only), -1))
    import pandas as pd

    return pd.DataFrame(features, copy=False)


class LearningProgress:
    """A line that tells how far learning has come, if someone watches."""

    def __init__(self) -> None:
        self._begin = self._shown = time.monotonic()
        self._is_watched = sys.stderr is not None and sys.stderr.isatty()
        self._n = 0

    def add(self, n: int) -> None:
        """Tell of n more rows."""
        self._n += n
        now = time.monotonic()
        if self._is_watched and now - self._shown >= SHOWN_EVERY:
            self._shown = now
            self._write("\r")

    def close(self) -> None:
        """Tell of all of them."""
        if self._is_watched and self._n:
            self._write("\r")
            print(file=sys.stderr)

    def _write(self, start: str) -> None:
        rate = self._n / max(time.monotonic() - self._begin, 1e-9)
        print(
            f"{start}{self._n:,} rows learned, {rate:,.0f} rows/s ",
            end="",
            file=sys.stderr,
            flush=True,
        )
