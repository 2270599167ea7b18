"""What the page shows: figures, and the charts of the report along the last hour."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from boundary_forest.report.by_class import MOST as MOST_CLASSES
from boundary_forest.report.charts import Chart, Curve
from boundary_forest.report.confusion import Name
from boundary_forest.report.formatting import (
    ABSENT,
    count,
    counted,
    duration,
    number,
    percent,
    rate,
    score,
    short,
    size,
)
from boundary_forest.report.importances import COLORS, column_importances
from boundary_forest.report.over_time import Along, curves_chart, quality_of, speed, storage
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.recorder import Moment, Recorder
from boundary_forest.service.settings import CLASSIFICATION, RETRIEVAL

MOST_POINTS = 200  # of a curve
MOST_BARS = 12
MINUTES_FROM = 180.0  # seconds from which on the axis has minutes
MIXTURE_SECONDS = 5.0  # between two looks at a mixture's weights
MOST_MIXTURES = 720  # an hour of them
_LATENCIES = ("/v1/predict", "/v1/learn", "/v1/label", "/v1/predict-then-learn", "/v1/neighbors")
_ABOUT_LATENCY = "Median and 99th percentile of the latest 1,024 requests of each path."


@dataclass(frozen=True)
class Bar:
    """A name with a bar and a figure, as the macro bar_list writes it."""

    name: str
    style: str
    share: str


class View:
    """Makes what the page shows from what the recorder has; every call is a look at now.

    Parameters
    ----------
    model : ServiceModel
        What is served.
    recorder : Recorder
        What has happened.
    """

    def __init__(self, model: ServiceModel, recorder: Recorder) -> None:
        self._model = model
        self._recorder = recorder
        self._moments: deque[Moment] = deque(maxlen=3600)
        self._mixtures: deque[tuple[float, dict[str, float]]] = deque(maxlen=MOST_MIXTURES)

    def figures(self) -> dict[str, Any]:
        """Return the figures of this moment: small, because every second has new ones."""
        moments = self._recorder.since(self._moments[-1].number if self._moments else 0)
        self._moments.extend(moments)
        self._look_at_mixture()
        model, tables = self._model, self._model.tables
        format, oldest = model.format, tables.oldest_waiting
        last = self._moments[-1] if self._moments else None
        learned = model.forest.examples_seen
        what = "named values" if format is None else _described(format.to_json())
        return {
            "sentence": f"{model.task.capitalize()}, {what}: {counted(learned, 'row')} learned.",
            "tiles": [] if last is None else [asdict_of(tile) for tile in self._tiles(last)],
            "waiting": ""
            if oldest is None
            else f"The oldest label is awaited for {duration(max(0.0, time.time() - oldest))}.",
        }

    def charts(self) -> dict[str, Any]:
        """Return the charts and the bars, by section."""
        self.figures()
        points = thinned(list(self._moments))
        if not points or not self._model.forest.examples_seen:
            return {"quality": [], "operation": [], "storage": [], "bars": [], "columns": []}
        along, states = _ago(points), [moment.figures for moment in points]
        found: dict[str, list[Any]] = {
            "quality": [],
            "operation": [speed(states, along), *_latency(points, along)],
            "storage": storage(states, along),
            "bars": [],
            "columns": [],
        }
        if self._model.task != RETRIEVAL:
            if any(state.error is not None or state.mae is not None for state in states):
                found["quality"] = quality_of(states, states[-1].task, along)
            found["operation"].append(_waiting(points, along))
        found["bars"] += self._classes()
        importances = column_importances(self._recorder.importances())
        if importances is not None:
            bars = [Bar(bar.name, bar.style, bar.share) for bar in importances.bars[:MOST_BARS]]
            found["bars"].append(_bars("Column importance", importances.note, bars))
            found["columns"].append(importances.over_time)
        found["columns"] += self._mixture()
        return {name: [asdict_of(one) for one in shown] for name, shown in found.items()}

    def _tiles(self, last: Moment) -> list[Tile]:
        state, latencies = last.figures, last.latencies
        found = []
        if self._model.task == CLASSIFICATION:
            majority = None if state.majority_accuracy is None else 1 - state.majority_accuracy
            found = [
                Tile("recent error", percent(state.recent_error), "last 1,000 predictions"),
                Tile("overall error", percent(state.error), f"majority {percent(majority)}"),
            ]
        elif self._model.task != RETRIEVAL:
            found = [
                Tile("recent MAE", number(state.recent_mae), f"overall {number(state.mae)}"),
                Tile("recent R²", score(state.recent_r2), f"overall {score(state.r2)}"),
            ]
        shown = [
            Tile(f"{name} latency", _ms(latencies[path].p50), f"99 %: {_ms(latencies[path].p99)}")
            for name, path in (("predict", _LATENCIES[0]), ("neighbors", _LATENCIES[4]))
            if path in latencies
        ]
        kept = f"{percent(state.stored / state.learned)} of the rows" if state.learned else ""
        return [
            *found,
            Tile("rows per second", rate(state.recent_rows_per_s), f"{count(last.seen)} learned"),
            *shown,
            Tile("examples stored", count(state.stored), kept),
            Tile("forest", size(state.forest_bytes), f"process {size(state.memory_bytes)}"),
            *(
                []
                if self._model.task == RETRIEVAL
                else [Tile("waiting labels", count(last.waiting), _queue(last.write_queue))]
            ),
        ]

    def _classes(self) -> list[dict[str, Any]]:
        """Return how many answered rows each class has."""
        if self._model.task != CLASSIFICATION:
            return []
        scores = self._model.scores.classes.by_class()
        rows = sum(scored.rows for scored in scores)
        if not rows:
            return []
        largest = sorted(scores, key=lambda scored: -scored.rows)[:MOST_BARS]
        most = largest[0].rows
        bars = [
            Bar(
                Name(scored.name).short,
                f"width:{100 * scored.rows / most:.4g}%",
                f"{percent(scored.rows / rows)}, {percent(scored.recall)} right",
            )
            for scored in largest
        ]
        note = "Share of the rows whose label came after their prediction, and how many of the "
        note += "class's rows were predicted right."
        if len(scores) > MOST_BARS:
            more = "more than " if len(scores) > MOST_CLASSES else ""
            note += f" The largest {MOST_BARS} of {more}{count(len(scores))} classes."
        return [_bars("Class balance", note, bars)]

    def _look_at_mixture(self) -> None:
        """Note the weights of the experts, if there are some."""
        forest = self._model.forest.model
        if getattr(forest, "weights", None) != "mixture" or not forest.examples_seen:
            return
        now = time.time()
        if self._mixtures and now - self._mixtures[-1][0] < MIXTURE_SECONDS:
            return
        weights = {str(name): float(weight) for name, weight in forest.mixture_.items()}
        if weights:
            self._mixtures.append((now, weights))

    def _mixture(self) -> list[Chart]:
        if not self._mixtures:
            return []
        stride = -(-len(self._mixtures) // MOST_POINTS)
        points = list(self._mixtures)[::-1][::stride][::-1]
        peaks = {name: max(w.get(name, 0.0) for _, w in points) for name in points[-1][1]}
        names = sorted(peaks, key=lambda name: -peaks[name])[: len(COLORS)]
        curves = [
            Curve(name, [weights.get(name, 0.0) for _, weights in points], color)
            for name, color in zip(names, COLORS, strict=False)
        ]
        return [
            curves_chart(
                [],
                _ago_of([at for at, _ in points]),
                "Mixture",
                curves,
                write=percent,
                tick=_percents,
                note="The weights of the experts that are mixed into an answer, while pages are "
                "open: the largest ones.",
            )
        ]


@dataclass(frozen=True)
class Tile:
    """A figure, its name, and what stands below it."""

    name: str
    value: str
    beside: str


def asdict_of(shown: Any) -> dict[str, Any]:
    """Return what is shown as plain values."""
    return shown if isinstance(shown, dict) else asdict(shown)


def thinned(moments: Sequence[Moment]) -> list[Moment]:
    """Return every second, fourth ... moment, so that there are few; the last one is among them.

    Which ones does not change while others arrive: curves grow, and do not flicker.
    """
    stride = 1
    while len(moments) > MOST_POINTS * stride:
        stride *= 2
    return [m for m in moments[:-1] if m.number % stride == 0] + list(moments[-1:])


def _described(format: dict[str, Any]) -> str:
    if "width" in format:
        return f"rows of {counted(format['width'], 'number')}"
    return f"rows of {counted(len(format['names']), 'column')}"


def _queue(n: int) -> str:
    return f"{counted(n, 'request')} queued" if n else "no request queued"


def _ago(moments: Sequence[Moment]) -> Along:
    return _ago_of([moment.at for moment in moments])


def _ago_of(times: Sequence[float]) -> Along:
    """Return the axis of the time before the last of some times."""
    span = times[-1] - times[0]
    unit, name = (60.0, "minutes ago") if span >= MINUTES_FROM else (1.0, "seconds ago")
    return Along(
        [min(0.0, at - times[-1]) / unit for at in times],
        name,
        lambda x: f"{-x:.6g}" if x else "now",
        lambda x: f"{duration(-x * unit)} ago" if x else "now",
        "time",
    )


def _latency(points: Sequence[Moment], along: Along) -> list[Chart]:
    """Return the chart of the path that is called most, of those that predict or search."""
    last = points[-1].latencies
    paths = [path for path in _LATENCIES if path in last]
    if not paths:
        return []
    path = max(paths[:1] if paths[0] == _LATENCIES[0] else paths, key=lambda p: last[p].requests)
    taken = [moment.latencies.get(path) for moment in points]
    curves = [
        Curve("99 %", [None if t is None else 1000 * t.p99 for t in taken], "orange"),
        Curve("median", [None if t is None else 1000 * t.p50 for t in taken], "blue"),
    ]
    return [
        curves_chart(
            [],
            along,
            f"Latency of {path.removeprefix('/v1/')}",
            curves,
            write=lambda v: f"{number(v, 3)} ms",
            tick=lambda v: f"{v:.4g} ms",
            note=_ABOUT_LATENCY,
        )
    ]


def _waiting(points: Sequence[Moment], along: Along) -> Chart:
    return curves_chart(
        [],
        along,
        "Waiting labels",
        [Curve("rows", [m.waiting for m in points], "violet", area=True)],
        write=lambda v: count(round(v)),
        tick=short,
        note="Predicted rows whose labels have not come yet.",
    )


def _bars(title: str, note: str, bars: list[Bar]) -> dict[str, Any]:
    return {"title": title, "note": note, "bars": [asdict(bar) for bar in bars]}


def _percents(value: float) -> str:
    return f"{100 * value:.4g} %"


def _ms(seconds: float | None) -> str:
    return ABSENT if seconds is None else f"{number(1000 * seconds, 3)} ms"
