"""Show the user how a command goes: a panel or a bar on a terminal, else plain lines, or JSON."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from boundary_forest.cli.panel import LivePanel
from boundary_forest.cli.summary import plain_line, summary
from boundary_forest.cli.terminal import warn
from boundary_forest.report.formatting import count, duration, rate
from boundary_forest.session.events import Decided, Refused
from boundary_forest.session.history import History, SessionSnapshot

MOST_SHOWN = 5  # bad rows that are shown one by one
PANEL_SECONDS, LINE_SECONDS = 0.15, 2.0  # between two updates


class Display:
    """What the user sees.

    Parameters
    ----------
    console : Console
        Where to show it; standard error if answers go to standard output.
    as_json : bool
        Whether progress is reported as JSON, one object per line.
    quiet : bool
        Whether only problems are reported, and on a terminal how good the answers were.
    """

    def __init__(self, console: Console, *, as_json: bool = False, quiet: bool = False) -> None:
        self.console = console
        self._as_json = as_json
        self._quiet = quiet
        self._panel: LivePanel | None = None
        if console.is_terminal and not as_json and not quiet:
            self._panel = LivePanel(console)
        self._every = PANEL_SECONDS if self._panel is not None else LINE_SECONDS
        self._last = time.monotonic()
        self._n_shown = 0

    def __enter__(self) -> Self:
        if self._panel is not None:
            self._panel.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._panel is not None:
            self._panel.__exit__(kind, error, trace)

    def wants(self) -> bool:
        """Return whether an update is due."""
        return not self._quiet and time.monotonic() - self._last >= self._every

    def update(self, snapshot: SessionSnapshot) -> None:
        """Show the state."""
        self._last = time.monotonic()
        if self._as_json:
            self._json({"event": "progress", **asdict(snapshot)})
        elif self._panel is not None:
            self._panel.update(snapshot)
        else:
            self._line(plain_line(snapshot))

    def decided(self, decision: Decided) -> None:
        """Show what was decided, and what looks wrong about it."""
        if not self._quiet and not self._as_json:
            for choice in decision.choices:
                self._line(choice)
        for warning in decision.warnings:
            warn(warning)

    def refused(self, row: Refused) -> None:
        """Show the first few of the rows that are left out."""
        self._n_shown += 1
        if self._n_shown <= MOST_SHOWN:
            warn(f"row {row.number} is skipped: {row.why}")
        elif self._n_shown == MOST_SHOWN + 1:
            warn("further skipped rows are counted, but not shown")

    def end(self, history: History) -> None:
        """Show the closing summary."""
        if self._as_json:
            by_class = {"classes": [asdict(scored) for scored in history.by_class]}
            last = asdict(history.snapshots[-1]) | (by_class if history.by_class else {})
            self._json({"event": "end", **last, **history.summary})
        elif not self._quiet:
            summary(self.console, history)
        elif self.console.is_terminal and _is_judged(history.snapshots[-1]):
            summary(self.console, history, brief=True)

    def _json(self, content: dict[str, Any]) -> None:
        self.console.file.write(json.dumps(content) + "\n")
        self.console.file.flush()

    def _line(self, text: str) -> None:
        self.console.print(escape(text), highlight=False, soft_wrap=True)


def _is_judged(snapshot: SessionSnapshot) -> bool:
    """Return whether some answers could be compared with targets."""
    return snapshot.error is not None or snapshot.mae is not None


class RowCounter:
    """Counts rows, and shows it now and then.

    Parameters
    ----------
    console : Console
        Where to show it.
    total : int or None
        The number of rows, if that is known, or known about.
    what : str
        What is done with rows: "indexed", for instance.
    as_json : bool
        Whether to show it as JSON, one object per line.
    quiet : bool
        Whether nothing is shown.
    """

    def __init__(
        self,
        console: Console,
        total: int | None,
        what: str,
        *,
        as_json: bool = False,
        quiet: bool = False,
    ) -> None:
        self.rows = 0
        self._console = console
        self._total = total
        self._what = what
        self._as_json = as_json
        self._quiet = quiet
        self._start = self._last = time.monotonic()
        self._bar: Progress | None = None
        if console.is_terminal and not as_json and not quiet:
            self._bar = Progress(
                BarColumn(), TextColumn("{task.description}"), console=console, transient=True
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._bar.add_task(self._text(), total=self._total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def seconds(self) -> float:
        """The time since the beginning."""
        return time.monotonic() - self._start

    @property
    def rows_per_s(self) -> float:
        """The speed so far."""
        return self.rows / max(self.seconds, 1e-9)

    def add(self, rows: int) -> None:
        """Count rows, and show it if that is due."""
        self.rows += rows
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.rows, description=self._text())
        elif not self._quiet and time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            self.say("progress", {}, self._text())

    def say(self, event: str, figures: dict[str, Any], text: str) -> None:
        """Show figures as JSON, or the text where that is not wanted."""
        if self._as_json:
            known = {"rows": self.rows, "total_rows": self._total, "seconds": self.seconds}
            self._console.file.write(json.dumps({"event": event, **known, **figures}) + "\n")
            self._console.file.flush()
        elif not self._quiet:
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _text(self) -> str:
        of = "" if self._total is None else f" of {count(max(self._total, self.rows))}"
        parts = [f"{count(self.rows)}{of} rows {self._what}", f"{rate(self.rows_per_s)} rows/s"]
        if self._total is not None and 0 < self.rows < self._total:
            parts.append(f"{duration((self._total - self.rows) / self.rows_per_s)} left")
        return "  ".join(parts)
