"""What an item runs with: scale, seed, threads, data, and steps that survive an interruption.

A step is the unit of resuming: its value is written to disk as JSON when it is finished, and a
later run with the same scale, seed and version of the package reads it from there. Its key must
name everything else that the value depends on.
"""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

SCALES = ("tiny", "quick", "full")  # tiny is for tests: it shows that an item runs, no more


def _silent(_: str) -> None:
    pass


def _count(_: int) -> None:
    pass


@dataclass
class Context:
    """The settings and services of one run of one item."""

    steps_dir: Path
    scale: str = "quick"
    n_jobs: int = 1
    seed: int = 0
    download: bool = False  # whether to download absent data sets
    say: Callable[[str], None] = field(default=_silent)  # shows what is being done
    expect: Callable[[int], None] = field(default=_count)  # how many steps there will be
    advance: Callable[[int], None] = field(default=_count)  # so many steps are done
    shared_dir: Path | None = None  # of the steps that items share; None: nothing is shared
    seconds: float = 0.0  # of the steps so far, including those of earlier runs

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"scale must be one of {SCALES}, got {self.scale!r}")

    def pick(self, *, tiny: Any, quick: Any, full: Any) -> Any:
        """Return the value for this run's scale."""
        return {"tiny": tiny, "quick": quick, "full": full}[self.scale]

    def rng(self, *words: int) -> np.random.Generator:
        """Return a generator for one purpose, named by numbers, independent of all other steps."""
        return np.random.default_rng([self.seed, *words])

    def step(
        self, key: str, compute: Callable[..., Any], *arguments: Any, shared: bool = False
    ) -> Any:
        """Return ``compute(*arguments)`` as JSON keeps it; read it from disk if it is there.

        A ``shared`` step is also used by other items: the same key must mean the same to all.
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
        """Load a data set; raise DataAbsentError if it is absent."""
        from paper.datasets import load

        return load(name, download=self.download)


def file_name(key: str) -> str:
    """Return a file name that is readable, valid everywhere, and distinct for each key."""
    readable = "".join(c if c.isalnum() or c in "-=." else "_" for c in key)[:80]
    return f"{readable}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.json"


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in the file; None if there is no such file or no such object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def write_json(path: Path, value: Any) -> None:
    """Write the value completely or not at all: an interruption leaves what was there before."""
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
    raise TypeError(f"a step must return values that JSON can hold, got {type(value).__name__}")
