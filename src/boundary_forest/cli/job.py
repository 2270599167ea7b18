"""The shell around a session: a source into it, events out to files, a report and the terminal."""

from __future__ import annotations

import gc
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from boundary_forest import __version__
from boundary_forest.cli.display import Display
from boundary_forest.cli.prediction_file import PredictionFile
from boundary_forest.cli.terminal import (
    StopSignal,
    console_on,
    discard_output,
    is_same_path,
    naming_file,
    stoppable,
)
from boundary_forest.report import write_report
from boundary_forest.report.formatting import rate
from boundary_forest.session import Decided, Event, Refused, RowBatch, Session, SessionSettings
from boundary_forest.session.history import Pace
from boundary_forest.sources import Source, default_target, open_source
from boundary_forest.sources.row_batch import StreamError
from boundary_forest.sources.text_blocks import about_lines

PARTS_PER_S = 12  # of a paced run


@dataclass(frozen=True)
class Job:
    """What a command is to do.

    Parameters
    ----------
    source : str
        Where rows come from.
    settings : SessionSettings
        What the session does with them.
    format : str or None
        The source's format; detected if omitted.
    on_error : str
        "stop" or "skip", when a row is bad.
    save, report : Path or None
        The files to write the model and the report to.
    predictions : str or None
        The file to write the answers to; ``-`` is standard output.
    probabilities : bool
        Whether they have the share of every class.
    as_json : bool
        Whether progress is reported as JSON.
    quiet : bool
        Whether only problems are reported, and on a terminal how good the answers were.
    command : str or None
        The command line, for the report.
    rows_per_s : float or None
        The pace, for those who watch; None: as fast as it goes.
    """

    source: str
    settings: SessionSettings
    format: str | None = None
    on_error: str = "stop"
    save: Path | None = None
    report: Path | None = None
    predictions: str | None = None
    probabilities: bool = False
    as_json: bool = False
    quiet: bool = False
    command: str | None = None
    rows_per_s: float | None = None

    def check(self) -> None:
        """Raise StreamError before any work is done for what would fail after it."""
        for option, path in (("--save", self.save), ("--report", self.report)):
            if path is not None and not path.absolute().parent.is_dir():
                raise StreamError(
                    f"{option} {path}: the folder {path.absolute().parent} does not exist"
                )
            if path is not None and path.is_dir():
                raise StreamError(f"{option} {path}: this is a folder, not a file")
        if self.save is not None and is_same_path(self.save, self.source):
            raise StreamError(f"--save {self.save}: this file is the source")


class Pacer:
    """Cuts batches into parts, and waits before each of them.

    Parameters
    ----------
    pace : Pace
        To how many rows per second; the time spent waiting is added to it.
    stopped : callable
        Whether there is nothing to wait for any more.
    """

    def __init__(self, pace: Pace, stopped: Callable[[], bool]) -> None:
        self.pace = pace
        self._stopped = stopped

    def parts_of(self, batches: Iterator[RowBatch]) -> Iterator[RowBatch]:
        """Yield the rows of batches in small parts, each when its time has come."""
        rows, length = 0, max(1, round(self.pace.rows_per_s / PARTS_PER_S))
        start = time.monotonic()
        for batch in batches:
            first, last = batch.span
            for begin in range(first, last + 1, length):
                self._wait_until(start + rows / self.pace.rows_per_s)
                end = min(last, begin + length - 1)
                yield batch.from_row(begin).up_to_row(end)
                rows += end - begin + 1

    def _wait_until(self, due: float) -> None:
        begin = time.monotonic()
        if due > begin and not self._stopped():
            time.sleep(due - begin)
            self.pace.waited += time.monotonic() - begin

    def remark(self) -> str:
        """Return what the pace was for."""
        return (
            f"slowed down to {rate(self.pace.rows_per_s)} rows per second to be watched; use "
            "--fast for full speed"
        )


