"""The shell around a session: a source into it, events out to files, a report and the terminal."""

from __future__ import annotations

import gc
import os
import shlex
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from rich.console import Console

from boundary_forest import __version__
from boundary_forest.cli.answers import AnswerFile, naming
from boundary_forest.cli.display import Display
from boundary_forest.cli.pacing import Pacer
from boundary_forest.cli.stopping import Stopping
from boundary_forest.session import Decided, Event, Refused, Session, Settings
from boundary_forest.session.problems import StreamError
from boundary_forest.session.report import write_report
from boundary_forest.session.sources import Source, default_target, open_source
from boundary_forest.session.sources.sizing import about_lines


@dataclass(frozen=True)
class Job:
    """What a command is to do.

    Parameters
    ----------
    source : str
        Where rows come from.
    settings : Settings
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
        Whether only problems are reported.
    command : str or None
        The command line, for the report.
    rows_per_s : float or None
        The pace, for those who watch; None: as fast as it goes.
    """

    source: str
    settings: Settings
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
        if self.save is not None and self.save.resolve() == Path(self.source).resolve():
            raise StreamError(f"--save {self.save}: this file is the source")


class Run:
    """A run of a job: :meth:`go` does all of it, and returns the exit code."""

    def __init__(self, job: Job, display: Display, stopped: Stopping) -> None:
        self.job = job
        self.display = display
        self.stopped = stopped
        self._began = datetime.now().astimezone()
        self._pacer = None if job.rows_per_s is None else Pacer(job.rows_per_s, stopped)
        self._first_refused: Refused | None = None
        self._answers: AnswerFile | None = None

    def go(self) -> int:
        """Read, answer, learn, save and report."""
        self.job.check()
        recording = self.job.report is not None
        with ExitStack() as stack:
            session = stack.enter_context(
                Session(self.job.settings, stopped=self.stopped, recording=recording)
            )
            source = self._open_source(session)
            broken = False
            try:
                try:
                    with self.display:
                        self._answers = self._answer_file(session, stack)
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
        job = self.job
        source = open_source(
            job.source,
            job.format,
            target=session.target,
            dialect=session.dialect,
            stopped=self.stopped,
        )
        session.name, session.total_rows = source.name, source.total_rows
        if source.total_rows is None and not source.is_pipe:
            session.about_rows = about_lines(job.source)
        session.begin(source.names, default_target=default_target(source.format))
        if session.model is not None:
            features = session.model.columns.features
            source.expect_numbers([f.name for f in features if f.kind == "number"])
        return source

    def _answer_file(self, session: Session, stack: ExitStack) -> AnswerFile | None:
        path = self.job.predictions
        if path is None:
            session.delivered = lambda: None
            return None
        after = None
        if session.is_resumed:
            after = sys.maxsize if self.job.settings.live else session.resumed
        answers = stack.enter_context(
            AnswerFile(
                path,
                id_column=session.id_column,
                probabilities=self.job.probabilities,
                after=after,
                kept=session.answers,
            )
        )
        session.delivered = answers.delivered
        return answers

    def _read(self, session: Session, source: Source) -> None:
        batch = None
        batches = source.batches
        for batch in batches if self._pacer is None else self._pacer.parts_of(batches):
            self._handle_all(session, session.take(batch))
            if self.stopped():
                break
        if batch is None and session.resumed and not self.stopped():
            raise StreamError(f"{session.name} has no rows, so the run cannot be resumed")
        self._handle_all(session, session.finish())

    def _handle_all(self, session: Session, events: Iterable[Event]) -> None:
        for event in events:
            self._handle(session, event)

    def _handle(self, session: Session, event: Event) -> None:
        if isinstance(event, Decided):
            self.display.decided(event)
        elif isinstance(event, Refused):
            self._refuse(session, event)
        else:
            if self._answers is not None:
                self._answers.add(event)
            if self.display.wants():
                self.display.update(session.snapshot())

    def _refuse(self, session: Session, row: Refused) -> None:
        self._first_refused = self._first_refused or row
        if self._answers is not None:
            self._answers.refuse(row)
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
            with naming(job.report):
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
    stream = sys.stderr if job.predictions == "-" else sys.stdout
    # Elsewhere lines are as long as they need to be, so that other programs can read them.
    width = None if stream.isatty() else 400
    console = Console(file=stream, width=width, force_terminal=stream.isatty(), highlight=False)
    pa.enable_signal_handlers(False)  # else its readers take a signal for an error of their own
    gc.freeze()  # what was imported stays: no row should wait for its garbage collection
    try:
        with Stopping() as stopped:
            display = Display(console, as_json=job.as_json, quiet=job.quiet)
            return Run(job, display, stopped).go()
    finally:
        gc.unfreeze()
        pa.enable_signal_handlers(True)


def discard_output() -> None:
    """Discard what is still buffered for a reader that has gone, so that Python can end."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
