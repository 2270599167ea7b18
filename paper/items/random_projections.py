"""Random projections before the forest: what they save, what they cost, how many are needed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest import BoundaryForestClassifier
from paper import plots
from paper.context import Context
from paper.item import Item, Result, Row, Table, holds
from paper.laws import linear
from paper.shares import two_standard_errors
from paper.tasks import DIGITS, Task, absent_rows, present
from paper.timing import timed

DIMENSIONS = (8, 16, 32, 64, 128, 256)
SETS = ("mnist", "dna", DIGITS)
N_TREES, K = 50, 50
GENERATED = 512  # dimensions of the generated set
KEPT = 0.2  # a distance is kept if it changes by no more than this share
JUDGED = 128  # projections, which keep distances so
PAIRS = 0.99  # of the pairs, that must keep theirs

RULE = (
    f"for the lemma, the number of projections needed to change {PAIRS:.0%} of the distances of a "
    f"generated set by {KEPT:.0%} at most must grow no faster than log D. {JUDGED} are as many or "
    f"more: there is a speedup if they take less time in all, projecting included, than the same "
    "rows unprojected as float32. The impact on performance is the paper's question, and is "
    "reported. An error is as good if it is no more than two standard errors above the "
    "unprojected one."
)


def generated(context: Context) -> Task:
    """Return ten classes on curved sheets of 5 dimensions in 512, with noise in all of them."""
    n = context.pick(tiny=200, quick=2_000, full=10_000)
    rng = context.rng(31)
    sheets = rng.normal(size=(10, 5, GENERATED)) / np.sqrt(5)
    centres = rng.normal(size=(10, GENERATED)) * 0.3
    y = rng.integers(10, size=n + n // 4)
    X = np.einsum("ni,nid->nd", rng.normal(size=(len(y), 5)), sheets[y])
    X = np.tanh(X) + centres[y] + rng.normal(size=X.shape)
    X = X.astype(np.float32)
    return Task("generated", X[:n], y[:n], X[n:], y[n:], False)


def tasks_at_hand(context: Context) -> Iterator[Task]:
    """Yield two of the paper's benchmarks, digits, and a generated one, if available."""
    yield from present(context, context.pick(tiny=200, quick=4_000, full=None), SETS)
    yield generated(context)


def projection(D: int, d: int, seed: int) -> NDArray[np.float32]:
    """Return a matrix that keeps squared distances on average: normal, of variance 1 / d."""
    rng = np.random.default_rng([seed, D, d])
    return np.asarray(rng.normal(size=(D, d)) / np.sqrt(d), dtype=np.float32)


def once(of: Task, d: int | None, seed: int, context: Context) -> dict[str, float]:
    """Return error, seconds, and comparisons per query and tree; d = None is unprojected."""
    forest = BoundaryForestClassifier(
        shuffle=False,
        n_estimators=N_TREES,
        max_children=K,
        n_jobs=context.n_jobs,
        random_state=context.seed,
    )
    matrix = None if d is None else projection(of.X_train.shape[1], d, seed)

    def seen(X: NDArray[Any]) -> NDArray[np.float32]:
        rows = X.astype(np.float32)
        return rows if matrix is None else rows @ matrix

    def learn() -> None:
        forest.fit(seen(of.X_train), of.y_train)

    _, learn_s = timed(learn)
    predicted, query_s = timed(lambda: forest.predict(seen(of.X_test)))
    made = forest.stats()["comparisons"]["query"]
    return {
        "error": of.error(predicted),
        "learn_s": learn_s,
        "query_s": query_s,
        "comparisons": made / (len(of.X_test) * N_TREES),
    }


def sweep(context: Context, of: Task) -> dict[str, Any]:
    """Measure several projections for each d below D, and the rows as they are."""
    n, m, D = len(of.X_train), len(of.X_test), of.X_train.shape[1]
    dims = [d for d in context.pick(tiny=(8, 64), quick=DIMENSIONS, full=DIMENSIONS) if d < D]
    turns = context.pick(tiny=2, quick=2, full=3)
    context.expect((len(dims) + 1) * turns)
    found: dict[str, list[dict[str, float]]] = {}
    # In turns, so that what else the machine does meets all of them.
    for turn in range(turns):
        for d in (None, *dims):
            key = f"{of.name} {n}/{m}, d={d}, turn {turn}"
            got = context.step(key, once, of, d, turn, context)
            found.setdefault(str(d), []).append(got)
    unprojected = found.pop("None")
    return {"D": D, "N": n, "queries": m, "dims": dims, "none": unprojected, "projected": found}


