"""Immediate one-shot learning: after (x, c) is learned, the forest predicts c for x at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper import plots
from paper.context import Context
from paper.forests import classifier
from paper.item import Item, Result, Row, Table, holds
from paper.tasks import BENCHMARKS, Task, absent_rows, present

WINDOWS = 14  # that a stream is cut into, for the plot
PALE = "#b9bfc5"
WHAT = "{}: right just after being shown"

RULE = (
    "all answers just after an example was learned are right, on every data set, examples learned "
    "one at a time; left out, and counted, are examples whose x came before with another class. "
    "n_T = 50, k = 50."
)


def contradict(X: NDArray[Any], y: NDArray[Any]) -> list[bool]:
    """Return whether the same row came before with another class."""
    seen: dict[bytes, set[Any]] = {}
    found = []
    for row, label in zip(X, y.tolist(), strict=True):
        before = seen.setdefault(row.tobytes(), set())
        found.append(bool(before - {label}))
        before.add(label)
    return found


def streamed(context: Context, task: Task) -> dict[str, Any]:
    """Predict every example, learn it, and predict it again."""
    X, y = task.X_train, task.y_train
    forest = classifier(context)
    before, after = np.zeros(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
    for i in range(len(y)):
        x, c = X[i : i + 1], y[i : i + 1]
        before[i] = i > 0 and forest.predict(x)[0] == c[0]
        after[i] = forest.partial_fit(x, c).predict(x)[0] == c[0]
    judged = ~np.array(contradict(X, y))
    ends = np.unique(np.geomspace(min(50, len(y)), len(y), WINDOWS).round().astype(int))
    starts = [0, *ends[:-1].tolist()]
    return {
        "n": len(y),
        "judged": int(judged.sum()),
        "right": int(after[judged].sum()),
        "before": int(before[judged].sum()),
        "contradicted_right": int(after[~judged].sum()),
        "ends": ends,
        "wrong_before": [
            100 * float(1 - before[a:b].mean()) for a, b in zip(starts, ends, strict=True)
        ],
        "wrong_after": [
            100 * float(1 - after[a:b].mean()) for a, b in zip(starts, ends, strict=True)
        ],
    }


def run(context: Context) -> Result:
    """Measure all benchmarks as streams."""
    tasks = list(present(context, context.pick(tiny=120, quick=500, full=None)))
    context.expect(len(tasks))
    sets = [
        {
            "title": task.title,
            **context.step(f"{task.name}, {len(task.X_train)} rows", streamed, context, task),
        }
        for task in tasks
    ]
    rows = [row_of(one) for one in sets]
    rows += absent_rows(context, WHAT, dict.fromkeys(BENCHMARKS, "all"))
    table = Table(
        "Answers",
        (
            *("data", "examples", "came before with another class"),
            *("right before being shown, %", "right just after, %"),
        ),
        [
            [
                *(one["title"], one["n"], one["n"] - one["judged"]),
                *(100 * one[which] / max(one["judged"], 1) for which in ("before", "right")),
            ]
            for one in sets
        ],
    )
    return Result(rows, {"sets": sets}, [table], remark(sets))


def row_of(one: dict[str, Any]) -> Row:
    """Return the row of one stream."""
    n = one["judged"]
    ours = f"{one['right']:,} of {n:,}; {one['before']:,} before being shown"
    return Row(WHAT.format(one["title"]), "all", ours, holds(one["right"] == n))


def remark(sets: list[dict[str, Any]]) -> str:
    """Describe what was left out, and why nothing else can go wrong."""
    out = [one for one in sets if one["n"] > one["judged"]]
    parts = [
        "An example that is queried takes the path by which it was learned. Where a tree's answer "
        "was wrong, the example itself now hangs there, at distance zero; if any tree has it, "
        "those at distance zero alone decide, and if none has, every tree was right."
    ]
    for one in out:
        n = one["n"] - one["judged"]
        parts.append(
            f"On {one['title']} {n:,} of {one['n']:,} came before with another class, and "
            f"{one['contradicted_right']:,} of these were right just after being shown."
        )
    if not out:
        parts.append("No example came before with another class.")
    return " ".join(parts)


def draw(figures: dict[str, Any]) -> Any:
    """Draw the errors just before and just after each example was learned, along the streams."""
    figure, (ax,) = plots.panels(["Predicted before and after being learned"], width=6.4)
    for color, one in zip(plots.COLORS, figures["sets"], strict=False):
        ax.plot(one["ends"], one["wrong_before"], "o-", color=color, label=one["title"])
        ax.plot(one["ends"], one["wrong_after"], "-", **plots.behind(PALE, alpha=1))
    ax.plot([], [], "o-", color=plots.FIT, label="before it was shown")
    ax.plot([], [], "-", label="just after", **plots.behind(PALE, alpha=1))
    plots.named_axes(ax, "examples shown one at a time", "% wrong since the last point", log_x=True)
    ax.set_ylim(-3, 100)
    return figure


ITEMS = (
    Item(
        name="one-shot",
        title="Immediate one-shot learning",
        where="Section 3, text",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=BENCHMARKS,
        plots={"": draw},
    ),
)
