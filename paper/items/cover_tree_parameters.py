"""What the cover tree's parameters do: epsilon, how inexact a query may be, and the base b."""

from typing import Any

from paper import plots, streams
from paper.baselines import make
from paper.context import Context
from paper.item import MEASURED, Item, Result, Row, Table, holds
from paper.shares import two_standard_errors
from paper.tasks import BENCHMARKS, absent_rows, present

BASES = (1.1, 1.3, 1.5, 2.0)
EPSILONS = (0.0, 0.1, 1.0, 10.0)
B, SMALL_B = 1.3, 1.1  # the paper's, and its appendix's
LOW, HIGH = 0.1, 10.0  # the epsilons that the paper has
LITTLE = 0.25
EXHAUSTIVE = 0.95
D_CUBE = 100

# Seconds of CT(1.1, 10) and CT(1.3, 10): training and testing of Tables 1 and A-3.
PAPER_SECONDS = {
    "dna": ((0.08, 0.32), (0.31, 0.25)),
    "letter": ((0.28, 1.37), (1.01, 0.91)),
    "mnist": ((18.84, 168.4), (369.9, 417.6)),
    "pendigits": ((0.0037, 0.004), (0.007, 0.022)),
    "protein": ((23.89, 44.4), (56.45, 51.4)),
    "seismic": ((115.22, 176.1), (227.8, 172.5)),
}

RULE = (
    f"epsilon has little effect if, with b = {B:g}, a query costs within {LITTLE:.0%} as many "
    f"comparisons for epsilon = {HIGH:g} as for {LOW:g}, and the error differs by two standard "
    f"errors at most. A smaller base trades training for testing if b = {SMALL_B:g} takes fewer "
    f"comparisons to train than {B:g} and more to query; where b = {B:g} already compares a query "
    f"with {EXHAUSTIVE:.0%} of the examples there is no more to lose, and queries are not judged. "
    "The paper has times, ours are comparisons: its ratios are shown, and the direction is judged."
)


def measured(X: Any, y: Any, queries: Any, y_queries: Any, b: float) -> dict[str, Any]:
    """Return comparisons per row of a tree, trained once and queried with each epsilon.

    Training does not depend on epsilon.
    """
    tree: Any = make("CT", base=b).fit(X, y)
    found: dict[str, Any] = {"learn": tree.stats()["comparisons"]["learn"] / len(X)}
    found.update({"query": [], "error": []})
    for epsilon in EPSILONS:
        tree.epsilon = epsilon
        before = tree.stats()["comparisons"]["query"]
        if y is None:
            tree.kneighbors(queries)
            error = None
        else:
            error = float(100 * (tree.predict(queries) != y_queries).mean())
        made = tree.stats()["comparisons"]["query"] - before
        found["query"].append(made / len(queries))
        found["error"].append(error)
    return found


def run(context: Context) -> Result:
    """Measure the available benchmarks, digits, and the hypercube."""
    most = context.pick(tiny=300, quick=2_000, full=10_500)
    n_queries = context.pick(tiny=100, quick=500, full=5_000)
    sets: dict[str, Any] = {}
    rows: list[Row] = []
    for found in present(context, most):
        X_test, y_test = found.X_test[:n_queries], found.y_test[:n_queries]
        parts = (found.X_train, found.y_train, X_test, y_test)
        sets[found.name] = _swept(context, found.name, *parts)
        rows += claims(found.name, sets[found.name])
    cube = streams.hypercube(context, D_CUBE, min(n_queries, 1_000))
    n = context.pick(tiny=300, quick=2_000, full=10_000)
    sets["hypercube"] = _swept(context, "hypercube", cube.rows(0, n), None, cube.queries, None)
    rows += claims("hypercube", sets["hypercube"])
    rows += absent_rows(context, "{}", dict.fromkeys(BENCHMARKS))
    table = Table(
        "Comparisons a row, b from left to right in each",
        ("data", "N", "epsilon", *(f"{x}, b = {b:g}" for x in ("query", "error %") for b in BASES)),
        [
            [name, of["N"], epsilon]
            + [by_base[what][i] for what in ("query", "error") for by_base in of["bases"]]
            for name, of in sets.items()
            for i, epsilon in enumerate(EPSILONS)
        ],
    )
    training = Table(
        "Comparisons to learn a row",
        ("data", "N", *(f"b = {b:g}" for b in BASES)),
        [
            [name, of["N"], *(by_base["learn"] for by_base in of["bases"])]
            for name, of in sets.items()
        ],
    )
    figures = {"bases": BASES, "epsilons": EPSILONS, "sets": sets}
    return Result(rows, figures, [training, table], remark(figures))


def _swept(context: Context, name: str, X: Any, y: Any, queries: Any, y_queries: Any) -> Any:
    context.expect(len(BASES))
    sizes = f"{len(X)}/{len(queries)}"
    bases = [
        context.step(f"{name} {sizes}, b={b}", measured, X, y, queries, y_queries, b) for b in BASES
    ]
    return {"N": len(X), "queries": len(queries), "bases": bases}


def ratios(of: dict[str, Any]) -> dict[str, float]:
    """Return ratios of costs by epsilon and by b, and of a query's cost to N."""
    own, small = of["bases"][BASES.index(B)], of["bases"][BASES.index(SMALL_B)]
    low, high = EPSILONS.index(LOW), EPSILONS.index(HIGH)
    return {
        "epsilon": own["query"][high] / own["query"][low],
        "learn": small["learn"] / own["learn"],
        "query": small["query"][high] / own["query"][high],
        "share": own["query"][high] / of["N"],
    }


