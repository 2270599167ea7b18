"""The cache, and what pooch downloads into it from the LIBSVM site.

pooch is an optional dependency. It writes to a temporary name first, so that an interrupted
download leaves nothing behind; what was downloaded is checked when it is read.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from paper.datasets.catalogue import DataSet
from paper.datasets.reading import Arrays

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
CACHE_VARIABLE = "BOUNDARY_FOREST_CACHE"
NEEDS_POOCH = "downloading needs pooch: pip install pooch"


def cache_folder() -> Path | None:
    """Return ``$BOUNDARY_FOREST_CACHE``, else the platform's cache; None without pooch."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("boundary-forest"))


def fetch(data_set: DataSet) -> list[Path]:
    """Return the data set's files in the cache, after downloading those that are missing."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(f"{data_set.name} is not on this machine, and {NEEDS_POOCH}") from error
    urls = {source.name: SITE + source.address for source in data_set.sources or ()}
    registry = dict.fromkeys(urls)  # no hashes: they are of the decompressed text
    files = pooch.create(path=cache_folder(), base_url=SITE, registry=registry, urls=urls)
    return [Path(files.fetch(name, downloader=_downloader(pooch))) for name in urls]


def _downloader(pooch: Any) -> Any:
    """Return a downloader, with a progress bar if standard error is a terminal."""
    shows_progress = sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
    return pooch.HTTPDownloader(progressbar=shows_progress, chunk_size=1 << 16)


def keep(path: Path, arrays: Arrays) -> None:
    """Write the arrays to the file, completely or not at all."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.stem}-") as folder:
        whole = Path(folder) / path.name
        np.savez_compressed(whole, allow_pickle=False, **arrays)
        os.replace(whole, path)
