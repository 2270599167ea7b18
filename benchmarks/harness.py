"""What the sections share: settings, turns, memory, limits on threads, checks and targets.

Contestants take turns: in each round every one of them runs once, so that a machine that gets busy
slows all of them alike, and a figure is the median over rounds.
"""

import ctypes
import gc
import importlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import psutil
from threadpoolctl import threadpool_limits

Turn = dict[str, float]
MIB = 2**20
MOST_ROUNDS = 15


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True)
class Settings:
    """How to run a section."""

    smoke: bool = False
    repeat: int = 3
    threads: tuple[int, ...] = (1, 2)
    seed: int = 0
    say: Callable[[str], None] = field(default=_silent, compare=False)  # shows progress

    @property
    def enough_seconds(self) -> float:
        """The time until which quick contestants continue to take turns."""
        return 0.0 if self.smoke else 2.0

    def size(self, full: int, smoke: int) -> int:
        return smoke if self.smoke else full


def take_turns(
    contestants: Mapping[str, Callable[[], Turn]], settings: Settings, title: str
) -> dict[str, Turn]:
    """Return medians of what each contestant measured, over at least ``repeat`` rounds."""
    turns: dict[str, list[Turn]] = {key: [] for key in contestants}
    start, rounds = time.perf_counter(), 0
    while rounds < settings.repeat or (
        rounds < MOST_ROUNDS and time.perf_counter() - start < settings.enough_seconds
    ):
        rounds += 1
        for key, contestant in contestants.items():
            settings.say(f"{title}, turn {rounds}: {key}")
            turns[key].append(contestant())
    return {key: {**medians(of), "turns": len(of)} for key, of in turns.items()}


def medians(turns: list[Turn]) -> Turn:
    """Return the median of each figure."""
    return {name: median(turn[name] for turn in turns) for name in turns[0]}


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Limit the threads of every library that is loaded already; later ones escape it."""
    faiss = installed("faiss")
    before = faiss.omp_get_max_threads() if faiss else 0
    with threadpool_limits(limits=threads):
        if faiss:
            faiss.omp_set_num_threads(threads)
        try:
            yield
        finally:
            if faiss:
                faiss.omp_set_num_threads(before)


def installed(module: str) -> Any | None:
    """Return the module, or None if it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # it is installed, but one of its dependencies is not
        return None


def resident_bytes() -> int:
    """Return the process's memory, after free memory was returned to the system."""
    gc.collect()
    # The allocator keeps freed memory; without this the next contestant would seem to need less.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
    return int(psutil.Process().memory_info().rss)


def check(what: str, ok: bool, seen: str = "") -> dict[str, Any]:
    """Return a check, which must hold on any machine: if it does not, the run fails."""
    return {"what": what, "ok": bool(ok), "seen": seen}


def target(
    what: str,
    value: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    goal: float | None = None,
) -> dict[str, Any]:
    """Return a figure that the project wants to reach; a miss is reported, and fails nothing."""
    met = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
    return {
        "what": what,
        "value": value,
        "at_most": at_most,
        "at_least": at_least,
        "goal": goal,
        "met": bool(met),
    }