def mean(turns: list[dict[str, float]], name: str) -> float:
    """Return the mean over the turns."""
    return float(np.mean([turn[name] for turn in turns]))


def seconds(turns: list[dict[str, float]], name: str = "both") -> float:
    """Return the seconds of the quickest turn: training, testing or both."""
    names = ("learn_s", "query_s") if name == "both" else (name,)
    return min(sum(turn[n] for n in names) for turn in turns)


def needed(D: int, n_points: int, seed: int, turns: int) -> float:
    """Return how many projections keep the distances of a uniform set in the hypercube.

    The distortion that the share PAIRS of the pairs stay below falls as 1 / sqrt(d), so every d
    gives an estimate of where it meets KEPT; their mean is returned.
    """
    from scipy.spatial.distance import pdist  # type: ignore[import-untyped]

    estimates = []
    for turn in range(turns):
        X = np.random.default_rng([seed, D, turn]).random((n_points, D), dtype=np.float32)
        before = pdist(X)
        for d in (48, 64, 96, 128):
            after = pdist(X @ projection(D, d, seed + turn))
            distortion = np.quantile(np.abs(after / before - 1), PAIRS)
            estimates.append(d * (distortion / KEPT) ** 2)
    return float(np.mean(estimates))


def lemma(context: Context) -> dict[str, Any]:
    """Measure the projections needed against D."""
    dims = context.pick(
        tiny=[50, 200, 800],
        quick=[100, 300, 1_000, 3_000],
        full=[100, 200, 500, 1_000, 2_000, 5_000, 10_000],
    )
    n_points, turns = (
        context.pick(tiny=50, quick=200, full=400),
        context.pick(tiny=2, quick=3, full=5),
    )
    context.expect(len(dims))
    return {
        "D": dims,
        "needed": [
            context.step(f"needed, D={D}, n={n_points}", needed, D, n_points, context.seed, turns)
            for D in dims
        ],
    }


def run(context: Context) -> Result:
    """Measure all available data sets, and the lemma."""
    sets, rows, lines = {}, [], []
    for of in tasks_at_hand(context):
        found = sets[of.name] = sweep(context, of)
        rows += claims(of, found)
        for d, turns in (*found["projected"].items(), (f"none ({found['D']})", found["none"])):
            ratio = seconds(turns) / seconds(found["none"])
            spread = np.ptp([turn["error"] for turn in turns])
            cost = mean(turns, "comparisons")
            lines.append([of.title, d, mean(turns, "error"), float(spread), cost, ratio])
    law = lemma(context)
    rows.append(lemma_row(law))
    rows += absent_rows(context, "{}: time", dict.fromkeys(SETS[:-1], "speedup"))
    header = (
        "data",
        "d",
        "error, %",
        "spread",
        "comparisons a query and tree",
        "time / unprojected",
    )
    table = Table(
        "Means over projections; spread is the largest error less the least", header, lines
    )
    figures = {"sets": sets, "lemma": law}
    return Result(rows, figures, [table], remark(figures))


def best_d(found: dict[str, Any]) -> str | None:
    """Return the quickest d whose error is not significantly above the unprojected one's."""
    plain = mean(found["none"], "error")
    good = []
    for d, turns in found["projected"].items():
        error = mean(turns, "error")
        if error - plain <= two_standard_errors(error, plain, found["queries"]):
            good.append(d)
    return min(good, key=lambda d: seconds(found["projected"][d])) if good else None


def claims(of: Task, found: dict[str, Any]) -> list[Row]:
    """Return rows on the speed-up of distance-keeping projections, their error, and the best d."""
    plain, d = mean(found["none"], "error"), str(JUDGED)
    name, rows = f"{of.title}, D = {found['D']}", []
    if d in found["projected"]:
        turns = found["projected"][d]
        ratio = seconds(turns) / seconds(found["none"])
        rows = [
            Row(f"{name}: time with d = {d} / unprojected", "speedup", ratio, holds(ratio < 1)),
            Row(
                f"{name}: error with d = {d}, unprojected {plain:.2f} %",
                None,
                mean(turns, "error"),
                unit="%",
            ),
        ]
    best = best_d(found)
    ours = f"d = {best}" if best else "none"
    return [*rows, Row(f"{name}: the quickest d that is as good", None, ours)]


