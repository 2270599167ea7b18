"""What a limit k to the children of a node saves, and what it costs."""

from typing import Any

import numpy as np

from boundary_forest import BoundaryForestNeighbors
from paper import plots, streams
from paper.context import Context
from paper.forests import classifier
from paper.growth import LEARNED_AT_ONCE, query_comparisons
from paper.item import Item, Result, Row, Table, holds
from paper.items.retrieval import ranks
from paper.tasks import BENCHMARKS, Task, absent_rows, present

LIMITS = (2, 5, 10, 20, 50, 100, None)
JUDGED = 50  # the paper's
N_TREES = 50
D = 100
ERRORS = 2.0  # standard errors
CHANCE = 0.99

RULE = (
    f"at k = {JUDGED} the error is higher than without a limit by at most {ERRORS:g} standard "
    "errors (of a share, on so many queries), and makes at most as many comparisons a query. For "
    "retrieval an error is an x* that is not the nearest of all examples; there the limit is "
    "reached, and must save at least half of the comparisons. n_T = 50."
)


def classified(context: Context, task: Task, k: int | None) -> dict[str, float]:
    """Return the per cent wrong on the test set, and comparisons per query and tree."""
    forest = classifier(context, max_children=k).fit(task.X_train, task.y_train)
    error = task.error(forest.predict(task.X_test))
    made = forest.stats()["comparisons"]["query"]
    return {"error": error, "comparisons": made / (len(task.X_test) * forest.n_estimators)}


def retrieved(
    context: Context, stream: streams.Stream, N: int, k: int | None, n_T: int = N_TREES
) -> dict[str, float]:
    """Do as ``classified`` for retrieval, with the fraction f of the paper's Figure 1."""
    forest = BoundaryForestNeighbors(
        search="paper",
        n_estimators=n_T,
        max_children=k,
        n_jobs=context.n_jobs,
        random_state=context.seed,
    )
    for start in range(0, N, LEARNED_AT_ONCE):
        forest.partial_fit(stream.rows(start, min(start + LEARNED_AT_ONCE, N)))
    comparisons = query_comparisons(forest, stream.queries)
    rank = ranks(stream, N, forest.kneighbors(stream.queries, 1, return_distance=False))
    return {
        "error": 100 * float((rank > 1).mean()),
        "comparisons": comparisons,
        "f": float(np.quantile(rank, CHANCE, method="higher")) / N,
    }


def run(context: Context) -> Result:
    """Measure classification of the benchmarks, and retrieval, where nodes get wide."""
    tasks = list(present(context, context.pick(tiny=150, quick=6_000, full=None)))
    N = context.pick(tiny=600, quick=30_000, full=100_000)
    stream = streams.hypercube(context, D, context.pick(tiny=100, quick=1_000, full=5_000))
    context.expect((len(tasks) + 1) * len(LIMITS) + 1)
    sets = []
    for task in tasks:
        shape = f"{len(task.X_train)} rows, {len(task.X_test)} queries"
        lines = [
            context.step(f"{task.name}, {shape}, k={k}", classified, context, task, k)
            for k in LIMITS
        ]
        sets.append(joined(task.title, len(task.X_test), lines))
    named = f"hypercube D={D}, N={N}, {len(stream.queries)} queries"
    lines = [context.step(f"{named}, k={k}", retrieved, context, stream, N, k) for k in LIMITS]
    retrieval = joined(f"retrieval, hypercube, N = {N:,}", len(stream.queries), lines)
    n_T = round(N_TREES / ratio(retrieval))
    key = f"{named}, k={JUDGED}, n_T={n_T}"
    as_dear = context.step(key, retrieved, context, stream, N, JUDGED, n_T)
    retrieval |= {"N": N, "as_dear": {"n_T": n_T, **as_dear}}
    figures = {"k": list(LIMITS), "sets": sets, "retrieval": retrieval}
    rows = [row for one in sets for row in rows_of(one, saved=0.0)]
    rows += rows_of(retrieval, saved=0.5)
    what = f"{{}}: error at k = {JUDGED}, beyond that without a limit"
    rows += absent_rows(context, what, dict.fromkeys(BENCHMARKS, "low or negligible"))
    return Result(rows, figures, tables(figures), remark(figures))


def joined(title: str, n_queries: int, lines: list[dict[str, float]]) -> dict[str, Any]:
    """Return the lines of one data set as lists over k."""
    by_name = {name: [line[name] for line in lines] for name in lines[0]}
    return {"title": title, "queries": n_queries, **by_name}


def at(one: dict[str, Any], name: str, k: int | None) -> float:
    """Return a figure at one k."""
    return float(one[name][LIMITS.index(k)])


def ratio(one: dict[str, Any], k: int | None = JUDGED) -> float:
    """Return the ratio of the comparisons at one k to those without a limit."""
    return at(one, "comparisons", k) / at(one, "comparisons", None)


def cost(one: dict[str, Any], k: int | None) -> tuple[float, float]:
    """Return the increase in error over no limit, in points, and a share's standard error."""
    free = at(one, "error", None)
    spread = np.sqrt(free * (100 - free) / one["queries"])
    return at(one, "error", k) - free, float(spread)


