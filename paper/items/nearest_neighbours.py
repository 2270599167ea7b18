"""The paper's main claim: the accuracy of k-NN at a fraction of its time."""

from typing import Any

from paper import contests, plots, published, tasks
from paper.context import Context
from paper.item import MEASURED, Item, Result, Row, Table, holds
from paper.shares import two_standard_errors

K_NN = ("1-NN", "3-NN")

RULE = (
    "similar: the forest makes at most as many errors as the better of 1-NN and 3-NN, or within "
    "two standard errors of it. A fraction: its training and testing together take less time than "
    "testing takes 1-NN, on one thread. What is learned in part only, and the time of digits, "
    "which is too short, are not judged."
)


def total(of: dict[str, Any], name: str) -> float:
    """Return the seconds of training and testing together."""
    return float(of[name]["train_s"] + of[name]["test_s"])


def run(context: Context) -> Result:
    """Compare errors and times of both, from the tables."""
    found = contests.held(context, ("BF", *K_NN))
    rows = []
    for data, of in found.items():
        best = min(of[name]["error"] for name in K_NN)
        ours = of["BF"]["error"]
        similar = ours <= best + two_standard_errors(ours, best, of["tested"])
        paper = None
        if data in published.ERRORS["BF"]:
            theirs = min(published.ERRORS[name][data] for name in K_NN)
            paper = published.ERRORS["BF"][data] - theirs
        judged = holds(similar) if of["whole"] else MEASURED
        rows.append(
            Row(
                f"{of['title']}: error, less the better k-NN's",
                paper,
                ours - best,
                judged,
                unit="%",
            )
        )
    for data, of in found.items():
        ratio = total(of, "BF") / total(of, "1-NN")
        judged = holds(ratio < 1) if of["whole"] and data != tasks.DIGITS else MEASURED
        rows.append(
            Row(f"{of['title']}: BF / 1-NN, training and testing", fraction(data), ratio, judged)
        )
    rows += tasks.absent_rows(context, "{}", dict.fromkeys(published.SETS))
    table = Table(
        "Seconds to train and to test, one thread",
        ("data", "examples tested", "BF", "1-NN", "3-NN"),
        [
            [of["title"], of["tested"], *(total(of, name) for name in ("BF", *K_NN))]
            for of in found.values()
        ],
    )
    return Result(rows, {"found": found}, [table], remark(found))


def fraction(data: str) -> float | None:
    """Return the paper's fraction, if it has true testing times."""
    if data not in published.TESTING["BF"]:
        return None
    bf = published.TRAINING["BF"][data] + published.TESTING["BF"][data]
    return bf / published.TESTING["1-NN"][data]


def remark(found: contests.Figures) -> str:
    """Describe where the forest takes no less time, and why."""
    slower = [data for data, of in found.items() if total(of, "BF") >= total(of, "1-NN")]
    text = (
        "The paper's k-NN is Weka's; scikit-learn's is a product of matrices, some 200 times as "
        "fast on mnist. Training a forest costs as much whether few queries follow or many, "
        "and k-NN has no training, so that the fraction falls with the number of queries "
        "and with N: the forest's cost of a query grows as log N, k-NN's as N."
    )
    if slower:
        text += (
            f" Where the set is small, the product of matrices wins over training and testing "
            f"together: {', '.join(slower)}."
        )
    return text


def draw(figures: dict[str, Any]) -> Any:
    """Draw bars of seconds, training and testing, beside k-NN's."""
    found = figures["found"]
    figure, axes = plots.panels([of["title"] for of in found.values()], width=2.2, height=3.2)
    for ax, of in zip(axes, found.values(), strict=True):
        names = ("BF", *K_NN)
        train = [of[name]["train_s"] for name in names]
        ax.bar(names, train, color=plots.COLORS[1], label="training", width=0.6)
        test = [of[name]["test_s"] for name in names]
        ax.bar(names, test, bottom=train, color=plots.COLORS[0], label="testing", width=0.6)
        plots.named_axes(ax, "", "seconds" if ax is axes[0] else "")
        ax.set_ylim(0, 1.35 * max(a + b for a, b in zip(train, test, strict=True)))
        ax.legend(loc="upper left", frameon=False) if ax is axes[0] else ax.legend(
            [], frameon=False
        )
    return figure


ITEMS = (
    Item(
        name="fraction-of-knn",
        title="The accuracy of k-NN at a fraction of its time",
        where="Section 5, text",
        chapter="Claims in the text",
        rule=RULE,
        run=run,
        data=published.SETS,
        plots={"": draw},
    ),
)
