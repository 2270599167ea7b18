"""Regression: the forest beside k-NN, and how many neighbours its trees really average."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest import BoundaryForestRegressor
from paper import plots
from paper.context import Context
from paper.datasets import DataAbsentError
from paper.item import DATA_ABSENT, Item, Result, Row, Table, close

SETS = ("california", "abalone")
NOISES = (0.0, 1.0, 5.0)  # standard deviations; that of the function is 4.9
NEIGHBOURS = (1, 2, 3, 5, 10, 20, 50)
K_NN = 5
COMPARABLE = 0.05
K = 50
# n_T, epsilon in standard deviations of the targets or "auto", offline; the first is the default.
Forest = tuple[int, str | float, bool]
FORESTS: tuple[Forest, ...] = (
    (50, "auto", False),
    (50, 0.0, False),
    (50, 0.1, False),
    (50, 0.5, False),
    (50, 1.0, False),
    (200, "auto", False),
    (50, "auto", True),
)
AVERAGED_OVER = 500  # queries, for the number of neighbours

RULE = (
    f"comparable is an R² on the test rows within {COMPARABLE:g} of {K_NN}-NN's, or above it, for "
    f"a forest of 50 trees, k = {K}, with the default epsilon (a tenth of the standard deviation "
    "of the targets so far). The paper has no table of regressions."
)


@dataclass(frozen=True)
class Problem:
    """Features, standardised by the training part, and targets."""

    title: str
    X_train: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]

    def score(self, predicted: NDArray[Any]) -> dict[str, float]:
        """Return R² and the mean absolute error."""
        left = np.sum((predicted - self.y_test) ** 2)
        spread = np.sum((self.y_test - self.y_test.mean()) ** 2)
        return {"r2": float(1 - left / spread), "mae": float(abs(predicted - self.y_test).mean())}


def standardised(title: str, *parts: NDArray[Any]) -> Problem:
    """Standardise by mean and standard deviation of the training rows."""
    X_train, y_train, X_test, y_test = parts
    mean, sd = X_train.mean(axis=0), X_train.std(axis=0)
    sd = np.where(sd > 0, sd, 1)
    return Problem(title, (X_train - mean) / sd, y_train, (X_test - mean) / sd, y_test)


def problems(context: Context) -> Iterator[Problem]:
    """Yield the available problems, and a function with more and more noise."""
    from sklearn.datasets import make_friedman1

    most = context.pick(tiny=200, quick=5_000, full=None)
    for name in SETS:
        try:
            data = context.load(name)
        except DataAbsentError:
            continue
        parts = (data.X_train, data.y_train, data.X_test, data.y_test)
        yield standardised(name, *(np.asarray(part[:most], dtype=float) for part in parts))
    n = context.pick(tiny=200, quick=2_000, full=10_000)
    for noise in NOISES:
        X, y = make_friedman1(n + n // 4, noise=noise, random_state=context.seed)
        yield standardised(f"friedman, noise {noise:g}", X[:n], y[:n], X[n:], y[n:])


def k_nn(of: Problem) -> list[dict[str, float]]:
    """Return the scores of scikit-learn's k-NN for each number of neighbours."""
    from sklearn.neighbors import KNeighborsRegressor

    found = KNeighborsRegressor(max(NEIGHBOURS)).fit(of.X_train, of.y_train)
    nearest = found.kneighbors(of.X_test, return_distance=False)
    return [of.score(of.y_train[nearest[:, :k]].mean(axis=1)) for k in NEIGHBOURS]


def forest_of(of: Problem, kind: Forest, context: Context) -> dict[str, float]:
    """Return scores, the share of the examples in a tree, and the neighbours averaged."""
    n_trees, epsilon, offline = kind
    threshold = epsilon if isinstance(epsilon, str) else epsilon * float(of.y_train.std())
    forest = BoundaryForestRegressor(
        shuffle=False,
        n_estimators=n_trees,
        max_children=K,
        epsilon=threshold,
        offline=offline,
        n_jobs=context.n_jobs,
        random_state=context.seed,
    ).fit(of.X_train, of.y_train)
    queries = of.X_test[:AVERAGED_OVER]
    return {
        **of.score(forest.predict(of.X_test)),
        **averaged(of.X_train, queries, forest.apply(queries)),
        "kept": float(np.mean(forest.stats()["nodes_per_tree"]) / len(of.X_train)),
    }


def averaged(X: NDArray[Any], queries: NDArray[Any], answers: NDArray[Any]) -> dict[str, float]:
    """Return means over queries of the distinct examples found, and of their effective number.

    The effective number is 1 / sum of squared weights, Shepard's, an example's weight being that of
    all its trees.
    """
    distinct, effective = [], []
    for query, row in zip(queries, answers, strict=True):
        examples, trees = np.unique(row, return_counts=True)
        distances = np.sqrt(np.sum((X[examples] - query) ** 2, axis=1))
        weights = trees / distances if distances.all() else trees * (distances == 0)
        weights = weights / weights.sum()
        distinct.append(len(examples))
        effective.append(1 / np.sum(weights**2))
    return {"distinct": float(np.mean(distinct)), "effective": float(np.mean(effective))}


def named(kind: Forest) -> str:
    """Return the forest's parameters in words."""
    n_trees, epsilon, offline = kind
    how = epsilon if isinstance(epsilon, str) else f"{epsilon:g} sd"
    return f"forest, n_T = {n_trees}, epsilon {how}{', offline' if offline else ''}"


