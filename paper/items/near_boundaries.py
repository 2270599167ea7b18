"""Where the nodes of a classification tree are: near the boundaries between the classes.

The margin of an example is its distance to the nearest example of another class, divided by that to
the nearest other example of its own class. It does not depend on the scale. The quarter of the
examples with the smallest margins is called near a boundary.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper import plots
from paper.context import Context
from paper.forests import classifier
from paper.item import Item, Result, Row, Table, holds
from paper.tasks import BENCHMARKS, Task, absent_rows, present

CHUNK = 1_000  # rows whose distances to all are in memory at once
TENTHS = 10
NEAR = 0.25
MOST = 0.5
WHAT = "{}: nodes that are among the quarter of the examples nearest a boundary"
CLASSES = 3  # of the picture

RULE = (
    "most is more than half: of all nodes of all trees (n_T = 50, k = 50), more than half must be "
    "among the quarter of the examples that are nearest a boundary, those with the least ratio of "
    "the distance to the nearest example of another class to that of the nearest of the same. "
    "Equal ratios are put in random order."
)


def margins(X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the margin of every example; 0 if another class is at the same position.

    Squares of bytes are summed in single precision, which holds them exactly below 2^24, and to
    six digits above.
    """
    order = np.argsort(y, kind="stable")  # classes one after the other
    single = X.dtype == np.uint8
    rows: NDArray[Any] = X[order].astype(np.float32 if single else np.float64)
    starts = np.flatnonzero(np.append(True, y[order][1:] != y[order][:-1]))
    own = np.searchsorted(starts, np.arange(len(y)), side="right") - 1
    norms = np.einsum("ij,ij->i", rows, rows)
    rounding = 16 * np.finfo(rows.dtype).eps * norms.max()  # what equal rows may seem apart
    found = np.empty(len(y))
    for first in range(0, len(y), CHUNK):
        at = np.arange(first, min(first + CHUNK, len(y)))
        squares = norms[at, None] + norms - 2 * rows[at] @ rows.T
        squares[np.arange(len(at)), at] = np.inf
        least = np.minimum.reduceat(squares, starts, axis=1).astype(np.float64)
        least[least < rounding] = 0
        same = least[np.arange(len(at)), own[at]].copy()
        least[np.arange(len(at)), own[at]] = np.inf
        found[order[at]] = ratio(least.min(axis=1), same)
    return found


