"""Show the user how a session goes: a panel on a terminal, else plain lines, or JSON."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape

from boundary_forest.cli.panel import LivePanel
from boundary_forest.cli.summary import plain_line, summary
from boundary_forest.session.events import Decided, Refused
from boundary_forest.session.progress import History, Snapshot

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
        Whether only problems are reported.
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

    def update(self, snapshot: Snapshot) -> None:
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

    def _json(self, content: dict[str, Any]) -> None:
        self.console.file.write(json.dumps(content) + "\n")
        self.console.file.flush()

    def _line(self, text: str) -> None:
        self.console.print(escape(text), highlight=False, soft_wrap=True)


def warn(what: str) -> None:
    """Print a line to standard error."""
    print(f"boundary-forest: {what}", file=sys.stderr, flush=True)
