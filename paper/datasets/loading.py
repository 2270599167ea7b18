"""``load``: read a data set from ``$BOUNDARY_FOREST_DATA``, else the cache, else download it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sklearn.utils import Bunch

from paper.datasets import fetching
from paper.datasets.catalogue import PARTS, DataSet, look_up
from paper.datasets.problems import DataAbsentError, DataCorruptError
from paper.datasets.reading import find, read

FOLDER_VARIABLE = "BOUNDARY_FOREST_DATA"


def load(name: str, *, download: bool = True) -> Bunch:
    """Load a data set by name; those of the paper have the paper's split.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    download : bool, default=True
        Whether to download a data set that is neither in the folder nor in the cache, if it is
        published in this form. Downloading needs pooch.

    Returns
    -------
    Bunch
        ``X_train``, ``y_train``, ``X_test``, ``y_test``, ``name``, ``description``, and ``source``:
        the files it was read from. Word vectors have ``words_train`` and ``words_test``, and their
        targets are None.

    Raises
    ------
    DataAbsentError
        If the data set cannot be obtained; a FileNotFoundError.
    DataCorruptError
        If a file, found or downloaded, is damaged or is another data set; a ValueError. A bad file
        in the cache is removed from it.
    ImportError
        If the data set must be downloaded and pooch is not installed.
    """
    data_set = look_up(name)
    folder, cache = _folder(), fetching.cache_folder()
    for place in (folder, cache):
        files = find(data_set, place) if place else []
        if files:
            return _opened(data_set, files, cached=place is cache)
    if not download or data_set.sources is None:
        raise DataAbsentError(_absence(data_set, folder, cache))
    try:
        files = fetching.fetch(data_set)
    except OSError as error:  # requests' errors too: no connection, no such page, cut off
        failure = f"{data_set.name} could not be downloaded from {fetching.SITE}: {error}"
        raise DataAbsentError(f"{failure}. {_how_to_get(data_set)}") from error
    return _opened(data_set, files, cached=True)


def available(name: str) -> bool:
    """Return whether :func:`load` would find the data set without downloading it."""
    data_set = look_up(name)
    places = (_folder(), fetching.cache_folder())
    return any(find(data_set, place) for place in places if place)


def _folder() -> Path | None:
    chosen = os.environ.get(FOLDER_VARIABLE)
    return Path(chosen).expanduser() if chosen else None


def _opened(data_set: DataSet, files: list[Path], *, cached: bool) -> Bunch:
    """Read the data set from these files.

    Files in the cache are checked by their sha256, and deleted if they are bad. Files in the user's
    folder must have the right form, and are never changed.
    """
    try:
        arrays = read(data_set, files, check_sha256=cached)
    except DataCorruptError as error:
        if not cached:
            raise
        for path in files:
            path.unlink(missing_ok=True)
        raise DataCorruptError(
            f"{error}; it was removed from the cache; load the data set again"
        ) from error
    if cached and len(files) > 1:
        with suppress(OSError):  # only for speed: the text of mnist takes 15 s to read
            fetching.keep(files[0].with_name(f"{data_set.name}.npz"), arrays)
    contents = {"y_train": None, "y_test": None, **arrays}
    source = ", ".join(map(str, files))
    return Bunch(**contents, name=data_set.name, description=data_set.description, source=source)


def _absence(data_set: DataSet, folder: Path | None, cache: Path | None) -> str:
    places = (
        f"${FOLDER_VARIABLE} ({folder or 'not set'})",
        f"the cache ({cache or f'unknown: {fetching.NEEDS_POOCH}'})",
    )
    return f"{data_set.name} is absent. Looked in {' and '.join(places)}. {_how_to_get(data_set)}"


def _how_to_get(data_set: DataSet) -> str:
    place = f"the folder that ${FOLDER_VARIABLE} names"
    npz = f"{data_set.name}.npz with the arrays {', '.join(_forms(data_set))}"
    if data_set.sources is None:
        return f"To get it: put into {place} {npz}. {data_set.advice}".rstrip()
    texts = " and ".join(fetching.SITE + source.address for source in data_set.sources)
    call = f"paper.datasets.load({data_set.name!r})"
    return f"To get it: {call} downloads it; or put into {place} {texts}, or {npz}."


def _forms(data_set: DataSet) -> Iterator[str]:
    for part in PARTS:
        n = data_set.n_rows(part)
        X_name, y_name = data_set.arrays(part)
        yield f"{X_name} {n} x {data_set.n_features} {data_set.dtype}"
        yield f"{y_name} {n} {data_set.y_dtype or 'str'}"
