"""Show a session on the terminal: a live panel.

The panel is laid out again for every frame from the terminal's size: blocks of lines in order of
importance, of which as many are shown as fit. It is never wider or higher than the terminal.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from boundary_forest.cli import sparkline
from boundary_forest.cli.sparkline import Track
from boundary_forest.cli.summary import (
    LABEL,
    VALUE,
    cut,
    exceptions,
    forest,
    measures,
    plain_line,
    rows_of,
    share_of_rows,
    time_left,
    title,
)
from boundary_forest.report.formatting import (
    count,
    duration,
    number,
    percent,
    rate,
    score,
    size,
)
from boundary_forest.session.history import SessionSnapshot

ACCENT, WARNING = "cyan", "yellow"
GUTTER = 14  # cells to the left of the chart
TILE = 13  # cells that a figure with its label takes at least
LOWEST, TALLEST = 3, 7  # lines of the chart; a quarter of a tall terminal


class LivePanel:
    """A panel that is redrawn in place at each :meth:`update`, and leaves nothing behind."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._track = Track()
        self._live: Live | None = None
        self._size = console.size

    def __enter__(self) -> LivePanel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def update(self, snapshot: SessionSnapshot) -> None:
        """Show this state."""
        value = snapshot.recent_error if snapshot.task == "classify" else snapshot.recent_mae
        if value is not None and math.isfinite(value):
            self._track.add(snapshot.rows, value)
        if self._live is not None and self.console.size != self._size:
            # The terminal has rewrapped the old frame's lines: what it covers is unknown.
            self._stop()
            self.console.clear()
        self._size = self.console.size
        frame = Frame(snapshot, self._track.points)
        if self._live is None:
            self._live = self._started(frame)
        else:
            self._live.update(frame, refresh=True)

    def _started(self, frame: Frame) -> Live:
        live = Live(
            frame,
            console=self.console,
            auto_refresh=False,  # by update alone: no thread, and no frame without news
            transient=True,
            # What is printed meanwhile goes above the panel, unless it goes into a file or a pipe.
            redirect_stdout=_is_terminal(sys.stdout),
            redirect_stderr=_is_terminal(sys.stderr),
        )
        live.start(refresh=True)
        return live

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


