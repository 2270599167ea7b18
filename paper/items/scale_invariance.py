"""All features times one factor: the forest stays the same, the cover tree does not.

A power of two changes no digit of a floating-point number, so that the forest can be compared to
the last bit. Other factors round, and rounding makes and breaks ties.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper import plots
from paper.baselines import make
from paper.context import Context
from paper.forests import classifier
from paper.item import Item, Result, Row, Table, holds
from paper.tasks import BENCHMARKS, Task, absent_rows, present

POWERS = (-3, 5)  # of two
ROUNDING = (3.0, 0.1)
NOISE = 1e-3  # of the features' spread: enough that no two distances are equal
COVER_TREE = "CT(1.3, 10)"
BASE, LEVELS, PARTS = 1.3, 3, 6
CURVE = tuple(BASE ** (i / PARTS) for i in range(LEVELS * PARTS + 1))
JUDGED = 2.0
QUERIES = 1_000
TIED, UNTIED = "data as they are", "without ties"

RULE = (
    "the forest (n_T = 50, k = 50, double precision) on X and on X times 0.125 and 32: all trees, "
    "by arrival numbers and parents, all answers and the examples they come from must be the "
    "same. This is required of the data as they are, and without ties: with noise of "
    f"{NOISE:g} of the features' spread, so that no two distances are equal. For the cover tree "
    "(base 1.3), without ties, a factor of 2 must change the number of comparisons. Further "
    "factors are reported."
)


def untied(X: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Add a little noise, so that there are no ties."""
    return X + NOISE * float(X.std()) * rng.standard_normal(X.shape)


def forest_of(context: Context, task: Task, factor: float, ties: str) -> dict[str, Any]:
    """Return trees, ends and answers on all features times the factor."""
    X, queries = (part.astype(np.float64) for part in (task.X_train, task.X_test))
    if ties == UNTIED:
        X, queries = untied(X, context.rng(11, 0)), untied(queries, context.rng(11, 1))
    forest = classifier(context).fit(factor * X, task.y_train)
    return {
        "trees": forest.trees(),
        "ends": forest.apply(factor * queries),
        "said": forest.predict(factor * queries),
    }


def same_trees(one: list[Any], other: list[Any]) -> int:
    """Return how many trees have the same examples on the same edges."""
    return sum(
        len(a[0]) == len(b[0]) and all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))
        for a, b in zip(one, other, strict=True)
    )


def compared(context: Context, task: Task, ties: str) -> dict[str, Any]:
    """Return for each factor the equal trees, and the per cent of ends and answers that differ."""
    plain = forest_of(context, task, 1.0, ties)
    found = {}
    for factor in (*(2.0**p for p in POWERS), *ROUNDING):
        scaled = forest_of(context, task, factor, ties)
        found[f"{factor:g}"] = {
            "trees": same_trees(plain["trees"], scaled["trees"]),
            "ends": 100 * float((plain["ends"] != scaled["ends"]).mean()),
            "said": 100 * float((plain["said"] != scaled["said"]).mean()),
            "error": task.error(scaled["said"]),
        }
    return {"error": task.error(plain["said"]), "factors": found}


def along_factors(context: Context, task: Task, n: int, who: str) -> dict[str, Any]:
    """Return the comparisons of training and of queries, and the answers, by factor."""
    X, y = untied(task.X_train[:n].astype(np.float64), context.rng(11, 0)), task.y_train[:n]
    queries = untied(task.X_test[:QUERIES].astype(np.float64), context.rng(11, 1))
    found: dict[str, Any] = {}
    plain = None
    for factor in (*CURVE, JUDGED):
        learner: Any = classifier(context) if who == "forest" else make(COVER_TREE)
        learner.fit(factor * X, y)
        answers = learner.kneighbors(factor * queries, 1, return_distance=False)
        plain = answers if plain is None else plain
        other = 100 * float((answers != plain).mean())
        found[f"{factor:g}"] = {**learner.stats()["comparisons"], "other": other}
    return found


def run(context: Context) -> Result:
    """Measure all benchmarks, with the forest and with the cover tree."""
    tasks = list(present(context, context.pick(tiny=120, quick=1_500, full=10_500)))
    n = context.pick(tiny=100, quick=500, full=3_000)
    context.expect(4 * len(tasks))
    sets = []
    for task in tasks:
        N = len(task.X_train)
        of: dict[str, Any] = {"name": task.name, "title": task.title}
        for ties in (UNTIED, TIED):
            of[ties] = context.step(f"{task.name}, {N} rows, {ties}", compared, context, task, ties)
        for who in ("cover tree", "forest"):
            key = (
                f"{task.name}, {min(n, N)} rows, {who} along {len(CURVE)} factors to {CURVE[-1]:g}"
            )
            of[who] = context.step(key, along_factors, context, task, n, who)
        sets.append(of)
    found = [row for one in sets for row in rows_of(one)]
    for what in ("{}: forest, times 0.125 and 32", "{}: cover tree, times 2"):
        found += absent_rows(context, what, dict.fromkeys(BENCHMARKS))
    figures = {"sets": sets, "rows": n}
    return Result(found, figures, tables(sets), remark(sets))


def is_same(of: dict[str, Any], n_T: int = 50) -> bool:
    """Return whether no tree, end or answer changed."""
    return bool(of["trees"] == n_T and of["ends"] == of["said"] == 0)


