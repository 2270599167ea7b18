"""What a forest stores: nodes per tree and examples in all, against N and n_T; and bytes."""

from itertools import pairwise
from typing import Any

from boundary_forest import BoundaryForestNeighbors
from paper import plots, streams
from paper.context import Context
from paper.forests import classifier
from paper.growth import sizes
from paper.item import Item, Result, Row, Table, close, holds
from paper.laws import straight_in_logs
from paper.tasks import BENCHMARKS, absent_rows, present

N_TREES = (1, 2, 5, 10, 20, 50, 100)
JUDGED = 50  # trees
LINEAR = 0.01  # this near to a power of 1; sublinear is below
GROWS = 1.1
SPARE = 3 * 65_536  # bytes: arrays grow by chunks, of which a few may be partly filled
RETRIEVAL = "retrieval"
D = 20

RULE = (
    "against N: the power over the last decade of N, a straight line in logarithms; 1 within "
    f"{LINEAR:g} is linear, less is sublinear. One copy: the bytes of positions "
    "are those of the stored examples' rows, and at most three chunks of 64 KiB and a byte an "
    "example more. The main space: more than half of all bytes are positions. Does not grow: "
    f"{JUDGED} trees store at most {GROWS:g} times what one stores."
)


def figures_of(forest: Any, row_bytes: int) -> dict[str, Any]:
    """Return nodes per tree, examples in all, and bytes."""
    stats = forest.stats()
    stored, n_bytes = stats["examples_stored"], stats["bytes"]
    beyond = n_bytes["positions"] - stored * row_bytes
    return {
        "nodes": sum(stats["nodes_per_tree"]) / len(stats["nodes_per_tree"]),
        "stored": stored,
        "positions": n_bytes["positions"],
        "trees": n_bytes["trees"],
        "total": n_bytes["total"],
        "copies": n_bytes["positions"] / (stored * row_bytes),
        "one_copy": bool(0 <= beyond <= SPARE + stored),
    }


def grown(forest: Any, X: Any, y: Any, ends: list[int]) -> list[dict[str, Any]]:
    """Return the figures at each number of examples."""
    found = []
    for start, end in pairwise([0, *ends]):
        labels = () if y is None else (y[start:end],)
        forest.partial_fit(X[start:end], *labels)
        found.append(figures_of(forest, X[0].nbytes))
    return found


