"""How much faster a forest gets with more cores: trees learn and answer independently."""

from typing import Any

import numpy as np
from joblib import cpu_count

from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors
from paper import plots, published, streams, tasks
from paper.context import Context
from paper.item import MEASURED, Item, Result, Row, holds
from paper.timing import timed

PAPER_CORES = 4
HYPERCUBE = "hypercube"
TURNS = 3
LARGE = 2.0  # seconds to train on one core

RULE = (
    "on sets that take one core at least "
    f"{LARGE:g} s to train, the share of each core's work that is gained, (speed-up - 1) / "
    "(cores - 1), must be at least the paper's for mnist with four cores. What is smaller is "
    "reported, not judged. The forest must be the same on all cores, by its fingerprint. The "
    "number of cores is given; the paper's machine had four."
)


def gained(speed_up: float, cores: int) -> float:
    """Return the efficiency: 1 if every core after the first adds as much as the first."""
    return (speed_up - 1) / (cores - 1)


def counts() -> list[int]:
    """Return the numbers of cores to try: 1, 2, 4 and so on, and all."""
    most = cpu_count()
    return sorted({1, *(2**i for i in range(1, 10) if 2**i < most), most})


def measured(made: Any, X: Any, y: Any, queries: Any) -> dict[str, Any]:
    """Return seconds by number of cores: the median over rounds of taking turns."""
    seconds: dict[int, list[tuple[float, float]]] = {cores: [] for cores in counts()}
    prints = set()
    for _ in range(TURNS):
        for cores, of in seconds.items():
            forest = made(cores)
            train_s = timed(forest.fit, X, y)[1]
            query = forest.kneighbors if y is None else forest.predict
            of.append((train_s, timed(query, queries)[1]))
            prints.add(forest.fingerprint())
    medians = {c: np.median(np.array(of), axis=0).tolist() for c, of in seconds.items()}
    return {
        "cores": list(medians),
        "train_s": [train for train, _ in medians.values()],
        "test_s": [test for _, test in medians.values()],
        "same": len(prints) == 1,
    }


def run(context: Context) -> Result:
    """Measure the benchmarks, and retrieval in the hypercube."""
    rows_at_most = context.pick(tiny=200, quick=15_000, full=None)
    n = context.pick(tiny=500, quick=30_000, full=200_000)
    stream = streams.hypercube(context, 100, n // 10)

    def classifier(cores: int) -> Any:
        return BoundaryForestClassifier(n_jobs=cores, random_state=context.seed, shuffle=False)

    def index(cores: int) -> Any:
        return BoundaryForestNeighbors(
            1, search="paper", n_estimators=50, n_jobs=cores, random_state=context.seed
        )

    found = {}
    for task in tasks.present(context, rows_at_most):
        key = f"{task.title}, 1 to {cpu_count()} cores"
        arguments = (classifier, task.X_train, task.y_train, task.X_test)
        found[task.title] = {
            **context.step(key, measured, *arguments),
            "whole": task.whole,
            "paper": _paper(task.name) if task.whole else None,
        }
    key = f"{HYPERCUBE}, N={n}, 1 to {cpu_count()} cores"
    rows_learned = stream.rows(0, n)
    cube = context.step(key, measured, index, rows_learned, None, stream.queries)
    found[f"{HYPERCUBE}, N = {n:,}"] = {**cube, "whole": True, "paper": None}
    rows = [row for name, of in found.items() for row in speed_rows(name, of)]
    same = all(of["same"] for of in found.values())
    rows.append(
        Row("one forest for any number of cores", "yes", "yes" if same else "no", holds(same))
    )
    rows += tasks.absent_rows(context, "{}", dict.fromkeys(published.SETS))
    return Result(rows, {"found": found}, remark=remark(found))


def _paper(name: str) -> dict[str, float]:
    """Return the paper's speed-ups with four cores."""
    return {
        which: table["BF"][name] / table["BF-4"][name]
        for which, table in (("train_s", published.TRAINING), ("test_s", published.TESTING))
        if name in table["BF"]
    }


def speed_rows(name: str, of: dict[str, Any]) -> list[Row]:
    """Return rows on training and testing with all cores against one."""
    cores, rows = of["cores"][-1], []
    for which, what in (("train_s", "training"), ("test_s", "testing")):
        speed_up = of[which][0] / of[which][-1]
        paper, verdict = (of["paper"] or {}).get(which), MEASURED
        if cores > 1 and of["whole"] and of["train_s"][0] >= LARGE:
            enough = gained(_paper("mnist")[which], PAPER_CORES)
            verdict = holds(gained(speed_up, cores) >= enough)
        theirs = None if paper is None else f"{paper:.2f} with {PAPER_CORES} cores"
        rows.append(
            Row(f"{name}: {what}, times as fast", theirs, f"{speed_up:.2f} with {cores}", verdict)
        )
    return rows


def remark(found: dict[str, Any]) -> str:
    """Describe what small data sets lack."""
    cores = next(iter(found.values()))["cores"][-1]
    if cores == 1:
        return "The machine has one core, so that nothing can be said."
    enough = gained(_paper("mnist")["train_s"], PAPER_CORES)
    return (
        f"The paper's four cores learn mnist {_paper('mnist')['train_s']:.2f} times as fast as "
        f"one, a gain of {enough:.0%} a core after the first; {cores} cores must therefore be "
        f"{1 + enough * (cores - 1):.2f} times as fast. Sets that one core learns in some tenths "
        "of a second leave too little to share out."
    )


def draw(figures: dict[str, Any]) -> Any:
    """Draw the speed-ups of training and testing as bars."""
    found = figures["found"]
    cores = next(iter(found.values()))["cores"][-1]
    title = f"Times as fast with {cores} cores as with one"
    figure, (ax,) = plots.panels([title], width=7.0, height=1.4 + 0.5 * len(found))
    places = np.arange(len(found))[::-1]
    for shift, which, what, color in (
        (0.18, "train_s", "training", plots.COLORS[1]),
        (-0.18, "test_s", "testing", plots.COLORS[0]),
    ):
        speed_ups = [of[which][0] / of[which][-1] for of in found.values()]
        ax.barh(places + shift, speed_ups, 0.32, color=color, label=what)
    ax.axvline(cores, color=plots.FIT, linestyle="--", linewidth=1.1)
    plots.named_axes(ax, "times as fast", "")
    ax.set_yticks(places, list(found))
    ax.grid(visible=False, axis="y")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)
    return figure


ITEMS = (
    Item(
        name="many-cores",
        title="Cores share the trees",
        where="Sections 3 and 5, Table 1 (BF-4)",
        chapter="Times",
        rule=RULE,
        run=run,
        data=published.SETS,
        plots={"": draw},
    ),
)
