"""An index that changes: a row and a search in turn, threads that share a batch, half forgotten.

**One by one.** Rows arrive one by one, and each is followed by a search, on one thread. Recall is
over the searches made on the way, against the true neighbours among the rows that had arrived; a
first pass finds the width with which each index reaches a recall, and a second one is timed, in
which the indexes take turns at every thousand rows. Times are the process's own, because calls of
one row are too short for turns to even out what other processes take. **Threads.** The same batches
of queries on one thread and on two, in turns. **Forgotten.** The time at a recall just before a
third is forgotten, when searches still pass through the forgotten, and after half was forgotten and
the index was rebuilt; each compared with an index that never had them.
"""

import time
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.data import Array
from benchmarks.harness import Settings, check, installed, limited, take_turns, target
from benchmarks.online import CONTESTANTS, NEIGHBORS, Index, nearest_so_far
from benchmarks.recall_plot import time_at
from benchmarks.report import new_table
from benchmarks.sections.retrieval import glove, recall
from boundary_forest import BoundaryForestNeighbors
from paper.timing import timed

WIDTHS = (10, 14, 20, 30, 45, 70, 100, 150, 220, 330)
WANTED = (0.95, 0.99)
AT_ONCE = 1_000  # rows between two changes of turn
N_ASKED = 2_000  # searches whose recall is measured
BATCH = 1_000
FRESH = {"marked": "fresh two thirds", "rebuilt": "fresh half"}  # that never had what is forgotten


def measure(settings: Settings) -> dict[str, Any]:
    X, queries = _rows(settings)
    with limited(1):
        stream = one_by_one(X, queries, settings)
    threads = two_threads(X, queries, settings)
    with limited(1):
        forgotten = with_forgotten(X, queries, settings)
    sides, ghosts = stream["sides"], forgotten["ghosts"]
    reached = [(of["recall"], wanted) for wanted, of in zip(WANTED, sides["forest"], strict=True)]
    return {
        "rows": list(X.shape),
        "one_by_one": stream,
        "threads": threads,
        "forgotten": forgotten,
        "checks": [
            check(
                "one by one: the forest reaches the recalls",
                all(is_ >= wanted - 0.02 for is_, wanted in reached),
                str(reached),
            ),
            check("one by one: the same forest as by one call", stream["is_same"]),
            check("forgotten: none of them is found", ghosts == 0, str(ghosts)),
            check("two threads find the same", threads["is_same"]),
        ],
        "targets": [] if settings.smoke else _targets(sides, threads, forgotten),
    }


def _rows(settings: Settings) -> tuple[Array, Array]:
    """Return rows to insert, and queries; without GloVe, generated ones."""
    n = settings.size(100_000, 1_500)
    found = None if settings.smoke else glove()
    if found is not None:
        return found[0][:n], found[1]
    rng = np.random.default_rng(settings.seed)
    X = rng.normal(size=(n + 500, 16)).astype(np.float32)
    return X[500:], X[:500]


# One by one


