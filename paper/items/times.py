"""Seconds to train and to test: the paper's table, and those of its appendix."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from joblib import cpu_count

from paper import contests, plots, published, tasks
from paper.context import Context
from paper.item import (
    BETTER,
    DIFFERS,
    MEASURED,
    REPRODUCED,
    Item,
    Result,
    Row,
    Table,
)
from paper.published import Numbers

BF = "BF"

RULE = (
    "the paper's seconds are another machine's and other libraries', so each learner is held "
    "against BF of the same table. Reproduced if the same one of the two is the faster; better if "
    "the forest is faster now and was not in the paper; differs if it is the other way round. "
    "(Several cores are the forest's own: better if they are faster now and were not.) What is "
    "learned in part only, and what the paper has no true number for, is not judged. One thread."
)


def verdict(name: str, paper: float, ours: float) -> str:
    """Judge the ratio of the learner's time to BF's: reproduced if both are on one side of 1."""
    if (paper > 1) == (ours > 1):
        return REPRODUCED
    return BETTER if (ours > 1) != (name == contests.CORES) else DIFFERS


def ratio_row(of: dict[str, Any], data: str, name: str, which: str, paper: Numbers) -> Row:
    """Return the row of one learner beside BF on one data set."""
    ours = of[name][which] / of[BF][which]
    theirs = paper.get(as_published(name), {}).get(data)
    base = paper.get(BF, {}).get(data)
    number = theirs / base if theirs is not None and base is not None else None
    judged = verdict(name, number, ours) if number is not None and of["whole"] else MEASURED
    return Row(f"{of['title']}: {contests.title(name)} / BF", number, ours, judged)


def as_published(name: str) -> str:
    """Return the paper's name: its BF has four cores, ours those of the machine."""
    return "BF-4" if name == contests.CORES else name


def run(which: str, paper: Numbers, others: Sequence[str], context: Context) -> Result:
    """Measure every learner of the table on every available data set."""
    names = [BF, *others]
    found = contests.held(context, names)
    rows = [
        Row(f"{of['title']}: BF", paper[BF].get(data), of[BF][which], unit="s")
        for data, of in found.items()
    ]
    rows += [
        ratio_row(of, data, name, which, paper) for data, of in found.items() for name in others
    ]
    rows += tasks.absent_rows(context, "{}", dict.fromkeys(published.SETS))
    table = Table(
        "Seconds, ours (the paper's)",
        ("data", *(contests.title(name) for name in names)),
        [
            [
                of["title"],
                *(_cell(of[n][which], paper.get(as_published(n), {}).get(data)) for n in names),
            ]
            for data, of in found.items()
        ],
    )
    figures = {
        "found": {
            data: {contests.title(n) if n in names else n: value for n, value in of.items()}
            for data, of in found.items()
        },
        "paper": {contests.title(n): paper.get(as_published(n), {}) for n in names},
        "which": which,
    }
    return Result(rows, figures, [table], remark(found, which, names))


def _cell(ours: float, paper: float | None) -> str:
    return f"{ours:.3g}" if paper is None else f"{ours:.3g} ({paper:g})"


def remark(found: contests.Figures, which: str, names: Sequence[str]) -> str:
    """Describe why ratios differ from the paper's."""
    sentences = []
    if "1-NN" in names:
        ratios = {data: of["1-NN"][which] / of[BF][which] for data, of in found.items()}
        least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
        sentences.append(
            "The paper's k-NN is Weka's, which takes 2,900 s for mnist; scikit-learn's is a "
            f"product of matrices. It takes {ratios[least]:.2g} ({least}) to {ratios[most]:.2g} "
            f"({most}) times as long as the forest."
        )
    if contests.CORES in names:
        sentences.append(
            f"BF with several cores has four in the paper and {cpu_count()} here, as many as the "
            "machine has; on small sets there is little to share out."
        )
    if "CT(1.3, 10)" in names:
        sentences.append(
            "The paper's cover tree learns pendigits in 4 ms and answers for it in 22 ms, too "
            "little for 7,494 and 3,498 examples; its appendix has an error of 90 % there."
        )
        if which == "train_s":
            sentences.append(
                "Ours is a single tree and compares an example with the nodes near its path alone, "
                "the forest has 50 trees; in more dimensions the cover tree's path is nearly all "
                "of it (cover-tree-scaling), in few it is short."
            )
    return " ".join(sentences)


def draw(figures: dict[str, Any]) -> Any:
    """Draw a panel for each data set and a line for each learner."""
    return plots.side_by_side(figures, figures["which"], "seconds", log=True)


def item(name: str, title: str, where: str, chapter: str, which: str, paper: Numbers) -> Item:
    """Return a table of times with the learners of the paper's table, beside BF."""
    others = [contests.CORES if n == "BF-4" else n for n in paper if n != BF]
    with_bf = {BF: (published.TRAINING if which == "train_s" else published.TESTING)[BF], **paper}
    return Item(
        name=name,
        title=title,
        where=where,
        chapter=chapter,
        rule=RULE,
        run=partial(run, which, with_bf, others),
        data=published.SETS,
        needs=("pyflann_ibeis",),
        plots={"": draw},
    )


ITEMS = (
    item(
        "training-times",
        "Training times on the benchmarks",
        "Section 5, Table 1 (a)",
        "Times",
        "train_s",
        published.TRAINING,
    ),
    item(
        "testing-times",
        "Testing times on the benchmarks",
        "Section 5, Table 1 (b)",
        "Times",
        "test_s",
        published.TESTING,
    ),
    item(
        "appendix-training-times",
        "Training times of RF-100 and further cover trees",
        "Appendix, tables of times (a)",
        "Appendix",
        "train_s",
        published.APPENDIX_TRAINING,
    ),
    item(
        "appendix-testing-times",
        "Testing times of RF-100, 10-NN and further cover trees",
        "Appendix, tables of times (b)",
        "Appendix",
        "test_s",
        published.APPENDIX_TESTING,
    ),
)
