"""The sizes of the benchmarks, as the appendix has them and as they are loaded."""

import numpy as np

from paper import published, tasks
from paper.context import Context
from paper.item import MEASURED, Item, Result, Row, holds
from paper.tasks import Task


def sizes(task: Task) -> tuple[int, int, int, int]:
    """Return the numbers of classes, features, training and test examples."""
    rows, features = task.X_train.shape
    return len(np.unique(task.y_train)), features, rows, len(task.X_test)


def listed(numbers: tuple[int, ...]) -> str:
    """Format the numbers as a list with commas."""
    return ", ".join(f"{number:,}" for number in numbers)


def run(context: Context) -> Result:
    """Compare the sizes of every available data set."""
    rows, figures = [], {}
    for task in tasks.present(context):
        ours = figures[task.name] = sizes(task)
        if task.name in published.SIZES:
            paper = published.SIZES[task.name]
            row = Row(task.name, listed(paper), listed(ours), holds(ours == paper))
        else:
            paper_has = published.MNIST_SIZES if task.name == "mnist" else None
            row = Row(task.name, paper_has, listed(ours), MEASURED)
        rows.append(row)
    paper_sizes = {name: listed(numbers) for name, numbers in published.SIZES.items()}
    rows += tasks.absent_rows(context, "{}", {**paper_sizes, "mnist": published.MNIST_SIZES})
    remark = (
        "The appendix's row of mnist is garbled: 60,00 training examples, and the cover tree's "
        "training time for the number of test examples. digits is scikit-learn's; it is not in the "
        "paper, and stands in these pages because it is at hand everywhere."
    )
    return Result(rows, {"sizes": figures}, remark=remark)


ITEMS = (
    Item(
        name="data-sets",
        title="The data sets: classes, features, training and test examples",
        where="Appendix, Datasets information",
        chapter="Appendix",
        rule="all four numbers are the paper's.",
        run=run,
        data=published.SETS,
    ),
)
