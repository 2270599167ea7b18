"""What the sections share: settings, turns, memory, limits on threads, checks and targets.

Contestants take turns: each round lets every one of them work once, so that a machine that gets
busy slows all alike, and a figure is the median over rounds.
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
        """Contestants that are quick go on taking turns until this much time is spent."""
        return 0.0 if self.smoke else 2.0

    def size(self, full: int, smoke: int) -> int:
        return smoke if self.smoke else full


def take_turns(
    contestants: Mapping[str, Callable[[], Turn]], settings: Settings, title: str
) -> dict[str, Turn]:
    """Medians of what each contestant measured, over ``repeat`` rounds, or more if all is quick."""
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
    """Name by name."""
    return {name: median(turn[name] for turn in turns) for name in turns[0]}


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Hold every library's own threads to this number; what was loaded later would escape it."""
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
    """The module, or None if it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # it is there, but something that it needs is not
        return None


def resident_bytes() -> int:
    """The process's memory, after what is free was given back."""
    gc.collect()
    # An allocator keeps what was freed; without this the next contestant would seem to need less.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
    return int(psutil.Process().memory_info().rss)


def check(what: str, ok: bool, seen: str = "") -> dict[str, Any]:
    """Something that must hold whatever the machine: if it does not, the run fails."""
    return {"what": what, "ok": bool(ok), "seen": seen}


def target(
    what: str,
    value: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    goal: float | None = None,
) -> dict[str, Any]:
    """A figure the project wants to reach; missing it is told and fails nothing."""
    met = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
    return {
        "what": what,
        "value": value,
        "at_most": at_most,
        "at_least": at_least,
        "goal": goal,
        "met": bool(met),
    }
