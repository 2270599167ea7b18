"""What is lost by learning online: the forest beside the offline forest, OBF.

Each tree of the offline forest gets its own shuffle of the data. Both learn the same examples
from the same seeds; the regret is (error of BF - error of OBF) / error of BF.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper import plots
from paper.context import Context
from paper.forests import classifier, votes
from paper.item import MEASURED, Item, Result, Row, Table, holds
from paper.tasks import BENCHMARKS, Task, absent_rows, present

MOST = 10.0  # per cent of the error, and less than that
# Table 2: per cent wrong, BF and OBF.
PAPER = {
    "dna": (14.3, 13.1),
    "letter": (5.4, 5.5),
    "mnist": (2.24, 2.6),
    "pendigits": (2.62, 2.60),
    "protein": (44.2, 41.7),
    "seismic": (40.6, 39.6),
}
KINDS = ("BF", "OBF")
WHAT = "{}: regret"

RULE = (
    f"the mean regret over shuffles of the training set is below {MOST:g} % of the error, on every "
    "data set of the paper; n_T = 50, k = 50, the same shuffles for both. Digits, which is not in "
    "the paper, and sets that were cut are reported, but not judged."
)


def regret(online: float, offline: float) -> float:
    """Return the per cent of the online forest's error that the offline one avoids."""
    return 100 * (online - offline) / online if online else 0.0


def same_mistake(answers: NDArray[Any], y: NDArray[Any]) -> float:
    """Return how often two trees predict the same wrong class, over rows and pairs of trees."""
    n = answers.shape[1]
    wrong = answers != y[:, None]
    counts = np.stack([(wrong & (answers == c)).sum(axis=1) for c in np.unique(answers)], axis=1)
    return float(np.mean((counts * (counts - 1.0)).sum(axis=1) / (n * (n - 1))))


def measured(context: Context, task: Task, shuffle: int) -> dict[str, dict[str, float]]:
    """Return both forests' errors, single trees' errors, and shared mistakes, on one shuffle."""
    order = context.rng(7, shuffle).permutation(len(task.X_train))
    X, y = task.X_train[order], task.y_train[order]
    found = {}
    for kind in KINDS:
        forest = classifier(context, offline=kind == "OBF", random_state=context.seed + shuffle)
        forest.fit(X, y)
        answers = votes(forest, y, task.X_test)
        found[kind] = {
            "error": task.error(forest.predict(task.X_test)),
            "tree": 100 * float((answers != task.y_test[:, None]).mean()),
            "same": 100 * same_mistake(answers, task.y_test),
        }
    return found


def run(context: Context) -> Result:
    """Measure all benchmarks over shuffles."""
    tasks = list(present(context, context.pick(tiny=150, quick=12_000, full=None)))
    shuffles = {
        task.name: context.pick(tiny=2, quick=3, full=10 if len(task.X_train) < 20_000 else 5)
        for task in tasks
    }
    context.expect(sum(shuffles.values()))
    sets = []
    for task in tasks:
        N = len(task.X_train)
        lines = [
            context.step(f"{task.name}, {N} rows, shuffle {i}", measured, context, task, i)
            for i in range(shuffles[task.name])
        ]
        sets.append({"name": task.name, "title": task.title, **summary(lines, task)})
    rows = [row_of(one) for one in sets]
    rows += absent_rows(context, WHAT, {name: claimed(name) for name in BENCHMARKS}, "%")
    table = Table(
        "Means over shuffles, ± standard error; per cent",
        (
            "data",
            "shuffles",
            *("BF wrong", "paper", "OBF wrong", "paper"),
            *("a tree alone: BF", "OBF", "two trees make the same mistake: BF", "OBF"),
        ),
        [
            [
                one["title"],
                len(one["regret"]),
                *(cell for kind in KINDS for cell in errors_of(one, kind)),
                *(float(np.mean(one[k][name])) for name in ("tree", "same") for k in KINDS),
            ]
            for one in sets
        ],
    )
    return Result(rows, {"sets": sets}, [table], remark(sets))


def summary(lines: list[dict[str, dict[str, float]]], task: Task) -> dict[str, Any]:
    """Return the figures of one data set, as lists over the shuffles."""
    by_kind = {k: {name: [of[k][name] for of in lines] for name in lines[0][k]} for k in KINDS}
    errors = (by_kind[k]["error"] for k in KINDS)
    return {
        **by_kind,
        "regret": [regret(*pair) for pair in zip(*errors, strict=True)],
        "judged": task.whole and task.name in BENCHMARKS,
        "paper": regret(*PAPER[task.name]) if task.name in PAPER and task.whole else None,
    }


def standard_error(values: list[float]) -> float:
    """Return the standard error of the mean; 0 for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def errors_of(one: dict[str, Any], kind: str) -> tuple[str, float | None]:
    """Return our error with its standard error, and the paper's."""
    errors = one[kind]["error"]
    paper = PAPER[one["name"]][KINDS.index(kind)] if one["judged"] else None
    return f"{np.mean(errors):.2f} ± {standard_error(errors):.2f}", paper


