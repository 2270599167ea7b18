"""Time, and the plain path, whose time the paper's analysis is about."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATH_VARIABLE = "BOUNDARY_FOREST_PATH"


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what the call returns, and the seconds it took."""
    start = time.perf_counter()
    result = call(*arguments)
    return result, time.perf_counter() - start


@contextmanager
def plain_path() -> Iterator[None]:
    """Make forests that learn and answer example by example, without any acceleration."""
    before = os.environ.get(PATH_VARIABLE)
    os.environ[PATH_VARIABLE] = "plain"
    try:
        yield
    finally:
        if before is None:
            del os.environ[PATH_VARIABLE]
        else:
            os.environ[PATH_VARIABLE] = before