def claims(name: str, of: dict[str, Any]) -> list[Row]:
    """Return one row on epsilon and two on b."""
    found = ratios(of)
    errors = of["bases"][BASES.index(B)]["error"]
    a, b = (errors[EPSILONS.index(epsilon)] for epsilon in (LOW, HIGH))
    same = a is None or abs(a - b) <= two_standard_errors(a, b, of["queries"])
    errors_text = "" if a is None else f"; error {b:.2f} against {a:.2f} %"
    rows = [
        Row(
            f"{name}, N = {of['N']:,}: a query with epsilon = {HIGH:g} / {LOW:g}",
            "little effect",
            f"{found['epsilon']:.2f} of the comparisons{errors_text}",
            holds(abs(found["epsilon"] - 1) <= LITTLE and same),
        )
    ]
    for i, (part, what, sign) in enumerate(
        (("learn", "training", "<"), ("query", "querying", ">"))
    ):
        times = PAPER_SECONDS.get(name)
        in_paper = f" ({times[i][0] / times[i][1]:.2f} by time)" if times else ""
        verdict = holds(found[part] < 1 if part == "learn" else found[part] > 1)
        if part == "query" and found["share"] >= EXHAUSTIVE:
            verdict = MEASURED
        what = f"{name}, N = {of['N']:,}: {what} with b = {SMALL_B:g} / {B:g}"
        rows.append(Row(what, f"{sign} 1{in_paper}", found[part], verdict))
    return rows


def remark(figures: dict[str, Any]) -> str:
    """Describe where the claims do not hold, and what the figures say about it."""
    found = {name: ratios(of) for name, of in figures["sets"].items()}
    much = {n: r["epsilon"] for n, r in found.items() if abs(r["epsilon"] - 1) > LITTLE}
    parts = []
    if much:
        named = ", ".join(f"{name} ({ratio:.2f})" for name, ratio in much.items())
        parts.append(
            f"Epsilon = {HIGH:g} instead of {LOW:g} saves comparisons on {named}: the descent may "
            "stop as soon as no example below can be so much nearer than the best so far."
        )
    exhaustive = [name for name, r in found.items() if r["share"] >= EXHAUSTIVE]
    if exhaustive:
        parts.append(
            f"On {', '.join(exhaustive)} a query is compared with almost every example whatever b "
            "is. The paper's own times of mnist and pendigits do not rise with the smaller base."
        )
    no_dearer = [n for n, r in found.items() if r["query"] <= 1 and r["share"] < EXHAUSTIVE]
    if no_dearer:
        parts.append(f"Querying costs no more with the smaller base on {', '.join(no_dearer)}.")
    no_cheaper = [name for name, r in found.items() if r["learn"] >= 1]
    if no_cheaper:
        parts.append(f"Training is no cheaper with the smaller base on {', '.join(no_cheaper)}.")
    parts.append(
        "The tree descends as narrowly as the original rule, made for b = 2, has it: with smaller "
        "bases an insertion looks at fewer examples, which is where the cheap training comes from."
    )
    return " ".join(parts)


def draw(figures: dict[str, Any]) -> Any:
    """Draw costs against b on the left, and the cost of a query against epsilon on the right."""
    titles = ["Learning a row", "Querying, epsilon = 10", f"Querying, b = {B:g}"]
    figure, axes = plots.panels(titles, width=4.2)
    bases, epsilons = figures["bases"], figures["epsilons"]
    own, high = bases.index(B), epsilons.index(HIGH)
    places = range(len(epsilons))  # 0 has no place on a logarithmic axis
    markers = "osD^vP*X"
    styles = zip((*plots.COLORS, plots.FIT, "#a33b4e"), markers, strict=True)
    for (color, marker), (name, of) in zip(styles, figures["sets"].items(), strict=False):
        style = {"color": color, "marker": marker, "label": f"{name}, N = {of['N']:,}"}
        learn = [by["learn"] / of["N"] for by in of["bases"]]
        axes[0].plot(bases, [100 * share for share in learn], **style)
        query = [by["query"][high] / of["N"] for by in of["bases"]]
        axes[1].plot(bases, [100 * share for share in query], **style)
        by_epsilon = [100 * cost / of["N"] for cost in of["bases"][own]["query"]]
        axes[2].plot(places, by_epsilon, **style)
    plots.named_axes(axes[0], "base b", "", log_y=True)
    plots.named_axes(axes[1], "base b", "")
    plots.named_axes(axes[2], "epsilon", "")
    for ax in axes[:2]:
        ax.set_xticks(bases)
    for ax in axes[1:]:
        ax.set_ylim(0, 105)
    axes[2].set_xticks(places, [f"{epsilon:g}" for epsilon in epsilons])
    axes[0].set_ylabel("comparisons, % of all examples")
    for ax in axes[:2]:
        ax.legend([], frameon=False)
    axes[2].legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False)
    return figure


ITEMS = (
    Item(
        name="cover-tree-parameters",
        title="What epsilon and b do to the cover tree",
        where="Section 4, text; Appendix",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=BENCHMARKS,
        plots={"": draw},
    ),
)
