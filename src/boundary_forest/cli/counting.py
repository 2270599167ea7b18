"""Show how far a command has come that goes through rows: a bar on a terminal, else plain lines."""

from __future__ import annotations

import json
import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from boundary_forest.session.wording import count, duration, rate

LINE_SECONDS = 2.0  # between two lines where there is no bar


class Counter:
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
