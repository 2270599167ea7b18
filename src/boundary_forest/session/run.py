"""One run of a stream, from its options to its summary."""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import Any

from rich.console import Console

from boundary_forest.cli.showing import Display
from boundary_forest.cli.stopping import Stopping
from boundary_forest.durable import DurableForest, open_durable
from boundary_forest.durable.learner import SNAPSHOT
from boundary_forest.files.loading import load
from boundary_forest.frames.choosing import told
from boundary_forest.frames.model import FrameModel
from boundary_forest.session.answers import AnswerFile
from boundary_forest.session.asking import is_taught
from boundary_forest.session.batches import Source
from boundary_forest.session.events import Answered, Decided, Event, Refused
from boundary_forest.session.learning import Learner
from boundary_forest.session.problems import StreamError
from boundary_forest.session.progress import Snapshot
from boundary_forest.session.recording import Recorder
from boundary_forest.session.report import write_report
from boundary_forest.session.scores import Scores
from boundary_forest.session.settings import WARMUP, Settings
from boundary_forest.session.sources import default_target, open_source

LATELY_SECONDS = 3.0  # over which recent rows a second are taken


class Run:
    """A run: :meth:`go` does all of it, and gives the exit code."""

    def __init__(self, settings: Settings, display: Display, stopped: Stopping) -> None:
        self.settings = settings
        self.display = display
        self.stopped = stopped
        self.scores = Scores()
        self.choices: tuple[str, ...] = ()
        self.resumed = 0  # rows of the source that earlier runs have used up
        self._rows_before = 0  # rows that they have counted
        self._start = time.monotonic()
        self._marks: deque[tuple[float, int]] = deque([(self._start, 0)])
        self._first_refused: Refused | None = None
        self._recorder = Recorder()
        self._answers: AnswerFile | None = None

    def go(self) -> int:
        """Read, answer, learn, save and tell."""
        self.settings.check()
        with ExitStack() as stack:
            model = self._model_to_go_on_with()
            if model is not None and isinstance(model.forest, DurableForest):
                stack.callback(model.forest.close)
            self._open_source(model)
            broken = False
            try:
                try:
                    with self.display:
                        self._answers = self._answer_file(stack)
                        self._read()
                except BrokenPipeError:  # nobody reads any more: end as if the stream had
                    broken = True
                    _discard_output()
                    self._finish()
            finally:
                self._close(stack)
            self._check_some_rows()
            self._end(broken)
        if self.stopped.signal is not None:
            return 128 + self.stopped.signal
        return 0

    # Beginning

    def _model_to_go_on_with(self) -> FrameModel | None:
        settings = self.settings
        folder = settings.durable
        if folder is not None and (folder / SNAPSHOT).exists():
            return self._resume(open_durable(folder, redo=not settings.live))
        if settings.load is None:
            return None
        model = load(settings.load)
        if not isinstance(model, FrameModel):
            raise StreamError(
                f"{settings.load} holds a {type(model).__name__} that takes no raw rows: it was "
                "not saved by boundary-forest stream or fit"
            )
        settings.check_parameters(model.forest, str(settings.load))
        if settings.threads is not None:
            model.forest.set_params(n_jobs=settings.threads)
        if folder is not None:
            note = self._note(0)
            forest = open_durable(folder, model.forest, note=note, attachments=model.attachments)
            return FrameModel(forest, model.columns)
        return model

    def _resume(self, forest: DurableForest) -> FrameModel:
        if "frame" not in forest.attachments:
            forest.close()
            raise StreamError(f"{forest.path} holds a forest that takes no raw rows")
        self.settings.check_parameters(forest.model, str(forest.path))
        forest.model.set_params(n_jobs=self.settings.threads)
        # The answers to what was learned last may not have been told: it is answered once more.
        kept = json.loads(forest.taken_back)["before"] if forest.taken_back else None
        if kept is None and forest.note is not None:
            kept = json.loads(forest.note)
        if kept is not None:
            self.scores = Scores.from_json(kept["scores"])
            self.resumed = 0 if self.settings.live else int(kept["consumed"])
        self._rows_before = self.scores.rows
        self._marks[0] = (self._start, self._rows_before)
        return FrameModel.of_forest(forest, forest.attachments)

    def _open_source(self, model: FrameModel | None) -> None:
        settings = self.settings
        columns = None if model is None else model.columns
        target = settings.target or (None if columns is None else columns.target)
        self.source: Source = open_source(
            settings.source, settings.format, target=target, stopped=self.stopped
        )
        target = target or default_target(self.source.format)
        if target is None:
            there = ", ".join((self.source.names or [])[:20])
            hint = f"; there are {there}" if there else ""
            raise StreamError(f"--target is needed, the column to be answered{hint}")
        if columns is None:
            wishes = settings.wishes(target)
        else:
            where = str(settings.durable or settings.load)
            wishes = settings.wishes_for(columns, where)
            self.choices = told(columns)
            self._expect_numbers(columns)
        if self.source.names is not None:
            names = self.source.names
            wishes.check(names if settings.teaching else [*names, target])
            if not wishes.feature_names(names):
                raise StreamError(f"there is no column to answer {target!r} from: all are left out")
        self.learner = Learner(
            wishes,
            settings.forest_parameters(),
            warmup=settings.warmup or WARMUP,
            model=model,
            durable=settings.durable,
            answering=settings.answering,
            teaching=settings.teaching,
        )
        self.learner.consumed = self.resumed
        self.learner.note = lambda n, before: self._note(self.learner.consumed, n, before)

    def _answer_file(self, stack: ExitStack) -> AnswerFile | None:
        path = self.settings.predictions
        if path is None:
            return None
        id_column = self.learner.wishes.id
        after = None
        if self._rows_before:
            after = sys.maxsize if self.settings.live else self.resumed
        return stack.enter_context(AnswerFile(path, id_column=id_column, after=after))

    # Running

    def _read(self) -> None:
        for batch in self.source.batches:
            for event in self.learner.take(batch.from_row(self.resumed + 1)):
                self._handle(event)
                if self.stopped():
                    break
            if self.stopped():
                break
        self._finish()

    def _finish(self) -> None:
        # A durable stream that is stopped in its warm-up begins anew: so it decides by as many
        # rows as if it had not been stopped.
        durable = self.settings.durable is not None and not self.settings.live
        if not (durable and self.stopped()):
            for event in self.learner.finish():
                self._handle(event)

    def _handle(self, event: Event) -> None:
        if isinstance(event, Decided):
            self.choices = event.choices
            self.display.decided(event)
        elif isinstance(event, Refused):
            self._refuse(event)
        else:
            self.scores.add(event)
            if self._answers is not None:
                self._answers.add(event)
            if self.settings.report is not None:
                model = self.learner.model
                self._recorder.add(event, None if model is None else model.forest)
        if isinstance(event, Decided) and self.learner.model is not None:
            self._expect_numbers(self.learner.model.columns)
        due = self.settings.report is not None and self._recorder.wants(self.scores.rows)
        if isinstance(event, Answered) and (due or self.display.wants()):
            snapshot = self._snapshot()
            if due:
                self._recorder.see(snapshot)
            if self.display.wants():
                self.display.update(snapshot)

    def _refuse(self, row: Refused) -> None:
        self.scores.refuse(row)
        self._first_refused = self._first_refused or row
        if self._answers is not None:
            self._answers.refuse(row)
        if self.settings.on_error == "stop" and not row.wanted:
            missing = "--missing mean or drop, or " if row.why.endswith("is missing") else ""
            where = f"{self.source.name}: row {row.number}"
            raise StreamError(f"{where}: {row.why} ({missing}--on-error skip goes on)")
        self.display.refused(row)

    def _expect_numbers(self, columns: Any) -> None:
        self.source.expect_numbers([f.name for f in columns.features if f.kind == "number"])

    def _note(self, consumed: int, n: int = 0, before: int = 0) -> str:
        """How far the source is read, once n more rows are learned; and how it was before that."""
        scores = self.scores.to_json()
        after = {**scores, "rows": scores["rows"] + n, "learned": scores["learned"] + n}
        was = {"consumed": before, "scores": scores}
        return json.dumps({"consumed": consumed, "scores": after, "before": was})

    def _snapshot(self) -> Snapshot:
        now, scores, model = time.monotonic(), self.scores, self.learner.model
        before = self._marks[0]
        self._marks.append((now, scores.rows))
        while self._marks[0][0] < now - LATELY_SECONDS and len(self._marks) > 2:
            self._marks.popleft()
        recent = (scores.rows - before[1]) / max(1e-9, now - before[0])
        seconds = max(1e-9, now - self._start)
        stored, nodes = self.learner.stored, []
        if model is not None and is_taught(model.forest):
            stats = model.stats()
            stored, nodes = stats["examples_stored"], stats["nodes_per_tree"]
        planted = any(nodes)
        return Snapshot(
            source=self.source.name,
            task=self.learner.task,
            rows=scores.rows,
            total_rows=self.source.total_rows,
            learned=scores.learned,
            unlabelled=scores.unlabelled,
            bad=scores.bad,
            unseen_categories=scores.unseen,
            seconds=seconds,
            rows_per_s=(scores.rows - self._rows_before) / seconds,
            recent_rows_per_s=recent,
            **self.scores.errors(self.learner.task),
            stored=stored,
            trees=len(nodes) if planted else 0,
            nodes_per_tree=sum(nodes) / len(nodes) if planted else 0.0,
            memory_bytes=_memory(),
            choices=self.choices,
        )

    # Ending

    def _close(self, stack: ExitStack) -> None:
        """Save what was learned, however the run has ended."""
        model = self.learner.model
        if model is None:
            return
        if isinstance(model.forest, DurableForest):
            stack.callback(model.forest.close)
            model.forest.note = self._note(self.learner.consumed)
            model.forest.keep_note()
            model.forest.snapshot()
        if self.settings.save is not None:
            model.save(self.settings.save)

    def _check_some_rows(self) -> None:
        if self.scores.rows == 0 and not self.stopped():
            raise StreamError(f"{self.source.name} has no rows")
        first = self._first_refused
        if first is not None and self.scores.rows == self.scores.bad:
            raise StreamError(
                f"{self.source.name}: all {self.scores.bad:,} rows were left out; row "
                f"{first.number}: {first.why}"
            )

    def _end(self, broken: bool) -> None:
        settings, model = self.settings, self.learner.model
        forest = None if model is None else model.forest
        last = self._snapshot()
        history = self._recorder.finish(forest, last) if settings.report else None
        history = history or self._recorder.history
        if not history.snapshots:
            history.snapshots.append(last)
        if forest is not None:
            history.parameters = _shown_parameters(forest.get_params())
        if model is None and settings.save is not None:
            history.summary["not saved"] = "nothing was learned"
        elif settings.save is not None:
            history.summary["saved"] = str(settings.save)
        if settings.durable is not None:
            history.summary["kept in"] = str(settings.durable)
        if settings.report is not None:
            write_report(settings.report, history)
            history.summary["report"] = str(settings.report)
        if self.stopped():
            history.summary["stopped"] = f"after row {self.learner.consumed:,}"
        if not broken:
            with suppress(BrokenPipeError):
                self.display.end(history)


def run(settings: Settings, *, quiet: bool = False) -> int:
    """Do what the settings say; the exit code."""
    on_stderr = settings.predictions == "-"
    stream = sys.stderr if on_stderr else sys.stdout
    # Elsewhere lines are as long as they need to be, so that other programs can read them.
    width = None if stream.isatty() else 400
    console = Console(file=stream, width=width, force_terminal=stream.isatty(), highlight=False)
    gc.freeze()  # what was imported stays: no row should wait while it is gone through
    try:
        with Stopping() as stopped:
            display = Display(console, as_json=settings.as_json, quiet=quiet)
            return Run(settings, display, stopped).go()
    finally:
        gc.unfreeze()


def _shown_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sorted(parameters.items()) if value is not None}


def _memory() -> int:
    """The most memory that the process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _discard_output() -> None:
    """What is still buffered for a reader that has gone must not fail when Python ends."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