def ratio(other: NDArray[np.float64], same: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the margin from squared distances; 0 if no other example is of the same class."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((other == 0) | np.isinf(same), 0.0, np.sqrt(other / same))


def places(margin: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return every example's rank by margin, from 0; equal margins are ranked in random order."""
    order = np.lexsort((rng.random(len(margin)), margin))
    found = np.empty(len(margin), dtype=np.int64)
    found[order] = np.arange(len(margin))
    return found


def where(place: NDArray[np.int64], nodes: NDArray[np.int64], n_T: int) -> dict[str, Any]:
    """Return the share of nodes near a boundary, and the share of each tenth that became a node."""
    N = len(place)
    near = place < NEAR * N
    tenth = place * TENTHS // N
    in_tenth = np.bincount(tenth, minlength=TENTHS)
    late = nodes[nodes >= N // 2]
    return {
        "near": float(near[nodes].mean()),
        "late": float(near[late].mean()) if len(late) else 0.0,
        "kept": len(nodes) / (N * n_T),
        "often": np.bincount(tenth[nodes], minlength=TENTHS) / (in_tenth * n_T),
    }


def measured(context: Context, task: Task) -> dict[str, Any]:
    """Measure one benchmark."""
    margin = margins(task.X_train, task.y_train)
    forest = classifier(context).fit(task.X_train, task.y_train)
    nodes = np.concatenate([arrivals for arrivals, _ in forest.trees()])
    found = where(places(margin, context.rng(8)), nodes, forest.n_estimators)
    return {**found, "astray": float((margin < 1).mean())}


def run(context: Context) -> Result:
    """Measure all benchmarks, and make a picture in the plane."""
    tasks = list(present(context, context.pick(tiny=150, quick=6_000, full=None)))
    context.expect(len(tasks) + 1)
    sets = [
        {
            "title": task.title,
            "N": len(task.X_train),
            **context.step(f"{task.name}, {len(task.X_train)} rows", measured, context, task),
        }
        for task in tasks
    ]
    N = context.pick(tiny=200, quick=3_000, full=4_000)
    plane = context.step(f"plane, N={N}", picture, context, N)
    rows = [row_of(one) for one in [*sets, plane]]
    rows += absent_rows(context, WHAT, dict.fromkeys(BENCHMARKS, "most"))
    table = Table(
        "How often an example becomes a node of a tree, by tenths from the least margin, %",
        ("data", *map(str, range(1, TENTHS + 1)), "all"),
        [
            [one["title"], *(100 * o for o in one["often"]), 100 * one["kept"]]
            for one in [*sets, plane]
        ],
    )
    return Result(rows, {"sets": sets, "plane": plane}, [table], remark([*sets, plane]))


def row_of(one: dict[str, Any]) -> Row:
    """Return the row on whether most nodes are near a boundary."""
    ours = f"{one['near']:.1%}"
    return Row(WHAT.format(one["title"]), "most", ours, holds(one["near"] > MOST))


def remark(sets: list[dict[str, Any]]) -> str:
    """Describe how much likelier the nearest are, what limits a data set, and the change with N."""
    often = [(one["often"][0] / max(one["often"][-1], 1e-9), one["title"]) for one in sets]
    least = min(often)
    parts = [
        "Nodes would be in that quarter by 25 % if they were anywhere. The tenth of the examples "
        "with the least margin becomes a node more often than the tenth with the greatest by a "
        f"factor of {least[0]:.1f} ({least[1]}) or more."
    ]
    for one in sets:
        if one["near"] > MOST:
            continue
        text = (
            f"On {one['title']} it is not most: there {one['astray']:.0%} of all examples have an "
            f"example of another class as their nearest, and a tree keeps {one['kept']:.0%} of all"
        )
        if one["kept"] > NEAR:
            text += f", so that at most {NEAR / one['kept']:.0%} of its nodes fit into a quarter"
        parts.append(text + ".")
    parts.append(
        "The first examples become nodes wherever they are. Of the nodes from the second half of "
        "the stream, near a boundary are: "
        + ", ".join(f"{one['title']} {one['late']:.0%}" for one in sets)
        + "."
    )
    return " ".join(parts)


# --- the picture ----------------------------------------------------------------------------------


def heights(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the heights of a landscape whose level lines at -1 and 1 are the boundaries."""
    x, y = X[..., 0], X[..., 1]
    level: NDArray[np.float64] = 1.7 * (np.sin(2.9 * x + 0.5) + np.cos(3.3 * y - 0.9 * x + 0.3))
    return level


def picture(context: Context, N: int) -> dict[str, Any]:
    """Return points in a square, three classes with curved boundaries, and one tree of a forest."""
    X = context.rng(9, N).uniform(-1, 1, size=(N, 2)).round(4)
    y = np.digitize(heights(X), [-1, 1])
    forest = classifier(context).fit(X, y)
    grown = forest.trees()
    margin = margins(X, y)
    place = places(margin, context.rng(10, N))
    nodes = np.concatenate([arrivals for arrivals, _ in grown])
    arrivals, parents = grown[0]
    return {
        "title": f"plane, {N:,} points",
        "astray": float((margin < 1).mean()),
        "X": X,
        "y": y,
        "nodes": arrivals,
        "parents": parents,
        **where(place, nodes, len(grown)),
    }


def draw_plane(figures: dict[str, Any]) -> Any:
    """Draw all examples pale, one tree's nodes and edges strong, and the true boundaries."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    plane = figures["plane"]
    X, y = np.array(plane["X"]), np.array(plane["y"])
    nodes, parents = np.array(plane["nodes"]), np.array(plane["parents"])
    figure = Figure(figsize=(7.2, 7.2), layout="constrained")
    ax = figure.subplots()
    share = len(nodes) / len(X)
    ax.set_title(f"{len(X):,} examples, and the {len(nodes)} that one tree keeps ({share:.0%})")
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 400)] * 2), axis=2)
    ax.contour(
        grid[..., 0],
        grid[..., 1],
        heights(grid),
        [-1, 1],
        colors=plots.FIT,
        linewidths=1.5,
        linestyles="solid",
    )
    edges = np.stack([X[nodes[1:]], X[parents[1:]]], axis=1)
    ax.add_collection(LineCollection(list(edges), colors="#5b6770", linewidths=0.6, alpha=0.55))
    for c in range(CLASSES):
        color = plots.COLORS[c]
        ax.plot(*X[y == c].T, "o", color=color, alpha=0.22, markersize=3, markeredgewidth=0)
        kept = X[nodes[y[nodes] == c]]
        ax.plot(*kept.T, "o", color=color, markersize=6, markeredgecolor="white", zorder=4)
    ax.plot(*X[nodes[0]], "*", color=plots.FIT, markersize=17, markeredgecolor="white", zorder=5)
    ax.plot([], [], "o", color=plots.FIT, alpha=0.3, markersize=3, label="example")
    ax.plot([], [], "o", color=plots.FIT, markersize=6, label="node")
    ax.plot([], [], "*", color=plots.FIT, markersize=12, label="root")
    ax.plot([], [], color=plots.FIT, linewidth=1.4, label="boundary between classes")
    ax.plot([], [], color="#5b6770", linewidth=0.6, label="edge of the tree")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=5, frameon=False)
    ax.set(xlim=(-1.01, 1.01), ylim=(-1.01, 1.01), aspect="equal", xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return figure


def draw_tenths(figures: dict[str, Any]) -> Any:
    """Draw the share of each tenth of the examples that became a node."""
    figure, (ax,) = plots.panels(["Which examples become nodes"], width=6.4)
    for color, one in zip(plots.COLORS, [*figures["sets"], figures["plane"]], strict=False):
        often = 100 * np.array(one["often"])
        label = f"{one['title']}: {one['near']:.0%} of the nodes"
        ax.plot(np.arange(TENTHS) + 0.5, often, "o-", color=color, label=label)
    ax.axvspan(0, NEAR * TENTHS, color="#30363d", alpha=0.07, linewidth=0)
    ax.set_xticks(range(TENTHS + 1), [f"{10 * i}" for i in range(TENTHS + 1)])
    ax.set_xlabel("examples by their margin, nearest a boundary first, %")
    ax.set_ylabel("become a node of a tree, %")
    ax.set(xlim=(0, TENTHS), ylim=(0, 1.3 * ax.get_ylim()[1]))  # room for the legend
    ax.legend(title="in the shaded quarter", title_fontsize=8.5)
    return figure


ITEMS = (
    Item(
        name="near-boundaries",
        title="Most nodes are near the boundary between classes",
        where="Section 1, text",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=BENCHMARKS,
        plots={"plane": draw_plane, "": draw_tenths},
    ),
)
