"""What a forest predicts for the examples it has learned, after one pass through them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper import plots
from paper.context import Context
from paper.forests import classifier, votes
from paper.item import MEASURED, Item, Result, Row, Table, holds
from paper.tasks import BENCHMARKS, Task, absent_rows, present

N_TREES = (1, 2, 5, 10, 20, 50)
MOST = 1.0  # per cent, and less than that
WHAT = "{}: error on the training set"

RULE = (
    f"below {MOST:g} % on every data set of the paper, learned whole, once, in the order of its "
    "file, by 50 trees with k = 50. Digits, which is not in the paper, and sets that were cut are "
    "reported, but not judged."
)


def contradicted(X: NDArray[Any], y: NDArray[Any]) -> int:
    """Count rows that recur with another class, beyond those of the most frequent class.

    No classifier that sees the rows alone can make fewer errors.
    """
    kept: dict[bytes, dict[Any, int]] = {}
    for row, label in zip(X, y.tolist(), strict=True):
        of = kept.setdefault(row.tobytes(), {})
        of[label] = of.get(label, 0) + 1
    return sum(sum(of.values()) - max(of.values()) for of in kept.values())


def measured(context: Context, task: Task, n_T: int) -> dict[str, Any]:
    """Return errors in per cent: of the forest and of a tree in training, and on the test set."""
    X, y = task.X_train, task.y_train
    forest = classifier(context, n_estimators=n_T).fit(X, y)
    wrong = np.flatnonzero(forest.predict(X) != y)
    kept = np.concatenate([arrivals for arrivals, _ in forest.trees()])
    by_tree = (votes(forest, y, X) != y[:, None]).mean()
    return {
        "wrong": len(wrong),
        "unkept": int((~np.isin(wrong, kept)).sum()),
        "train": 100 * len(wrong) / len(y),
        "tree": 100 * float(by_tree),
        "test": task.error(forest.predict(task.X_test)),
    }


def run(context: Context) -> Result:
    """Measure all benchmarks at each number of trees."""
    tasks = list(present(context, context.pick(tiny=150, quick=12_000, full=None)))
    context.expect(len(tasks) * len(N_TREES))
    sets: list[dict[str, Any]] = []
    for task in tasks:
        N = len(task.X_train)
        lines = [
            context.step(f"{task.name}, {N} rows, n_T={n_T}", measured, context, task, n_T)
            for n_T in N_TREES
        ]
        sets.append(
            {
                "name": task.name,
                "title": task.title,
                "N": N,
                "judged": task.whole and task.name in BENCHMARKS,
                "contradicted": contradicted(task.X_train, task.y_train),
                **{name: [line[name] for line in lines] for name in lines[0]},
            }
        )
    figures = {"n_T": list(N_TREES), "sets": sets}
    rows = [row_of(one) for one in sets]
    rows += absent_rows(context, WHAT, dict.fromkeys(BENCHMARKS, f"< {MOST:g} %"), "%")
    header = ("data", *(f"n_T = {n_T}" for n_T in N_TREES))
    tables = [
        Table(title, header, [[one["title"], *one[which]] for one in sets])
        for which, title in (
            ("train", "Per cent of the training set wrong, after one pass"),
            ("test", "Per cent of the test set wrong"),
        )
    ]
    return Result(rows, figures, tables, remark(sets))


def row_of(one: dict[str, Any]) -> Row:
    """Return the row of one data set, with the paper's number of trees."""
    error = one["train"][-1]
    verdict = holds(error < MOST) if one["judged"] else MEASURED
    return Row(WHAT.format(one["title"]), f"< {MOST:g} %", error, verdict, unit="%")


def remark(sets: list[dict[str, Any]]) -> str:
    """Describe how many are wrong, how many must be, and what more trees contribute."""
    parts = []
    for one in sets:
        wrong = f"{one['wrong'][-1]:,}" if one["wrong"][-1] else "none"
        must = one["contradicted"]
        more = f", where {must:,} must be, being there again with another class" if must else ""
        parts.append(f"{one['title']} {wrong} of {one['N']:,}{more}")
    alone = sorted((one["tree"][-1], one["title"]) for one in sets)
    text = (
        f"Wrong after one pass: {'; '.join(parts)}. It is the trees together that know the "
        f"training set: a tree of the forest alone is wrong in {alone[0][0]:.2g} % of it "
        f"({alone[0][1]}) to "
        f"{alone[-1][0]:.2g} % ({alone[-1][1]}), for what it once named rightly it did not keep, "
        "and later nodes lead astray. A tree that has kept the example ends at distance zero, and "
        "those trees alone decide."
    )
    wrong, unkept = (sum(one[name][-1] for one in sets) for name in ("wrong", "unkept"))
    if wrong:
        text += f" Of the {wrong:,} that stay wrong, {unkept:,} were kept by no tree at all."
    return text


def draw(figures: dict[str, Any]) -> Any:
    """Draw training and test errors against the number of trees."""
    figure, axes = plots.panels(["On what it has learned", "On what it has not seen"])
    n_T = figures["n_T"]
    for ax, which in zip(axes, ("train", "test"), strict=True):
        for color, one in zip(plots.COLORS, figures["sets"], strict=False):
            ax.plot(n_T, one[which], "o-", color=color, label=one["title"])
        plots.named_axes(ax, "trees n_T", "% wrong", log_x=True)
        ax.set_xticks(n_T, [str(n) for n in n_T])
        ax.minorticks_off()
        ax.set_ylim(bottom=0)
    low, high = 0, float(np.max([one["train"] for one in figures["sets"]]))
    axes[0].set_ylim(low - 0.02 * high, 1.06 * high)
    axes[0].axhline(MOST, linestyle="--", color=plots.FIT, linewidth=1.1)
    label = f"the paper's {MOST:g} %"
    axes[0].text(n_T[-1], MOST + 0.01 * high, label, ha="right", va="bottom", fontsize=8.5)
    return figure


ITEMS = (
    Item(
        name="training-error",
        title="Error on the training set after one pass",
        where="Section 3, text",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=BENCHMARKS,
        plots={"": draw},
    ),
)
