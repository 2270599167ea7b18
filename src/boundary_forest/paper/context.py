"""What an item is given to run with: scale, seed, threads, data, and steps that survive a stop.

A step is the unit of resuming: its value is written to disk as JSON when it is finished, and a
later run with the same scale, seed and version of the package finds it there. Its key must name all
else that the value depends on.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

SCALES = ("tiny", "quick", "full")  # tiny is the tests': it shows that an item runs, no more


def _silent(_: str) -> None:
    pass


def _count(_: int) -> None:
    pass


@dataclass
class Context:
    """One run of one item."""

    steps_dir: Path
    scale: str = "quick"
    n_jobs: int = 1
    seed: int = 0
    download: bool = False  # data sets that are absent
    say: Callable[[str], None] = field(default=_silent)  # shows what is being done
    expect: Callable[[int], None] = field(default=_count)  # how many steps there will be
    advance: Callable[[int], None] = field(default=_count)  # so many more are done
    shared_dir: Path | None = None  # of the steps that items share; None: nothing is shared
    seconds: float = 0.0  # of the steps so far, those of earlier runs included

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale must be one of {SCALES}, got {self.scale!r}")

    def pick(self, *, tiny: Any, quick: Any, full: Any) -> Any:
        """What belongs to the scale."""
        return {"tiny": tiny, "quick": quick, "full": full}[self.scale]

    def rng(self, *words: int) -> np.random.Generator:
        """A generator for one purpose, named by numbers, that no other step can disturb."""
        return np.random.default_rng([self.seed, *words])

    def step(
        self, key: str, compute: Callable[..., Any], *arguments: Any, shared: bool = False
    ) -> Any:
        """What ``compute(*arguments)`` returns, as JSON gives it back; from disk if it is there.

        A ``shared`` step is found by other items too: the same key must mean the same to all.
        """
        path = (self.shared_dir or self.steps_dir if shared else self.steps_dir) / file_name(key)
        stored = read_json(path)
        if stored is None or stored.get("key") != key:
            self.say(key)
            start = time.perf_counter()
            value = compute(*arguments)
            seconds = time.perf_counter() - start
            write_json(path, {"key": key, "seconds": seconds, "value": value})
            stored = read_json(path)
            assert stored is not None
        self.seconds += stored["seconds"]
        self.advance(1)
        return stored["value"]

    def load(self, name: str) -> Any:
        """X_train, y_train, X_test, y_test of a data set; DataAbsentError if it is absent."""
        from boundary_forest.datasets import load

        return load(name, download=self.download)


def file_name(key: str) -> str:
    """Readable, valid everywhere, and different for different keys."""
    readable = "".join(c if c.isalnum() or c in "-=." else "_" for c in key)[:80]
    return f"{readable}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.json"


def read_json(path: Path) -> dict[str, Any] | None:
    """None where there is no such file, or one that is no JSON object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def write_json(path: Path, value: Any) -> None:
    """All or nothing: a stop half-way leaves what was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, default=_plain, allow_nan=False, indent=1, ensure_ascii=False)
    draft = path.with_name(path.name + ".part")
    draft.write_text(text + "\n", encoding="utf-8")
    draft.replace(path)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"a step must return what JSON holds, got {type(value).__name__}")
