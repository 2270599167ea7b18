"""What an item of the paper is, what it returns, and the words for a verdict.

A verdict is given row by row: a row sets one number or claim of the paper beside ours. The item's
verdict follows from those of its rows. Figures are plain JSON, so that plots and pages can be made
again from the files alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paper.context import Context

REPRODUCED = "reproduced"
BETTER = "better"
DIFFERS = "differs"
DATA_ABSENT = "not run: data absent"
PACKAGE_ABSENT = "not run: package absent"
FAILED = "failed"
MEASURED = "measured"  # the paper has nothing to compare it with
NOT_RUN = (DATA_ABSENT, PACKAGE_ABSENT)
VERDICTS = (REPRODUCED, BETTER, DIFFERS, MEASURED, *NOT_RUN, FAILED)

CHAPTERS = (
    "Scaling",
    "Times",
    "Errors",
    "Claims in the text",
    "Appendix",
    "Future work of the paper",
)

Value = float | int | str | None


@dataclass(frozen=True)
class Row:
    """One number or claim: the paper's, ours, and the verdict with its rule."""

    what: str
    paper: Value
    ours: Value
    verdict: str = MEASURED
    rule: str = ""  # if it is not the item's
    unit: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {VERDICTS}, got {self.verdict!r}")


@dataclass(frozen=True)
class Table:
    """Further figures to show below the rows."""

    title: str
    header: tuple[str, ...]
    rows: list[list[Value]]


@dataclass(frozen=True)
class Result:
    """What ``run`` returns.

    ``figures`` is what was measured, as JSON; the plots are drawn from it alone. ``remark`` is the
    page's paragraph: what differs from the paper and why, if that is known.
    """

    rows: list[Row]
    figures: dict[str, Any] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    remark: str = ""


Draw = Callable[[dict[str, Any]], "Figure"]


@dataclass(frozen=True)
class Item:
    """A table, a figure or a claim of the paper that can be run.

    Parameters
    ----------
    name : lower case with dashes; also the name of its files.
    title : one line.
    where : section, table or figure of the paper.
    chapter : one of ``CHAPTERS``.
    rule : how verdicts are given, in words.
    run : the measurement.
    data : data sets it uses; ``Context.load`` raises an error if one is absent.
    needs : modules that must be installed beyond the package's own dependencies.
    plots : name -> function from ``Result.figures`` to a matplotlib figure. The name is appended to
        the item's; "" stands for the item's name alone.
    """

    name: str
    title: str
    where: str
    chapter: str
    rule: str
    run: Callable[["Context"], Result]
    data: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    plots: dict[str, Draw] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.chapter not in CHAPTERS:
            raise ValueError(f"chapter must be one of {CHAPTERS}, got {self.chapter!r}")


def close(
    ours: float,
    paper: float,
    *,
    absolute: float = 0.0,
    relative: float = 0.0,
    better: str | None = None,
) -> str:
    """Return the verdict on a number of the paper.

    It is reproduced within the tolerances, which add up. Outside of them it is better if ours is on
    the ``better`` side: "lower", "higher", or None if neither side is better.
    """
    if abs(ours - paper) <= absolute + relative * abs(paper):
        return REPRODUCED
    if (better == "lower" and ours < paper) or (better == "higher" and ours > paper):
        return BETTER
    return DIFFERS


def holds(claim: bool) -> str:
    """Return the verdict on a claim without a number."""
    return REPRODUCED if claim else DIFFERS


def summed_up(verdicts: Iterable[str]) -> str:
    """Return the item's verdict: one row that differs suffices; rows not run are ignored."""
    found = set(verdicts)
    for verdict in (FAILED, DIFFERS, BETTER, REPRODUCED, MEASURED, *NOT_RUN):
        if verdict in found:
            return verdict
    return MEASURED