class Run:
    """A run of a job: :meth:`go` does all of it, and returns the exit code."""

    def __init__(self, job: Job, display: Display, stopped: StopSignal) -> None:
        self.job = job
        self.display = display
        self.stopped = stopped
        self._began = datetime.now().astimezone()
        self._pacer = None if job.rows_per_s is None else Pacer(Pace(job.rows_per_s), stopped)
        self._first_refused: Refused | None = None
        self._predictions: PredictionFile | None = None

    def go(self) -> int:
        """Read, answer, learn, save and report."""
        self.job.check()
        recording = self.job.report is not None
        with ExitStack() as stack:
            session = stack.enter_context(
                Session(
                    self.job.settings,
                    stopped=self.stopped,
                    recording=recording,
                    pace=None if self._pacer is None else self._pacer.pace,
                )
            )
            source = self._open_source(session)
            self._predictions = self._prediction_file(session)
            self._begin(session, source)
            broken = False
            try:
                try:
                    with self.display:
                        if self._predictions is not None:
                            stack.enter_context(self._predictions)
                        self._read(session, source)
                except BrokenPipeError:  # nobody reads any more: end as if the stream had
                    broken = True
                    discard_output()
                    self._handle_all(session, session.finish())
            finally:  # keep what was learned, however the run has ended
                session.checkpoint()
                saved = self.job.save is not None and session.save(self.job.save)
            self._check_some_rows(session)
            self._end(session, saved, broken)
        if self.stopped.signal is not None:
            return 128 + self.stopped.signal
        return 0

    def _open_source(self, session: Session) -> Source:
        return open_source(
            self.job.source,
            self.job.format,
            target=session.target,
            dialect=session.dialect,
            stopped=self.stopped,
        )

    def _prediction_file(self, session: Session) -> PredictionFile | None:
        """Return the file of predictions, not opened yet; None if none is written."""
        if self.job.predictions is None:
            return None
        after = None
        if session.is_resumed:
            after = sys.maxsize if self.job.settings.live else session.resumed
        return PredictionFile(
            self.job.predictions,
            id_column=session.id_column,
            probabilities=self.job.probabilities,
            after=after,
            kept=session.answers,
        )

    def _begin(self, session: Session, source: Source) -> None:
        about_rows = None
        if source.total_rows is None and not source.is_pipe:
            about_rows = about_lines(self.job.source)
        session.begin(
            source.names,
            name=source.name,
            total_rows=source.total_rows,
            about_rows=about_rows,
            default_target=default_target(source.format),
            predictions=self._predictions,
        )
        if session.choices:  # they were decided when the model was created
            self.display.decided(Decided(session.choices, ()))
        if session.model is not None:
            features = session.model.columns.features
            source.expect_numbers([f.name for f in features if f.kind == "number"])

    def _read(self, session: Session, source: Source) -> None:
        batch = None
        batches = source.batches
        for batch in batches if self._pacer is None else self._pacer.parts_of(batches):
            if self.stopped() and not source.is_pipe:  # its rows are there again next time
                break
            self._handle_all(session, session.take(batch))
            if self.stopped():
                break
        if batch is None and session.resumed and not self.stopped():
            raise StreamError(f"{session.name} has no rows, so the run cannot be resumed")
        if not self.stopped() or self._keeps_model():
            self._handle_all(session, session.finish())

    def _keeps_model(self) -> bool:
        """Return whether a run that is stopped has a use for a model that is not made yet."""
        return bool(self.job.save or self.job.report or self.job.settings.durable)

    def _handle_all(self, session: Session, events: Iterable[Event]) -> None:
        for event in events:
            self._handle(session, event)

    def _handle(self, session: Session, event: Event) -> None:
        if isinstance(event, Decided):
            self.display.decided(event)
        elif isinstance(event, Refused):
            self._refuse(session, event)
        else:
            if self._predictions is not None:
                self._predictions.add(event)
            if self.display.wants():
                self.display.update(session.snapshot())

    def _refuse(self, session: Session, row: Refused) -> None:
        self._first_refused = self._first_refused or row
        if self._predictions is not None:
            self._predictions.refuse(row)
        if self.job.on_error == "stop" and not row.expected:
            where = f"{session.name}: row {row.number}"
            raise StreamError(f"{where}: {row.why} ({_remedies(row, session.is_new)})")
        self.display.refused(row)

    def _check_some_rows(self, session: Session) -> None:
        scores, first = session.scores, self._first_refused
        if scores.rows == 0 and not self.stopped():
            raise StreamError(f"{session.name} has no rows")
        if first is not None and scores.rows == scores.bad:
            raise StreamError(
                f"{session.name}: all {scores.bad:,} rows were skipped; row {first.number}: "
                f"{first.why}"
            )

    def _end(self, session: Session, saved: bool, broken: bool) -> None:
        job, history = self.job, session.history()
        if saved:
            history.summary["saved"] = str(job.save)
        elif job.save is not None:
            history.summary["not saved"] = "nothing was learned"
        if self._pacer is not None:
            history.summary["paced"] = self._pacer.remark()
        if job.settings.durable is not None:
            history.summary["durable folder"] = str(job.settings.durable)
        if job.report is not None:
            history.run = {"date": self._began.strftime("%Y-%m-%d %H:%M %Z").strip()}
            history.run |= {"version": f"boundary-forest {__version__}"}
            history.run |= {} if job.command is None else {"command": job.command}
            with naming_file(job.report):
                write_report(job.report, history)
            history.summary["report"] = str(job.report)
        if self.stopped():
            history.summary["stopped"] = f"after row {session.consumed:,}"
        if not broken:
            with suppress(BrokenPipeError):
                self.display.end(history)


def _remedies(row: Refused, is_new: bool) -> str:
    """Return the options with which a session goes on at such a row."""
    remedies = ["--on-error skip"]
    if row.problem is not None and is_new:  # what an existing model does is not changed any more
        if row.problem.missing:
            remedies = ["--missing mean", "--missing drop", *remedies]
        elif row.problem.misfit:
            remedies.append(f"--categories {shlex.quote(row.problem.column)}")
    text = f"use {' or '.join(remedies)}"
    if row.missing and not is_new:
        text += "; only a model created with --missing mean predicts such rows"
    return text


def run(job: Job) -> int:
    """Do the job, and return the exit code."""
    console = console_on(sys.stderr if job.predictions == "-" else sys.stdout)
    gc.freeze()  # what was imported stays: no row should wait for its garbage collection
    try:
        with stoppable() as stopped:
            display = Display(console, as_json=job.as_json, quiet=job.quiet)
            return Run(job, display, stopped).go()
    finally:
        gc.unfreeze()