def claimed(name: str) -> str:
    """Return the paper's claim, with the regret of its table if it has the data set."""
    claim = f"< {MOST:g} %"
    return f"{claim} ({regret(*PAPER[name]):.1f} % by Table 2)" if name in PAPER else claim


def row_of(one: dict[str, Any]) -> Row:
    """Return the row of the mean beside the claim."""
    mean, error = float(np.mean(one["regret"])), standard_error(one["regret"])
    verdict = holds(mean < MOST) if one["judged"] else MEASURED
    return Row(
        WHAT.format(one["title"]), claimed(one["name"]), f"{mean:.1f} ± {error:.1f} %", verdict
    )


def remark(sets: list[dict[str, Any]]) -> str:
    """Describe which data sets differ, on which side, and what the offline trees gain."""
    parts = []
    for one in sets:
        mean, error = float(np.mean(one["regret"])), standard_error(one["regret"])
        if not one["judged"] or mean < MOST:
            continue
        sure = "" if mean - MOST > 2 * error else ", by less than two standard errors"
        online, offline = (float(np.mean(one[k]["error"])) for k in KINDS)
        paper = PAPER[one["name"]]
        parts.append(
            f"On {one['title']} the regret is above {MOST:g} %{sure}: the error of BF is "
            f"{online:.2f} % (paper {paper[0]:g}), that of OBF is {offline:.2f} % "
            f"(paper {paper[1]:g})."
        )
    parts.append(
        "A single tree makes as many errors online as offline, to within "
        f"{max(abs(change(one, 'tree')) for one in sets):.1%}. But online all trees are shown the "
        "examples in the same order, and differ only in how they began. What changes offline is "
        "how often two trees make the same mistake: "
        + ", ".join(f"{change(one, 'same'):+.0%} on {one['title']}" for one in sets)
        + ". Mistakes in common are those that a vote cannot mend."
    )
    return " ".join(parts)


def change(one: dict[str, Any], name: str) -> float:
    """Return the relative change of a figure from online to offline."""
    online, offline = (float(np.mean(one[k][name])) for k in KINDS)
    return (offline - online) / online if online else 0.0


def draw(figures: dict[str, Any]) -> Any:
    """Draw the regret of every shuffle, the mean beside the 10 %, and the errors it is made of."""
    sets = figures["sets"]
    names = [one["title"].replace(", ", "\n") for one in sets]
    figure, (left, right) = plots.panels(["Regret, in % of the error", "Errors over the shuffles"])
    for i, one in enumerate(sets):
        color = plots.COLORS[0]
        spread = np.linspace(-0.13, 0.13, len(one["regret"])) if len(one["regret"]) > 1 else [0.0]
        left.plot(i + np.array(spread), one["regret"], "o", color=color, alpha=0.35, markersize=4)
        mean, error = float(np.mean(one["regret"])), standard_error(one["regret"])
        left.errorbar(
            i, mean, 2 * error, fmt="_", color=color, markersize=26, markeredgewidth=2.2, capsize=4
        )
        if one["paper"] is not None:
            left.plot(i, one["paper"], "D", color=plots.COLORS[1], markersize=6)
    left.axhline(MOST, linestyle="--", color=plots.FIT, linewidth=1.1)
    left.axhline(0, color=plots.FIT, linewidth=0.6)
    left.plot([], [], "o", color=plots.COLORS[0], alpha=0.35, label="one shuffle")
    left.plot([], [], "_", color=plots.COLORS[0], markersize=12, label="mean, ± 2 standard errors")
    left.plot([], [], "D", color=plots.COLORS[1], label="the paper's Table 2")
    left.plot([], [], "--", color=plots.FIT, linewidth=1.1, label="the paper's 10 %")
    for kind, color, step in zip(KINDS, plots.COLORS, (-0.17, 0.17), strict=False):
        means = [float(np.mean(one[kind]["error"])) for one in sets]
        reach = [
            [m - min(one[kind]["error"]) for m, one in zip(means, sets, strict=True)],
            [max(one[kind]["error"]) - m for m, one in zip(means, sets, strict=True)],
        ]
        at = np.arange(len(sets)) + step
        label = {"BF": "BF, online", "OBF": "OBF, offline"}[kind] + ", with the range"
        right.bar(at, means, 0.32, color=color, label=label)
        right.errorbar(at, means, reach, fmt="none", color=plots.FIT, linewidth=1.1, capsize=3)
    for ax in (left, right):
        ax.set_xticks(range(len(sets)), names)
        ax.grid(axis="x", visible=False)
        ax.set_axisbelow(True)
    left.set_ylabel("(BF - OBF) / BF, %")
    low, high = left.get_ylim()
    left.set_ylim(low, high + 0.35 * (high - low))  # room for the legend
    left.legend(loc="upper left", ncols=2)
    right.set_ylabel("% wrong on the test set")
    return figure


ITEMS = (
    Item(
        name="regret",
        title="Regret: what is lost by learning online",
        where="Section 5, text; Table 2",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=BENCHMARKS,
        plots={"": draw},
    ),
)
