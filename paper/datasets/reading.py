"""Read files into arrays, and check the arrays against the catalogue.

A folder holds a data set as ``<name>.npz``, or as two files of LIBSVM's text format under the names
they are published by, plain or compressed. The text is parsed by scikit-learn. Names, shapes and
types of the arrays, the number of classes and the absence of NaN are checked before the arrays are
returned; so is the text's sha256, if requested.
"""

from __future__ import annotations

import bz2
import errno
import hashlib
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from paper.datasets.catalogue import COMPRESSIONS, PARTS, DataSet, SourceFile
from paper.datasets.problems import DataCorruptError

Arrays = dict[str, NDArray[Any]]

# What the readers raise on a damaged file, as tried with 15,000 of them. RuntimeError: a zip file
# that now seems encrypted, or of a later version.
_DAMAGE = (
    *(ValueError, KeyError, EOFError, RuntimeError),
    *(lzma.LZMAError, zipfile.BadZipFile, zlib.error),
)
# An OSError of theirs has no number, or that of a position before the file's beginning.
_DAMAGE_NUMBERS = (None, errno.EINVAL)


def find(data_set: DataSet, folder: Path) -> list[Path]:
    """Return the files that hold the data set in this folder; none if it is incomplete there."""
    npz = folder / f"{data_set.name}.npz"
    if npz.is_file():
        return [npz]
    texts = [_find_text(source, folder) for source in data_set.sources or ()]
    return [path for path in texts if path is not None] if all(texts) else []


def _find_text(source: SourceFile, folder: Path) -> Path | None:
    paths = (folder / (source.plain_name + ending) for ending in ("", *COMPRESSIONS))
    return next((path for path in paths if path.is_file()), None)


def read(data_set: DataSet, files: list[Path], *, check_sha256: bool) -> Arrays:
    """Return the data set's arrays from the files that :func:`find` found."""
    if data_set.sources is None or len(files) == 1:
        return _read_npz(data_set, files[0])
    arrays: Arrays = {}
    for part, source, path in zip(PARTS, data_set.sources, files, strict=True):
        with _blaming(path), _open_text(path) as text:
            if check_sha256 and source.sha256 is not None:
                _compare_sha256(text, source.sha256)
            arrays |= _read_text(data_set, part, text)
            _check(data_set, part, arrays)
    return arrays


def _read_npz(data_set: DataSet, path: Path) -> Arrays:
    arrays: Arrays = {}
    # First make sure that it is a zip file: else np.load may take it for a single array.
    with _blaming(path), zipfile.ZipFile(path), np.load(path, allow_pickle=False) as stored:
        for part in PARTS:
            for name in data_set.arrays(part):
                if name not in stored:
                    others = ", ".join(stored) or "no arrays"
                    raise ValueError(f"the array {name} is missing; the file has {others}")
                arrays[name] = stored[name]
            _check(data_set, part, arrays)
    return arrays


def _open_text(path: Path) -> IO[bytes]:
    if path.suffix == ".bz2":
        return bz2.open(path)
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _compare_sha256(text: IO[bytes], expected: str) -> None:
    digest = hashlib.file_digest(text, "sha256").hexdigest()  # type: ignore[arg-type]
    if digest != expected:
        raise ValueError(f"the text's sha256 is {digest}, not {expected}")
    text.seek(0)


def _read_text(data_set: DataSet, part: str, text: IO[bytes]) -> Arrays:
    sparse, y = load_svmlight_file(text, n_features=data_set.n_features, zero_based=False)
    # Converted before it is made dense: mnist takes 8 times as much as float64.
    sparse.data = _converted("features", sparse.data, data_set.dtype)
    X_name, y_name = data_set.arrays(part)
    return {X_name: sparse.toarray(), y_name: _converted("labels", y, str(data_set.y_dtype))}


def _converted(what: str, values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Convert the values to the type; an integer type must hold them exactly."""
    with np.errstate(invalid="ignore", over="ignore"):
        converted = values.astype(dtype)
    if converted.dtype.kind in "iu" and not np.array_equal(converted, values):
        raise ValueError(f"some {what} cannot be converted to {dtype} without loss")
    return converted


def _check(data_set: DataSet, part: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    n_rows = data_set.n_rows(part)
    X_name, y_name = data_set.arrays(part)
    X, y = arrays[X_name], arrays[y_name]
    _check_form(X_name, X, (n_rows, data_set.n_features), data_set.dtype)
    if data_set.y_dtype is None:
        _check_form(y_name, y, (n_rows,), y.dtype.name if y.dtype.kind == "U" else "str")
    else:
        _check_form(y_name, y, (n_rows,), data_set.y_dtype)
    for name, values in ((X_name, X), (y_name, y)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{name} has NaN or infinite values")
    if data_set.n_classes is not None and len(np.unique(y)) != data_set.n_classes:
        raise ValueError(f"{y_name} has {len(np.unique(y))} classes, not {data_set.n_classes}")


def _check_form(name: str, values: NDArray[Any], shape: tuple[int, ...], dtype: str) -> None:
    if values.shape != shape or values.dtype.name != dtype:
        raise ValueError(
            f"{name} has shape {values.shape} and dtype {values.dtype}, not {shape} and {dtype}"
        )


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    """Turn damage found inside into an error that names the file; pass system errors on."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DAMAGE_NUMBERS:  # such as EACCES, which says nothing of the contents
            raise
        raise DataCorruptError(f"{path} is damaged: {error}") from error
    except _DAMAGE as error:
        raise DataCorruptError(f"{path} is damaged or is another file: {error}") from error