def run(context: Context) -> Result:
    """Measure every forest and every k on every available problem."""
    sets: dict[str, Any] = {}
    rows: list[Row] = []
    for of in problems(context):
        context.expect(1 + len(FORESTS))
        sizes = f"{of.title} {len(of.X_train)}/{len(of.X_test)}"
        nearest = context.step(f"{sizes}, k-NN {NEIGHBOURS}", k_nn, of)
        forests = [
            context.step(f"{sizes}, {named(kind)}", forest_of, of, kind, context)
            for kind in FORESTS
        ]
        sets[of.title] = {"N": len(of.X_train), "k_nn": nearest, "forests": forests}
        ours, theirs = forests[0]["r2"], nearest[NEIGHBOURS.index(K_NN)]["r2"]
        rows.append(
            Row(
                f"{of.title}: R², {K_NN}-NN {theirs:.3f}",
                "comparable",
                ours,
                close(ours, theirs, absolute=COMPARABLE, better="higher"),
            )
        )
    rows += [Row(name, "comparable", None, DATA_ABSENT) for name in SETS if name not in sets]
    header = ("data", "who", "R²", "mean absolute error", "kept in a tree", "distinct", "effective")
    table = [line for title, of in sets.items() for line in _lines(title, of)]
    shown = Table(
        "Answers that a prediction averages: distinct, and as many equal ones", header, table
    )
    return Result(rows, {"k": NEIGHBOURS, "sets": sets}, [shown], remark(sets))


def _lines(title: str, of: dict[str, Any]) -> list[list[Any]]:
    nearest = [
        [title, f"{k}-NN", got["r2"], got["mae"], 1.0, k, k]
        for k, got in zip(NEIGHBOURS, of["k_nn"], strict=True)
    ]
    figures = ("r2", "mae", "kept", "distinct", "effective")
    forests = [
        [title, named(kind), *(got[name] for name in figures)]
        for kind, got in zip(FORESTS, of["forests"], strict=True)
    ]
    return nearest + forests


def remark(sets: dict[str, Any]) -> str:
    """Describe why the forest is worse where it is, as far as the figures show it."""
    at = NEIGHBOURS.index(K_NN)
    sentences = []
    for title, of in sets.items():
        ours, theirs = of["forests"][0], of["k_nn"][at]["r2"]
        if ours["r2"] >= theirs - COMPARABLE:
            continue
        scores = [got["r2"] for got in of["forests"]]
        best = int(np.argmax(scores))
        text = (
            f"On {title} the forest is {theirs - ours['r2']:.3f} below {K_NN}-NN. Its 50 trees "
            f"give {ours['distinct']:.1f} distinct examples a query, which by their weights are "
            f"worth {ours['effective']:.1f} equal ones; {like(of)}. The best of the forests tried, "
            f"{named(FORESTS[best])}, has {scores[best]:.3f}."
        )
        dull = of["forests"][FORESTS.index((50, 1.0, False))]
        if dull["r2"] < ours["r2"]:
            text += (
                " A larger epsilon does not help: the trees then store the exceptions and answer "
                f"with them (1 sd: R² {dull['r2']:.3f}, {dull['kept']:.0%} kept)."
            )
        sentences.append(text)
    noisy = sets[f"friedman, noise {NOISES[-1]:g}"]
    ours, theirs = noisy["forests"][0], noisy["k_nn"][at]["r2"]
    sentences.append(
        f"Noise alone is {'not ' if ours['r2'] >= theirs - COMPARABLE else ''}what makes it worse: "
        f"on the generated function with noise as strong as the function the forest has "
        f"{ours['r2']:.3f}, {K_NN}-NN {theirs:.3f}, for there the trees' answers are worth "
        f"{ours['effective']:.1f} neighbours."
    )
    return " ".join(sentences)


def like(of: dict[str, Any]) -> str:
    """Describe between which k the forest's R² lies."""
    r2 = of["forests"][0]["r2"]
    below = [k for k, got in zip(NEIGHBOURS, of["k_nn"], strict=True) if got["r2"] <= r2]
    if not below:
        return "no k-NN is as bad"
    above = [k for k in NEIGHBOURS if k > max(below)]
    return f"its R² is between that of {max(below)}-NN and that of {above[0]}-NN" if above else ""


def draw(figures: dict[str, Any]) -> Any:
    """Draw R² of k-NN against k, and of the forests against the neighbours they average."""
    sets = figures["sets"]
    figure, axes = plots.grid(1, len(sets), width=3.0, height=3.2)
    shown = ((0, "o", "epsilon auto"), (4, "s", "epsilon 1 sd"), (6, "D", "offline"))
    for ax, (title, of) in zip(axes[0], sets.items(), strict=True):
        ax.set_title(f"{title}, N = {of['N']:,}", loc="left", fontsize=10)
        r2 = [got["r2"] for got in of["k_nn"]]
        ax.plot(figures["k"], r2, "o-", color=plots.COLORS[5], label="k-NN, at k", zorder=2)
        for color, (which, marker, name) in zip(plots.COLORS, shown, strict=False):
            got = of["forests"][which]
            style = {"color": color, "marker": marker, "markersize": 8, "linestyle": "none"}
            ax.plot(got["effective"], got["r2"], label=f"forest, {name}", zorder=3, **style)
        plots.named_axes(ax, "neighbours averaged", "", log_x=True)
        if ax is not axes[0][0]:
            ax.legend([], frameon=False)
    axes[0][0].set_ylabel("R² on the test rows")
    axes[0][0].legend(loc="lower right")
    return figure


ITEMS = (
    Item(
        name="regression",
        title="Regression compared with k-NN",
        where="Section 5, text",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=SETS,
        plots={"": draw},
    ),
)