def rows_of(one: dict[str, Any]) -> list[Row]:
    """Return rows on the forest, without and with ties, and on the cover tree."""
    rows = []
    for ties in (UNTIED, TIED):
        of = [one[ties]["factors"][f"{2.0**p:g}"] for p in POWERS]
        same = all(map(is_same, of))
        trees_of, answers = ([o[name] for o in of] for name in ("trees", "said"))
        ours = (
            f"{' and '.join(map(str, trees_of))} of 50 trees the same, "
            f"{' and '.join(f'{100 - share:.4g}' for share in answers)} % of the answers"
        )
        rows.append(
            Row(
                f"{one['title']}: forest, {ties}, times 0.125 and 32",
                "the exact same thing",
                "all the same" if same else ours,
                holds(same),
            )
        )
    in_training, in_queries = (changed(one["cover tree"], "2", name) for name in ("learn", "query"))
    ours = f"comparisons {in_training:+.1%} in training, {in_queries:+.1%} in queries"
    verdict = holds(in_training != 0 or in_queries != 0)
    rows.append(Row(f"{one['title']}: cover tree, times 2", "not scale invariant", ours, verdict))
    return rows


def changed(of: dict[str, Any], factor: str, name: str) -> float:
    """Return the relative change of the comparisons."""
    return float(of[factor][name] / of["1"][name] - 1)


def tables(sets: list[dict[str, Any]]) -> list[Table]:
    """Return tables of every factor."""
    factors = list(sets[0][TIED]["factors"])
    header = ("data", "ties", *(f"times {factor}" for factor in factors))
    forest = [
        Table(
            f"Forest, compared with itself without the factor: {title}",
            header,
            [
                [one["title"], ties, *(one[ties]["factors"][factor][name] for factor in factors)]
                for one in sets
                for ties in (UNTIED, TIED)
            ],
        )
        for name, title in (
            ("trees", "trees of 50 that are the same"),
            ("said", "answers that differ, %"),
            ("error", "per cent wrong"),
        )
    ]
    shown = ("1", "2", f"{BASE**LEVELS:g}")
    cover = Table(
        "Cover tree: comparisons, in thousands, and neighbours that are others than without factor",
        (
            *("data", *(f"training, times {factor}" for factor in shown)),
            *(*(f"queries, times {factor}" for factor in shown), "others, times 2, %"),
        ),
        [
            [
                one["title"],
                *(one["cover tree"][f][name] / 1e3 for name in ("learn", "query") for f in shown),
                one["cover tree"]["2"]["other"],
            ]
            for one in sets
        ],
    )
    return [*forest, cover]


def remark(sets: list[dict[str, Any]]) -> str:
    """Describe what ties, rounding and the cover tree's levels do."""
    two = f"{2.0 ** POWERS[0]:g}"
    tied = [one for one in sets if not is_same(one[TIED]["factors"][two])]
    parts = []
    if tied:
        parts.append(
            "Where distances are equal the paper chooses at random. Here the choice follows from "
            "the bytes of the query, so that querying again takes the same path, and the bytes of "
            "a scaled query are others. So data with ties give other trees, as another seed would. "
            f"Times {two}: "
            + "; ".join(
                f"on {one['title']} {one[TIED]['factors'][two]['trees']} of 50 trees are the same, "
                f"{one[TIED]['factors'][two]['ends']:.2g} % of their ends and "
                f"{one[TIED]['factors'][two]['said']:.2g} % of the answers change"
                for one in tied
            )
            + "."
        )
    for factor in ROUNDING:
        of = [one[UNTIED]["factors"][f"{factor:g}"] for one in sets]
        parts.append(
            f"The factor {factor:g} rounds; without ties all trees and answers are the same on "
            f"{sum(map(is_same, of))} of {len(of)} sets."
        )
    by_factor = [
        abs(changed(one["cover tree"], f"{factor:g}", "learn")) for one in sets for factor in CURVE
    ]
    levels = f"{BASE**LEVELS:g}"
    whole = max(abs(changed(one["cover tree"], levels, "learn")) for one in sets)
    parts.append(
        "The cover tree depends on where distances lie between the powers of its base: over the "
        f"factors of the plot its training changes by up to {max(by_factor):.1%}, but times "
        f"{levels}, which moves every distance by {LEVELS} levels, by {whole:.1%} at most."
    )
    return " ".join(parts)


def draw(figures: dict[str, Any]) -> Any:
    """Draw comparisons of training against the factor."""
    figure, (ax,) = plots.panels(
        [f"Training on up to {figures['rows']:,} rows, all features times a factor"], width=6.8
    )
    x = list(CURVE)
    for color, one in zip(plots.COLORS, figures["sets"], strict=False):
        y = [100 * changed(one["cover tree"], f"{f:g}", "learn") for f in CURVE]
        ax.plot(x, y, "o-", color=color, label=f"cover tree, {one['name']}")
        flat = [100 * changed(one["forest"], f"{f:g}", "learn") for f in CURVE]
        ax.plot(x, flat, **plots.behind("#b9bfc5", alpha=1))
    ax.plot([], [], label="forest, all of them", **plots.behind("#b9bfc5", alpha=1))
    for i in range(1, LEVELS + 1):
        ax.axvline(BASE**i, color=plots.FIT, linewidth=0.8, linestyle=":")
    ax.set_xscale("log")
    ax.set_xticks([BASE**i for i in range(LEVELS + 1)], ["1", "1.3", "1.3²", "1.3³"])
    ax.minorticks_off()
    ax.set_xlabel("factor (dotted: whole levels of the cover tree)")
    ax.set_ylabel("change of the comparisons, %")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


ITEMS = (
    Item(
        name="scale-invariance",
        title="The forest is scale invariant, the cover tree is not",
        where="Section 4, text",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=BENCHMARKS,
        plots={"": draw},
    ),
)