def measured(context: Context, name: str, X: Any, y: Any) -> dict[str, Any]:
    """Measure against N with 50 trees, and against n_T with all examples; one step each."""

    def forest(n_T: int) -> Any:
        if name != RETRIEVAL:
            return classifier(context, n_estimators=n_T)
        return BoundaryForestNeighbors(
            search="paper", n_estimators=n_T, n_jobs=context.n_jobs, random_state=context.seed
        )

    ends = sizes(min(len(X) // 2, max(100, len(X) // 100)), len(X), 13)
    against_N = context.step(
        f"{name}, to N={len(X)}, n_T={JUDGED}", grown, forest(JUDGED), X, y, ends
    )
    against_trees = [
        context.step(f"{name}, N={len(X)}, n_T={n}", grown, forest(n), X, y, [len(X)])[0]
        for n in N_TREES
    ]
    return {"N": ends, "against_N": against_N, "against_trees": against_trees}


def run(context: Context) -> Result:
    """Measure the benchmarks as classification, and a hypercube as retrieval."""
    tasks = list(present(context, context.pick(tiny=150, quick=8_000, full=None)))
    N = context.pick(tiny=300, quick=8_000, full=50_000)
    context.expect((len(tasks) + 1) * (1 + len(N_TREES)))
    sets = [
        {
            "name": task.name,
            "title": task.title,
            "features": task.X_train.shape[1],
            **measured(context, task.name, task.X_train, task.y_train),
        }
        for task in tasks
    ]
    X = streams.hypercube(context, D, 1).rows(0, N)
    retrieval = {
        "name": RETRIEVAL,
        "title": f"retrieval, {D}-dimensional hypercube",
        "features": D,
        **measured(context, RETRIEVAL, X, None),
    }
    rows = [row for one in sets for row in kept_rows(one)] + retrieval_rows(retrieval)
    rows += [row for one in [*sets, retrieval] for row in space_rows(one)]
    rows += absent_rows(context, "{}: examples stored", dict.fromkeys(BENCHMARKS, "sublinear"))
    everything = [*sets, retrieval]
    return Result(rows, {"sets": everything}, tables(everything), remark(everything))


def power(one: dict[str, Any], name: str) -> float:
    """Return the power of N over its last decade."""
    points = [
        (N, of[name])
        for N, of in zip(one["N"], one["against_N"], strict=True)
        if one["N"][-1] <= 10 * N
    ]
    return straight_in_logs([N for N, _ in points], [y for _, y in points])["p"]


def with_trees(one: dict[str, Any], n_T: int) -> dict[str, Any]:
    """Return the figures of the forest of so many trees after all examples."""
    found: dict[str, Any] = one["against_trees"][N_TREES.index(n_T)]
    return found


def kept_rows(one: dict[str, Any]) -> list[Row]:
    """Return rows on classification storing less than it sees."""
    whats = (("nodes", "nodes a tree"), ("stored", "examples stored by any tree"))
    end, N = one["against_N"][-1], one["N"][-1]
    return [
        Row(
            f"{one['title']}: {what}",
            "typically sublinear in N",
            f"N^{power(one, name):.2f}; {end[name] / N:.0%} of N",
            holds(power(one, name) < 1 - LINEAR),
        )
        for name, what in whats
    ]


def retrieval_rows(one: dict[str, Any]) -> list[Row]:
    """Return rows on retrieval storing all."""
    p = power(one, "nodes")
    verdict = close(p, 1.0, absolute=LINEAR)
    return [Row(f"{one['title']}: nodes a tree", "linear in N", f"N^{p:.2f}", verdict)]


def space_rows(one: dict[str, Any]) -> list[Row]:
    """Return rows on the single copy, which is most of the space, for any number of trees."""
    first, usual = with_trees(one, N_TREES[0]), with_trees(one, JUDGED)
    factor = usual["stored"] / first["stored"]
    share = share_of_positions(one)
    return [
        Row(
            f"{one['title']}: copies of a stored example's position",
            "1",
            usual["copies"],
            holds(all(of["one_copy"] for of in one["against_trees"])),
        ),
        Row(
            f"{one['title']}: share of the bytes that are positions",
            "the main space",
            f"{share:.0%}",
            holds(share > 0.5),
        ),
        Row(
            f"{one['title']}: examples stored by {JUDGED} trees / by one",
            "does not grow with n_T",
            factor,
            holds(factor <= GROWS),
        ),
    ]


def tables(sets: list[dict[str, Any]]) -> list[Table]:
    """Return tables of shares by n_T, and of bytes."""
    return [
        Table(
            "Examples stored by any tree, % of N",
            ("data", *(f"n_T = {n}" for n in N_TREES)),
            [
                [one["title"], *(100 * of["stored"] / one["N"][-1] for of in one["against_trees"])]
                for one in sets
            ],
        ),
        Table(
            f"Bytes an example seen, {JUDGED} trees",
            ("data", "positions", "trees", "in all", "bytes a node"),
            [
                [
                    one["title"],
                    *(of[name] / one["N"][-1] for name in ("positions", "trees", "total")),
                    node_bytes(one),
                ]
                for one, of in ((one, with_trees(one, JUDGED)) for one in sets)
            ],
        ),
    ]


def remark(sets: list[dict[str, Any]]) -> str:
    """Describe why the union grows, and where the trees take more than the positions."""
    labelled = [one for one in sets if one["name"] != RETRIEVAL]
    shares = []
    for one in labelled:
        few, many = (with_trees(one, n)["stored"] / one["N"][-1] for n in (N_TREES[0], JUDGED))
        shares.append(f"{one['title']} {few:.0%} and {many:.0%}")
    parts = [
        "An example that several trees keep is stored once, whatever their number. But in "
        "classification each tree keeps other examples, those that it named wrongly itself, so "
        f"that all together keep more than one: of all examples, one tree and {JUDGED} trees "
        f"store: {', '.join(shares)}. This goes on until everything is stored; memory is bounded "
        "by one copy of all that was seen, and within that it does grow with n_T."
    ]
    steep = [one["title"] for one in labelled if power(one, "stored") >= 1 - LINEAR]
    if steep:
        parts.append(
            f"On {', '.join(steep)} some tree stores whatever comes: what is stored is linear "
            "in N, though what each tree keeps may not be."
        )
    low = [one for one in sets if share_of_positions(one) <= 0.5]
    if low:
        largest = max(sets, key=lambda one: with_trees(one, JUDGED)["nodes"])
        parts.append(
            f"A node takes {node_bytes(largest):.0f} bytes (more in small sets, where a partly "
            f"filled chunk counts), {JUDGED} trees make many nodes, and positions are kept as "
            "bytes where they came as bytes: so where features are few, or bytes, the trees take "
            "more space than the positions. Of all bytes are positions: "
            + ", ".join(
                f"{one['title']} {share_of_positions(one):.0%} "
                f"({share_of_positions(one, 8 * one['features']):.0%} in double precision)"
                for one in low
            )
            + "."
        )
    return " ".join(parts)


def share_of_positions(one: dict[str, Any], row_bytes: int | None = None) -> float:
    """Return the positions' share of all bytes; ``row_bytes`` stands in for a row's size."""
    of = with_trees(one, JUDGED)
    positions = of["positions"] if row_bytes is None else row_bytes * of["stored"]
    return float(positions / (of["total"] - of["positions"] + positions))


def node_bytes(one: dict[str, Any]) -> float:
    """Return the bytes per node of the usual forest."""
    of = with_trees(one, JUDGED)
    return float(of["trees"] / (of["nodes"] * JUDGED))


def draw(figures: dict[str, Any]) -> Any:
    """Draw what is stored against N and against n_T."""
    figure, (left, right) = plots.panels(
        [f"Kept by {JUDGED} trees, as N grows", "Kept of all examples, with more trees"],
        width=5.6,
        height=4.9,
    )
    handles, hollow = [], {"markerfacecolor": "white"}
    for color, one in zip(plots.COLORS, figures["sets"], strict=False):
        N, of, by_trees = one["N"], one["against_N"], one["against_trees"]
        handles += left.plot(N, [o["nodes"] for o in of], "o-", color=color)
        left.plot(N, [o["stored"] for o in of], "s--", color=color, **hollow)
        right.plot(N_TREES, [100 * o["nodes"] / N[-1] for o in by_trees], "o-", color=color)
        shares = [100 * o["stored"] / N[-1] for o in by_trees]
        right.plot(N_TREES, shares, "s--", color=color, **hollow)
    names = [
        f"{one['title']}: N^{power(one, 'nodes'):.2f}, N^{power(one, 'stored'):.2f}"
        for one in figures["sets"]
    ]
    handles += left.plot([], [], "o-", color=plots.FIT)
    handles += left.plot([], [], "s--", color=plots.FIT, **hollow)
    names += ["in a tree (first power)", "by any of the trees (second power)"]
    plots.named_axes(left, "examples N", "examples kept", log_x=True, log_y=True)
    plots.named_axes(right, "trees n_T", "% of N", log_x=True)
    right.set_xticks(N_TREES, [str(n) for n in N_TREES])
    right.minorticks_off()
    right.set_ylim(0, 104)
    figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure


ITEMS = (
    Item(
        name="storage",
        title="What is stored, against N and against n_T",
        where="Section 3, text",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=BENCHMARKS,
        plots={"": draw},
    ),
)
