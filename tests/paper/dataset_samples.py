"""A data set small enough to be written, served and damaged in a test."""

from __future__ import annotations

import bz2
import hashlib
import io
import lzma
from dataclasses import replace

import numpy as np
from sklearn.datasets import dump_svmlight_file

from paper.datasets.catalogue import DataSet, SourceFile

COMPRESS = {"": bytes, ".bz2": bz2.compress, ".xz": lzma.compress}


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    made = {}
    for part, n in (("train", 60), ("test", 30)):
        made[f"X_{part}"] = rng.integers(0, 256, size=(n, 5)).astype(np.uint8)
        made[f"y_{part}"] = (np.arange(n) % 3 + 1).astype(np.int16)
    made["X_train"][:, -1] = 0  # a feature that the text never mentions
    return made


def text(part: str, scale: float = 1) -> bytes:
    """A part in LIBSVM's format, as the site would publish it."""
    made, file = arrays(), io.BytesIO()
    X, y = made[f"X_{part}"].astype(np.float64) * scale, made[f"y_{part}"].astype(np.int64)
    dump_svmlight_file(X, y, file, zero_based=False)
    return file.getvalue()


def tiny(ending: str = "", **changes) -> DataSet:
    """The set "tiny"; the text of the plain one has a known sha256, as in the catalogue."""
    sources = tuple(
        SourceFile(
            f"vehicle/tiny{dot_t}{ending}",
            None if ending else hashlib.sha256(text(part)).hexdigest(),
        )
        for part, dot_t in (("train", ""), ("test", ".t"))
    )
    return replace(
        DataSet("tiny", "For tests.", 60, 30, 5, "uint8", "int16", 3, sources), **changes
    )


def write_texts(folder, ending: str = "") -> None:
    for part, name in (("train", "tiny"), ("test", "tiny.t")):
        (folder / (name + ending)).write_bytes(COMPRESS[ending](text(part)))


def assert_is_tiny(data) -> None:
    for name, expected in arrays().items():
        assert data[name].dtype == expected.dtype
        np.testing.assert_array_equal(data[name], expected)