def lemma_row(law: dict[str, Any]) -> Row:
    """Return the row on whether the number of projections needed grows at most as log D."""
    first, last = law["needed"][0], law["needed"][-1]
    allowed = np.log(law["D"][-1]) / np.log(law["D"][0])
    return Row(
        f"projections needed, D = {law['D'][0]:,} to {law['D'][-1]:,}",
        "grows as log D",
        f"{first:.0f} to {last:.0f}",
        holds(last / first <= allowed),
    )


def remark(figures: dict[str, Any]) -> str:
    """Describe what is saved and why, and what the lemma says."""
    sentences = []
    for name, found in figures["sets"].items():
        d = str(JUDGED) if str(JUDGED) in found["projected"] else str(found["dims"][-1])
        turns, plain = found["projected"][d], found["none"]
        parts = [seconds(turns, part) / seconds(plain, part) for part in ("learn_s", "query_s")]
        made = mean(turns, "comparisons") / mean(plain, "comparisons")
        sentences.append(
            f"On {name} d = {d} takes {parts[0]:.2f} of the time to learn and {parts[1]:.2f} to "
            f"query, with {made:.2f} times the comparisons, and the error is "
            f"{mean(turns, 'error'):.2f} % instead of {mean(plain, 'error'):.2f} %."
        )
    sentences.append(
        "Keeping distances to a fifth is not keeping the order of the nearest ones, which is what "
        "the forest lives on: where that order matters the error rises, more examples are stored "
        "and more comparisons made. So the time falls by less than d / D, and projecting itself "
        "costs D d a row."
    )
    law = figures["lemma"]
    slope = linear(np.log(law["D"]).tolist(), law["needed"])["a"]
    sentences.append(
        f"The projections needed change by {slope:+.1f} for each factor e of D, at "
        f"{np.mean(law['needed']):.0f}: the lemma's number depends on how many points there are, "
        "as their logarithm, and not on D; the paper's log D is generous."
    )
    return " ".join(sentences)


def draw(figures: dict[str, Any]) -> Any:
    """Draw error and time against d, and the projections needed against D."""
    titles = ["Error", "Time to learn and query", "Projections that keep distances"]
    figure, (errors, times, law) = plots.panels(titles, width=4.4)
    for color, (name, found) in zip(plots.COLORS, figures["sets"].items(), strict=False):
        x, label = found["dims"], f"{name}, D = {found['D']}"
        of = found["projected"].values()
        ends = [[t["error"] for t in turns] for turns in of]
        errors.fill_between(
            x, [min(e) for e in ends], [max(e) for e in ends], color=color, alpha=0.2
        )
        errors.plot(x, [mean(turns, "error") for turns in of], "o-", color=color, label=label)
        plain = mean(found["none"], "error")
        errors.axhline(plain, color=color, linestyle="--", linewidth=1)
        ratios = [seconds(turns) / seconds(found["none"]) for turns in of]
        times.plot(x, ratios, "o-", color=color, label=label)
    errors.axhline(np.nan, color=plots.FIT, linestyle="--", linewidth=1, label="unprojected")
    times.axhline(1, color=plots.FIT, linestyle="--", linewidth=1)
    plots.named_axes(errors, "projections d", "test error, %", log_x=True, log_y=True)
    plots.named_axes(times, "projections d", "time / unprojected", log_x=True)
    times.set_ylim(bottom=0)
    times.legend([], frameon=False)  # the colours are those of the first panel
    D, count = figures["lemma"]["D"], figures["lemma"]["needed"]
    law.plot(D, count, "o-", color=plots.COLORS[0], label=f"{PAIRS:.0%} of pairs within {KEPT:.0%}")
    grown = count[0] * np.log(D) / np.log(D[0])
    plots.fit_line(law, D, grown, "log D, from the first point")
    plots.named_axes(law, "dimensions D", "projections needed", log_x=True)
    law.set_ylim(bottom=0)
    for ax in (errors, times):
        ticks = sorted({d for found in figures["sets"].values() for d in found["dims"]})
        ax.set_xticks(ticks, [str(d) for d in ticks])
        ax.minorticks_off()
    return figure


ITEMS = (
    Item(
        name="random-projections",
        title="Random projections: speedup and impact on performance",
        where="Section 6; Section 2, text",
        chapter="Future work of the paper",
        rule=RULE,
        run=run,
        data=SETS[:-1],
        plots={"": draw},
    ),
)
