"""One learner on one benchmark: its error, and the seconds it takes to train and to test.

All learners run on one thread, whatever the machine has, except "BF-cores", which uses all cores.
The tables share their runs: each is a shared step, computed once for all items that need it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from joblib import cpu_count
from threadpoolctl import threadpool_limits

from boundary_forest import BoundaryForestClassifier
from paper import tasks
from paper.baselines import make
from paper.context import Context
from paper.tasks import Task

CORES = "BF-cores"
REPEATED_BELOW = 1.0  # seconds; what takes less is repeated
TURNS = 5

Figures = dict[str, dict[str, Any]]  # by data set, then by learner


def learner(name: str, seed: int) -> Any:
    """Return an unfitted learner by its name in the tables."""
    if name in ("BF", "OBF", CORES):
        return BoundaryForestClassifier(
            shuffle=False,
            offline=name == "OBF",
            n_jobs=cpu_count() if name == CORES else 1,
            random_state=seed,
        )
    if name.startswith("RF") or name == "R-kd":
        return make(name, random_state=seed)
    return make(name)


def title(name: str) -> str:
    """Return the learner's name as it is shown."""
    return f"BF, {cpu_count()} cores" if name == CORES else name


def sets(context: Context) -> Iterator[Task]:
    """Yield the benchmarks that are available, cut to what the scale has time for."""
    rows = context.pick(tiny=150, quick=10_500, full=None)
    for task in tasks.present(context, rows):
        values = context.pick(tiny=None, quick=2_000_000, full=None)
        yield task if values is None else task.first(values // task.X_train.shape[1])


def measured(name: str, task: Task, seed: int) -> dict[str, float]:
    """Return the error in per cent and the seconds of training and testing.

    What takes little time is repeated, and the median is returned.
    """
    with threadpool_limits(limits=1):
        made, train_s = _repeated(lambda: learner(name, seed).fit(task.X_train, task.y_train))
        predicted, test_s = _repeated(lambda: made.predict(task.X_test))
    return {"error": task.error(predicted), "train_s": train_s, "test_s": test_s}


def _repeated(call: Callable[[], Any]) -> tuple[Any, float]:
    seconds: list[float] = []
    while not seconds or (sum(seconds) < REPEATED_BELOW and len(seconds) < TURNS):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return result, float(np.median(seconds))


def held(context: Context, names: Sequence[str]) -> Figures:
    """Return the figures of all these learners on all available benchmarks."""
    found: Figures = {}
    entered = list(sets(context))
    context.expect(len(entered) * len(names))
    for task in entered:
        of: dict[str, Any] = {"whole": task.whole, "title": task.title, "tested": len(task.y_test)}
        for name in names:
            key = f"{title(name)} on {task.title}"
            of[name] = context.step(key, measured, name, task, context.seed, shared=True)
        found[task.name] = of
    return found