def one_by_one(X: Array, queries: Array, settings: Settings) -> dict[str, Any]:
    """Return each index's seconds at the recalls that are wanted, and the recalls it reached."""
    order = np.random.default_rng(settings.seed).integers(len(queries), size=len(X))
    step = max(1, len(X) // settings.size(N_ASKED, 100))
    asked = np.arange(10 * NEIGHBORS, len(X), step)  # searches whose recall counts
    true = nearest_so_far(X, queries[order[asked]], asked + 1)
    there = [key for key, of in CONTESTANTS.items() if installed(of.module) is not None]

    def made(key: str) -> Index:
        return CONTESTANTS[key].make(X.shape[1], len(X), settings.seed)

    widths = {}
    for key in there:
        settings.say(f"one by one: the widths of {key}")
        widths[key] = _widths(made(key), X, queries[order], asked, true)
    indexes: dict[str, Index] = {key: made(key) for key in there}
    seconds = {key: np.zeros(1 + len(WANTED)) for key in there}  # of inserts, then of searches
    found: dict[str, list[list[Array]]] = {key: [[] for _ in WANTED] for key in there}
    is_asked = np.isin(np.arange(len(X)), asked)
    for begin in range(0, len(X), AT_ONCE):
        for key, index in indexes.items():
            settings.say(f"one by one: {key} at row {begin:,} of {len(X):,}")
            for i in range(begin, min(begin + AT_ONCE, len(X))):
                row, query = X[i : i + 1], queries[order[i]][None]
                start = time.process_time()
                index.insert(row, i)
                seconds[key][0] += time.process_time() - start
                if i < asked[0]:
                    continue
                # Which comes first changes: the second one finds more of the graph in cache.
                for which in range(len(WANTED)) if i % 2 else reversed(range(len(WANTED))):
                    start = time.process_time()
                    numbers = index.search(query, widths[key][which])
                    seconds[key][1 + which] += time.process_time() - start
                    if is_asked[i]:
                        found[key][which].append(numbers)
    sides = {
        key: [
            {
                "wanted": wanted,
                "width": widths[key][which],
                "recall": recall(np.array(found[key][which]), true),
                "insert_s": float(seconds[key][0]),
                "search_s": float(seconds[key][1 + which]),
            }
            for which, wanted in enumerate(WANTED)
        ]
        for key in there
    }
    batch = BoundaryForestNeighbors(NEIGHBORS, n_estimators=30, random_state=settings.seed).fit(X)
    forest: Any = indexes["forest"]
    return {"sides": sides, "is_same": batch.fingerprint() == forest.index.fingerprint()}


def _widths(index: Index, X: Array, queries: Array, asked: Array, true: Array) -> list[int]:
    """Return the width for each recall that is wanted, between those that are tried."""
    found: list[list[Array]] = [[] for _ in WIDTHS]
    number = 0
    for last in asked:
        for i in range(number, last + 1):
            index.insert(X[i : i + 1], i)
        number = last + 1
        for which, width in enumerate(WIDTHS):
            found[which].append(index.search(queries[last : last + 1], width))
    recalls = np.maximum.accumulate([recall(np.array(some), true) for some in found])
    return [int(np.ceil(np.interp(wanted, recalls, WIDTHS))) for wanted in WANTED]


# Threads


def two_threads(X: Array, queries: Array, settings: Settings) -> dict[str, Any]:
    """Return the seconds of a batch on one thread and on two."""
    index = BoundaryForestNeighbors(NEIGHBORS, random_state=settings.seed).fit(X)
    batch = queries[:BATCH]
    answers = {}

    def turn(jobs: int) -> dict[str, float]:
        index.set_params(n_jobs=jobs)
        answers[jobs], seconds = timed(index.kneighbors, batch)
        return {"s": seconds}

    turns: dict[str, Any] = {str(jobs): (lambda jobs=jobs: turn(jobs)) for jobs in (1, 2)}
    times = take_turns(turns, settings, "two threads")
    same = all(np.array_equal(a, b) for a, b in zip(answers[1], answers[2], strict=True))
    one, two = (times[jobs]["s"] for jobs in ("1", "2"))
    return {"queries": len(batch), "one_s": one, "two_s": two, "ratio": one / two, "is_same": same}


# Forgotten


def with_forgotten(X: Array, queries: Array, settings: Settings) -> dict[str, Any]:
    """Return curves of recall and time of indexes that forgot, and of others that never had it."""
    order = np.random.default_rng(settings.seed).permutation(len(X))
    n_gone = {"marked": (len(X) - 1) // 3, "rebuilt": len(X) // 2 - 1}
    settings.say("forgotten: building")
    made: dict[str, BoundaryForestNeighbors] = {}
    names: dict[str, Array] = {}
    for key, n in n_gone.items():
        names[key] = names[FRESH[key]] = np.sort(order[n:])
        for one in (key, FRESH[key]):
            made[one] = BoundaryForestNeighbors(NEIGHBORS, random_state=settings.seed)
        made[key].fit(X, ids=np.arange(len(X)))
        made[FRESH[key]].fit(X[names[key]], ids=names[key])
        _, forget_s = timed(made[key].forget, order[:n])
    true = {
        key: index.kneighbors(queries, return_distance=False, exact=True)
        for key, index in made.items()
    }
    curves: dict[str, list[dict[str, float]]] = {key: [] for key in made}
    ghosts = 0

    def search(index: BoundaryForestNeighbors, width: int) -> Array:
        return np.asarray(index.kneighbors(queries, return_distance=False, beam=width))

    for width in WIDTHS:
        recalls: dict[str, float] = {}

        def turn(key: str, width: int = width, recalls: dict[str, float] = recalls) -> Any:
            nonlocal ghosts
            found, seconds = timed(search, made[key], width)
            ghosts += int((~np.isin(found, names[key])).sum())
            recalls[key] = recall(found, true[key])
            return {"us": 1e6 * seconds / len(queries)}

        turns = {key: (lambda key=key: turn(key)) for key in made}
        times = take_turns(turns, settings, f"forgotten, width {width}")
        for key, of in times.items():
            curves[key].append({"width": width, "recall": recalls[key], "us": of["us"]})
    memory = {key: index.stats()["bytes"]["total"] for key, index in made.items()}
    return {
        "curves": curves,
        "bytes": memory,
        "rows": {key: len(of) for key, of in names.items()},
        "rebuilt_s": forget_s,
        "ghosts": ghosts,
        "times": {
            key: [time_at(curve, wanted) for wanted in WANTED] for key, curve in curves.items()
        },
    }


# What is told


def _targets(
    sides: dict[str, Any], threads: dict[str, Any], forgotten: dict[str, Any]
) -> list[dict[str, Any]]:
    found = []
    for peer in ("hnswlib", "usearch"):
        for ours, theirs in zip(sides["forest"], sides.get(peer, ()), strict=False):
            ratio = _total(ours) / _total(theirs)
            what = f"one by one at recall {ours['wanted']}: total time over {peer}'s"
            found.append(target(what, ratio, at_most=1.0))
    found.append(target("two threads' speed over one's", threads["ratio"], at_least=1.7))
    for key, title, at_most in (("marked", "a third forgotten", 1.6), ("rebuilt", "half", 1.3)):
        for which, wanted in enumerate(WANTED):
            ours, fresh = forgotten["times"][key][which], forgotten["times"][FRESH[key]][which]
            if ours is not None and fresh is not None:
                what = f"{title}: time at recall {wanted} over a fresh index's"
                found.append(target(what, ours / fresh, at_most=at_most))
    memory = forgotten["bytes"]
    what = "rebuilt: bytes over a fresh index's"
    return [*found, target(what, memory["rebuilt"] / memory[FRESH["rebuilt"]], at_most=1.1)]


def _total(side: dict[str, float]) -> float:
    return side["insert_s"] + side["search_s"]


def report(result: dict[str, Any], console: Console) -> None:
    n, n_features = result["rows"]
    table = new_table(f"{n:,} rows of {n_features}, each inserted and followed by a search")
    table.add_column("", no_wrap=True)
    for heading in ("inserts s", *(f"{what} {w}" for w in WANTED for what in HEADINGS)):
        table.add_column(heading, justify="right")
    for key, contestant in CONTESTANTS.items():
        side = result["one_by_one"]["sides"].get(key)
        if side is None:
            table.add_row(contestant.title, "not installed")
            continue
        cells = [
            cell
            for of in side
            for cell in (
                str(of["width"]),
                f"{of['recall']:.3f}",
                f"{of['search_s']:.2f}",
                f"{_total(of):.2f}",
            )
        ]
        table.add_row(contestant.title, f"{side[0]['insert_s']:.2f}", *cells)
    console.print(table)
    threads = result["threads"]
    console.print(
        f"{threads['queries']:,} queries: {threads['one_s']:.3f} s on one thread, "
        f"{threads['two_s']:.3f} s on two, {threads['ratio']:.2f} times as fast\n"
    )
    forgotten = result["forgotten"]
    table = new_table("rows forgotten at random: us a query at recall@10, and memory")
    table.add_column("", no_wrap=True)
    for heading in (*(f"{wanted}" for wanted in WANTED), "bytes per example"):
        table.add_column(heading, justify="right")
    for key, title in TITLES.items():
        times = ["-" if us is None else f"{us:.0f}" for us in forgotten["times"][key]]
        table.add_row(title, *times, f"{forgotten['bytes'][key] / forgotten['rows'][key]:.0f}")
    console.print(table)


HEADINGS = ("width for", "recall", "search s", "total s")
TITLES = {
    "marked": "a third, and still passed through",
    "fresh two thirds": "never had them",
    "rebuilt": "half, and rebuilt without them",
    "fresh half": "never had them",
}
