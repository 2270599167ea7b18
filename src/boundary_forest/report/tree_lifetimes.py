"""How a forest forgets: its trees by lifetime, how good they were, and how votes were weighed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from boundary_forest.estimators.engine_constants import STREAM_RULES
from boundary_forest.estimators.lifetime_stats import Lifetime, Turnover, vote_rule
from boundary_forest.report.charts import SIDE, Chart, Curve, line_chart
from boundary_forest.report.formatting import count, counted, number, percent, short
from boundary_forest.session.history import SessionSnapshot

MOST_POINTS = 30  # of a curve: means over several looks are calm enough to be compared
LASTING = "blue"
COLORS = ("orange", "green", "violet", "grey")  # of lifetimes, then again with dashes
MOST_GROUPS = 2 * len(COLORS) + 1


@dataclass(frozen=True)
class LifetimeRow:
    """The trees of a lifetime; ``style`` is the bar's, of their recent accuracy or error."""

    name: str
    trees: str
    ages: str
    renewals: str
    recent: str
    style: str


@dataclass(frozen=True)
class RuleStrip:
    """A rule for votes, and when it was in use: a path of a box SIDE wide."""

    name: str
    share: str
    path: str
    is_used: bool


@dataclass(frozen=True)
class Forgetting:
    """All of it, as tree_lifetimes.html writes it."""

    note: str
    recent: str  # what the last column is
    lines: list[LifetimeRow]
    charts: list[Chart]
    votes_note: str
    strips: list[RuleStrip]
    side: int = SIDE


Seen = list[tuple[int, Turnover]]  # rows, and how the trees stood then


def lifetimes(snapshots: Sequence[SessionSnapshot]) -> Forgetting | None:
    """Return how the trees stand and stood; None if the forest does not forget."""
    seen = [(s.rows, s.turnover) for s in snapshots if s.turnover and s.turnover.lifetimes]
    if not seen:
        return None
    classes = snapshots[-1].task == "classify"
    groups = seen[-1][1].lifetimes
    values = [v for group in groups if (v := _recent(group, classes)) is not None]
    return Forgetting(
        note="Lifetime: the number of rows after which a tree is replaced. Age: rows since the "
        "oldest example in a tree arrived, for the youngest and the oldest tree. Renewals: how "
        "many trees were replaced. Last column: the mean of single trees over about the last 100 "
        "rows.",
        recent="accuracy" if classes else "RMSE",
        lines=[_line(group, classes, max(values, default=0.0)) for group in groups],
        charts=[*_quality(seen, classes), _renewals(seen)],
        votes_note="The rules that weight the trees' predictions, when each was in use, and for "
        "what share of the rows. The rule with the fewest mistakes over about the last 500 rows "
        "predicts the next row.",
        strips=_strips(seen, snapshots[-1].rows, classes),
    )


def _recent(group: Lifetime, classes: bool) -> float | None:
    return group.recent_accuracy if classes else group.recent_rmse


def _name(group: Lifetime) -> str:
    return "unlimited" if group.lifetime is None else f"{count(group.lifetime)} rows"


def _line(group: Lifetime, classes: bool, largest: float) -> LifetimeRow:
    recent = _recent(group, classes)
    ages = [count(age) for age in (group.youngest, group.oldest)]
    share = 0.0 if recent is None or not largest else recent / largest
    return LifetimeRow(
        _name(group),
        count(group.trees),
        ages[0] if ages[0] == ages[1] else " to ".join(ages),
        count(group.renewals),
        percent(recent) if classes else number(recent),
        f"width:{100 * share:.4g}%",
    )


def _quality(seen: Seen, classes: bool) -> list[Chart]:
    """Return the chart of how good trees were by lifetime; none if they were not judged."""
    groups = seen[-1][1].lifetimes[-MOST_GROUPS:]
    shown = {group.lifetime for group in groups}
    if _recent(groups[0], classes) is None:
        return []
    rows, means = [], []
    for part in _parts(seen):
        by_lifetime = [
            [
                _recent(group, classes) or 0.0
                for group in turnover.lifetimes
                if group.lifetime in shown
            ]
            for _, turnover in part
        ]
        rows.append(part[-1][0])
        means.append([sum(values) / len(values) for values in zip(*by_lifetime, strict=True)])
    curves, renewed = [], 0
    for i, group in enumerate(groups):
        color, dashed = LASTING, False
        if group.lifetime is not None:
            color, dashed = COLORS[renewed % len(COLORS)], renewed >= len(COLORS)
            renewed += 1
        curves.append(Curve(_name(group), [mean[i] for mean in means], color, dashed=dashed))
    return [
        _chart(
            "Recent accuracy by lifetime" if classes else "Recent RMSE by lifetime",
            rows,
            curves,
            percent if classes else number,
            (lambda v: f"{100 * v:.4g} %") if classes else short,
            note="Mean of single trees by lifetime. If short-lived trees are better, the stream "
            "has drifted.",
            zero=False,
            class_="half",
        )
    ]


def _parts(seen: Seen) -> Iterator[Seen]:
    """Yield what was seen in at most MOST_POINTS parts, one after the other."""
    length = -(-len(seen) // MOST_POINTS)
    return (seen[begin : begin + length] for begin in range(0, len(seen), length))


def _renewals(seen: Seen) -> Chart:
    return _chart(
        "Renewals",
        [rows for rows, _ in seen],
        [Curve("trees replaced", [t.renewals for _, t in seen], "green", area=True)],
        lambda v: count(round(v)),
        short,
        note="Trees replaced at the end of their lifetime, or rebuilt with new column weights.",
        class_="half",
    )


def _chart(
    title: str,
    rows: list[int],
    curves: list[Curve],
    write: Callable[[float], str],
    tick: Callable[[float], str],
    *,
    note: str,
    class_: str,
    zero: bool = True,
) -> Chart:
    return line_chart(
        title,
        rows,
        curves,
        write=write,
        tick=tick,
        x_name="rows",
        x_tick=short,
        x_write=lambda x: f"after {counted(round(x), 'row')}",
        group="rows",
        note=note,
        zero=zero,
        class_=class_,
    )


def _strips(seen: Seen, last: int, classes: bool) -> list[RuleStrip]:
    """Return the rules that were ever in use; what was seen holds until it is looked at again."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for (rows, turnover), end in zip(seen, [rows for rows, _ in seen[1:]] + [last], strict=True):
        spans.setdefault(turnover.rule, []).append((rows, end))
    begin = seen[0][0]
    whole = max(1, last - begin)
    return [
        RuleStrip(
            vote_rule(rule, classes=classes),
            percent(sum(b - a for a, b in spans[rule]) / whole),
            "".join(
                f"M{SIDE * a / max(1, last):.5g} 0V1H{SIDE * b / max(1, last):.5g}V0Z"
                for a, b in spans[rule]
            ),
            rule == seen[-1][1].rule,
        )
        for rule in range(len(STREAM_RULES))
        if rule in spans
    ]