class Frame:
    """One frame of the panel, in as much room as the console has."""

    def __init__(self, snapshot: SessionSnapshot, track: Sequence[tuple[int, float]]) -> None:
        self.snapshot = snapshot
        self.track = track

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.size.height - 2
        if width < 24 or height < 4:
            yield cut(Text(plain_line(self.snapshot)), width)
            return
        lines = self._lines(width - 4, height - 2, options.ascii_only)
        yield Panel(
            Text("\n").join(lines),
            title=cut(title(self.snapshot), width - 8),
            title_align="left",
            border_style=LABEL,
            box=box.ROUNDED,
            padding=(0, 1),
            width=width,
            height=len(lines) + 2,
        )

    def _lines(self, width: int, height: int, ascii_only: bool) -> list[Text]:
        """Return the content: at most ``height`` lines of at most ``width`` cells."""
        snapshot = self.snapshot
        head = [_rows_line(snapshot, width, ascii_only)]
        figures = _tiles(_figures(snapshot), width)
        notes = _notes(snapshot, width)
        judged = _measures(snapshot, width)
        if height < len(head) + len(figures) + len(notes) + len(judged) + LOWEST:
            judged = []

        fixed = len(head) + len(figures) + len(judged) + len(notes)
        airy = height >= fixed + 2 + 5  # else no line is spent on space
        spare = height - fixed - (5 if airy else 0)
        chart = self._chart(width, min(max(TALLEST, height // 4), spare), ascii_only)
        blocks = [head, [*figures, *judged], chart, notes]
        return _stacked([b for b in blocks if b], airy)[:height]

    def _chart(self, width: int, height: int, ascii_only: bool) -> list[Text]:
        """Return the recent error, but for the first tenth, as a chart of ``height`` lines."""
        write = percent if self.snapshot.task == "classify" else number
        # The first answers of a stream are often all wrong: with them the rest would look flat.
        points, label = self.track[len(self.track) // 10 :], f"recent {_measure(self.snapshot)}"
        room = width - GUTTER
        if height < 1 or room < 1 or not points:
            return []
        low, high = min(value for _, value in points), max(value for _, value in points)
        if low < high / 2:
            low = 0.0
        if height < 3 or ascii_only:
            values = sparkline.stretched(points, room)
            lines = sparkline.bars(values, low, high, room, height, ascii_only)
            marks = [""] * height
            marks[height // 2] = label
            return [
                _beside(f"{m:<{GUTTER}}", line, width) for m, line in zip(marks, lines, strict=True)
            ]
        with_axis = height > LOWEST
        height -= with_axis
        values = sparkline.stretched(points, 2 * room)
        lines = sparkline.curve(values, low, high, room, height)
        marks = [f"{label if i == height // 2 else '':<{GUTTER - 2}} │" for i in range(height)]
        marks[0] = f"{write(high):>{GUTTER - 2}} ┤"
        marks[-1] = f"{write(low) if low else '0':>{GUTTER - 2}} ┤"
        chart = [_beside(m, line, width) for m, line in zip(marks, lines, strict=True)]
        return [*chart, *([_rows_axis(points[0][0], points[-1][0], room)] if with_axis else [])]


def _beside(mark: str, line: str, width: int) -> Text:
    """Return a line of the chart with what stands to its left."""
    return cut(Text.assemble((mark, LABEL), (line, ACCENT)), width)


def _rows_axis(first: int, last: int, room: int) -> Text:
    """Return the axis below the chart: the first row and the last."""
    ends = f"row {count(first)}", count(last)
    line = "─" * max(0, room - len(ends[0]) - len(ends[1]) - 2)
    return cut(Text(f"{'└':>{GUTTER}}{ends[0]} {line} {ends[1]}", LABEL), GUTTER + room)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _measure(snapshot: SessionSnapshot) -> str:
    return "error" if snapshot.task == "classify" else "MAE"


def _figures(snapshot: SessionSnapshot) -> list[tuple[str, str]]:
    """Return the label and value of each tile, the most important first."""
    quality: list[tuple[str, str]] = []
    if snapshot.predicting and snapshot.task == "classify":
        quality = [("error", percent(snapshot.error)), ("recent", percent(snapshot.recent_error))]
    elif snapshot.predicting:
        quality = [
            ("MAE", number(snapshot.mae)),
            ("recent MAE", number(snapshot.recent_mae)),
            ("R2", score(snapshot.r2)),
            ("recent R2", score(snapshot.recent_r2)),
        ]
    return [
        *quality,
        ("rows/s", rate(snapshot.recent_rows_per_s)),
        ("stored", count(snapshot.stored)),
        ("memory", size(snapshot.memory_bytes)),
    ]


def _measures(snapshot: SessionSnapshot, width: int) -> list[Text]:
    """Return the other measures, as many in a line as fit."""
    lines: list[Text] = []
    for name, value in measures(snapshot).items():
        item = Text.assemble((f"{name} ", LABEL), (value, VALUE))
        if lines and lines[-1].cell_len + 3 + item.cell_len <= width:
            lines[-1].append("   ").append_text(item)
        else:
            lines.append(item)
    return [cut(line, width) for line in lines]


def _rows_line(snapshot: SessionSnapshot, width: int, ascii_only: bool) -> Text:
    """Return rows and time, with a bar between them if the total is known."""
    share = share_of_rows(snapshot)
    if share is None:
        text = Text.assemble((count(snapshot.rows), VALUE), " rows  ")
        return cut(text.append(duration(snapshot.seconds), LABEL), width)
    of = rows_of(snapshot).removeprefix(count(snapshot.rows))
    start = Text.assemble((count(snapshot.rows), VALUE), (f"{of}  ", LABEL))
    end = Text(
        f"  {100 * share:3.0f} %  {time_left(snapshot) or duration(snapshot.seconds)}", LABEL
    )
    room = width - start.cell_len - end.cell_len
    if room < 6:
        return cut(Text.assemble(start, (f"{100 * share:3.0f} %", LABEL)), width)
    full, rest = ("#", ".") if ascii_only else ("━", "━")
    done = round(share * room)
    return Text.assemble(start, (full * done, ACCENT), (rest * (room - done), "grey37"), end)


def _tiles(figures: list[tuple[str, str]], width: int) -> list[Text]:
    """Return labels above their values, as many side by side as fit."""
    each = max(1, min(len(figures), width // TILE))
    rows = math.ceil(len(figures) / each)
    each = math.ceil(len(figures) / rows)  # no lonely tile in the last row
    cells = min(24, width // each)
    lines = []
    for i in range(0, len(figures), each):
        row = figures[i : i + each]
        for style, texts in ((LABEL, [f[0] for f in row]), (VALUE, [f[1] for f in row])):
            lines.append(cut(Text("".join(f"{t:<{cells}}" for t in texts), style), width))
    return lines


def _notes(snapshot: SessionSnapshot, width: int) -> list[Text]:
    text = Text.assemble((forest(snapshot), LABEL))
    if snapshot.pace is not None:
        text.append(f"  slowed down to {rate(snapshot.pace)} rows/s", LABEL)
    for exception in exceptions(snapshot):
        text.append("  ")
        text.append(exception, WARNING if exception.endswith("bad") else LABEL)
    return [cut(text, width)]


def _stacked(blocks: list[list[Text]], airy: bool) -> list[Text]:
    if not airy:
        return [line for block in blocks for line in block]
    lines: list[Text] = [Text("")]
    for block in blocks:
        lines += [*block, Text("")]
    return lines