def cheapest(one: dict[str, Any]) -> int | None:
    """Return the k of the fewest comparisons whose cost is within what is allowed."""
    allowed = [k for k in LIMITS if cost(one, k)[0] <= ERRORS * cost(one, k)[1]]
    return min(allowed, key=lambda k: at(one, "comparisons", k))


def rows_of(one: dict[str, Any], *, saved: float) -> list[Row]:
    """Return rows on cost and gain at the paper's k; ``saved`` is the least share it must save."""
    more, spread = cost(one, JUDGED)
    gain = "significantly faster" if saved else "can be faster"
    return [
        Row(
            f"{one['title']}: error at k = {JUDGED}, beyond that without a limit",
            "low or negligible",
            f"{more:+.2f} points (standard error {spread:.2f})",
            holds(more <= ERRORS * spread),
        ),
        Row(
            f"{one['title']}: comparisons at k = {JUDGED} / without a limit",
            gain,
            ratio(one),
            holds(ratio(one) <= 1 - saved),
        ),
    ]


def tables(figures: dict[str, Any]) -> list[Table]:
    """Return tables of all figures by k."""
    header = ("data", *("no limit" if k is None else f"k = {k}" for k in LIMITS))
    sets, retrieval = figures["sets"], figures["retrieval"]
    return [
        Table("Per cent wrong", header, [[one["title"], *one["error"]] for one in sets]),
        Table(
            "Comparisons per query and tree",
            header,
            [[one["title"], *one["comparisons"]] for one in [*sets, retrieval]],
        ),
        Table(
            f"{retrieval['title'][0].upper()}{retrieval['title'][1:]}",
            ("x*", *header[1:]),
            [
                ["is not the nearest, %", *retrieval["error"]],
                [f"is in the best fraction f with {CHANCE:.0%} chance", *retrieval["f"]],
            ],
        ),
    ]


def remark(figures: dict[str, Any]) -> str:
    """Describe where the limit matters, which k suffices, and what the savings could buy."""
    sets, retrieval = figures["sets"], figures["retrieval"]
    idle = [one["title"] for one in sets if ratio(one) == 1]
    parts = []
    if idle:
        parts.append(
            f"On {', '.join(idle)} k = {JUDGED} is no limit at all: no node of a classification "
            "tree comes to so many children, for only examples that were named wrongly are kept."
        )
    smaller = [(one, cheapest(one)) for one in sets]
    choices = [
        f"{one['title']} k = {k}, {1 - ratio(one, k):.0%}"
        for one, k in smaller
        if k is not None and k < JUDGED
    ]
    if choices:
        parts.append(
            "In classification a smaller k saves more, still within two standard errors of the "
            f"error without a limit: {'; '.join(choices)} of the comparisons."
        )
    large = [one["title"] for one, k in smaller if k is None or k >= JUDGED]
    if large:
        parts.append(f"On {', '.join(large)} no k below {JUDGED} is within them.")
    found, free = (100 - at(retrieval, "error", k) for k in (JUDGED, None))
    N = retrieval["N"]
    rank, free_rank = (round(at(retrieval, "f", k) * N) for k in (JUDGED, None))
    dear = retrieval["as_dear"]
    parts.append(
        f"In retrieval, where all examples are kept, k = {JUDGED} saves {1 - ratio(retrieval):.0%} "
        f"of the comparisons, and more the larger N is; but x* is the nearest of all for "
        f"{found:.1f} % of the queries instead of {free:.1f} %. By the measure of Figure 1, it is "
        f"among the nearest {rank} of {N:,} instead of the nearest {free_rank}, with {CHANCE:.0%} "
        "chance. Given as many comparisons as without a limit, which makes "
        f"{dear['n_T']} trees instead of {N_TREES}, k = {JUDGED} finds the nearest for "
        f"{100 - dear['error']:.1f} %."
    )
    return " ".join(parts)


def draw(figures: dict[str, Any]) -> Any:
    """Draw error and comparisons of each data set against k, relative to no limit."""
    figure, axes = plots.panels(["Error", "Comparisons"], height=4.4)
    places = np.arange(len(figures["k"]))
    names = ["no\nlimit" if k is None else str(k) for k in figures["k"]]
    lines, drawn = [*figures["sets"], figures["retrieval"]], {}
    for ax, name in zip(axes, ("error", "comparisons"), strict=True):
        for color, one in zip(plots.COLORS, lines, strict=False):
            free = one[name][-1]
            if free:
                style = "s--" if one is figures["retrieval"] else "o-"
                (line,) = ax.plot(places, np.array(one[name]) / free, style, color=color)
                drawn[one["title"]] = line
        ax.axhline(1, color=plots.FIT, linewidth=0.8)
        ax.axvline(names.index(str(JUDGED)), color=plots.FIT, linewidth=0.8, linestyle=":")
        ax.set_xticks(places, names)
        ax.set_xlabel("most children a node may have, k")
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("error at k / error without a limit")
    axes[1].set_ylabel("comparisons at k / without a limit")
    figure.legend(list(drawn.values()), list(drawn), loc="outside lower center", ncols=4)
    return figure


ITEMS = (
    Item(
        name="finite-k",
        title="A limit k to the children of a node: what it saves and costs",
        where="Section 3, text",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=BENCHMARKS,
        plots={"": draw},
    ),
)
