"""A session: rows in, events out, and a forest that has learned them.

It knows no terminal, no signal and no file format: the command line is one shell around it, which
reads a source and shows the events, and a web service would be another. What to do is in its
:class:`SessionSettings`, when to stop is a function of the shell's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from boundary_forest.durable import DurableForest
from boundary_forest.estimators.lifetime_stats import turnover_in
from boundary_forest.frames.arrow_columns import as_table
from boundary_forest.frames.column_errors import listed
from boundary_forest.frames.columns import CLASSIFY
from boundary_forest.frames.description import describe
from boundary_forest.frames.dialect import PLAIN, Dialect
from boundary_forest.frames.model import FrameModel
from boundary_forest.session.events import Answered, Decided, Event, Refused
from boundary_forest.session.history import History, Pace, SessionSnapshot, Throughput, peak_memory
from boundary_forest.session.history_recorder import HistoryRecorder
from boundary_forest.session.resume_check import ResumeCheck
from boundary_forest.session.resume_state import PredictionLog
from boundary_forest.session.scores import Scores
from boundary_forest.session.settings import WARMUP, SessionSettings
from boundary_forest.session.starting_point import open_model
from boundary_forest.session.stream_learner import StreamLearner
from boundary_forest.sources.row_batch import RowBatch, StreamError


def _never() -> bool:
    return False


class Session:
    """Answer rows, learn them, and keep what was learned.

    The model comes from the settings' file or durable folder, or is created from the first rows.
    It is to be used by one thread at a time.

    Parameters
    ----------
    settings : SessionSettings
        What to do.
    name : str
        What the rows' source is called in snapshots, unless :meth:`begin` names it.
    stopped : callable
        Called between two events, and during decisions of the warm-up; true ends :meth:`take`.
    recording : bool
        Whether to gather what a report needs; see :meth:`history`.
    pace : Pace or None
        How whoever passes the rows slows them down, to be watched; None: not.

    Attributes
    ----------
    model : FrameModel or None
        The model; None during the warm-up of a new one.
    scores : Scores
        Counts and errors so far, those of the sessions that it resumes included.
    choices : tuple of str
        What was decided about columns, one line each; empty during the warm-up.
    resumed : int
        Number of rows of the source that earlier sessions have used up; they are skipped.
    answers : dict of int, or None
        What the file of predictions (see :meth:`begin`) recorded when the last event before those
        rows had been taken; None if there was no such file.

    Examples
    --------
    >>> from boundary_forest.session import Session, SessionSettings
    >>> with Session(SessionSettings(target="kind", warmup=2)) as session:
    ...     for row in [{"size": 1, "kind": "a"}, {"size": 9, "kind": "b"}, {"size": 8}]:
    ...         events = session.take_rows([row])
    >>> events[0].answers.tolist()
    ['b']
    """

    def __init__(
        self,
        settings: SessionSettings,
        *,
        name: str = "rows",
        stopped: Callable[[], bool] = _never,
        recording: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self.settings = settings
        self.name = name
        self.choices: tuple[str, ...] = ()
        self._total_rows: int | None = None
        self._about_rows: int | None = None
        self._stopped = stopped
        self._recorder = HistoryRecorder() if recording else None
        self._learner: StreamLearner | None = None
        start = open_model(settings)
        self._opened, self._state, self._lock = start.model, start.state, start.lock
        if self._opened is not None:
            self._opened.columns = replace(self._opened.columns, dialect=self.dialect)
        self.resumed = self._state.consumed
        self.answers = self._state.answers
        self._resume_check = ResumeCheck(self._state) if self.resumed else None
        self._taken = True  # whether the last event was made, and taken by whoever iterates
        self._rows_before = self.scores.rows
        self._throughput = Throughput(self._rows_before, pace)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What there is

    @property
    def model(self) -> FrameModel | None:
        """The model; None during the warm-up of a new one."""
        return self._opened if self._learner is None else self._learner.model

    @property
    def scores(self) -> Scores:
        """Counts and errors so far."""
        return self._state.scores

    @property
    def consumed(self) -> int:
        """The number of the last row that was used up."""
        return self._state.consumed

    @property
    def target(self) -> str | None:
        """The column to predict, if it is known."""
        columns = None if self.model is None else self.model.columns
        return self.settings.target or (None if columns is None else columns.target)

    @property
    def id_column(self) -> str | None:
        """The column that identifies rows."""
        columns = None if self.model is None else self.model.columns
        return self.settings.id or (None if columns is None else columns.id)

    @property
    def dialect(self) -> Dialect:
        """How the text of the source is written, by the settings or else by the model."""
        kept = PLAIN if self._opened is None else self._opened.columns.dialect
        return self.settings.dialect.over(kept)

    @property
    def is_new(self) -> bool:
        """Whether the model is made from these rows, and not an existing one."""
        return self._opened is None

    @property
    def is_resumed(self) -> bool:
        """Whether earlier sessions have answered rows."""
        return self._rows_before > 0

    def snapshot(self) -> SessionSnapshot:
        """Return the figures at this moment."""
        learner, scores, model = self._ready(), self.scores, self.model
        measures: dict[str, Any] = scores.measures(learner.task)
        stored, nodes, size, turnover = learner.waiting, [], 0, None
        if model is not None and model.forest.examples_seen:
            stats = model.stats()
            stored, nodes = stats["examples_stored"], stats["nodes_per_tree"]
            size = stats["bytes"]["total"]
            turnover = turnover_in(model.forest.fitted)
        planted = any(nodes)
        return SessionSnapshot(
            source=self.name,
            task=learner.task,
            predicting=self.settings.predicting,
            rows=scores.rows,
            total_rows=self._total_rows,
            about_rows=self._about_rows,
            learned=scores.learned,
            unlabelled=scores.unlabelled,
            bad=scores.bad,
            unseen_categories=scores.unseen,
            **self._throughput.at(scores.rows),
            **measures,
            stored=stored,
            trees=len(nodes) if planted else 0,
            nodes_per_tree=sum(nodes) / len(nodes) if planted else 0.0,
            forest_bytes=size,
            memory_bytes=peak_memory(),
            choices=self.choices,
            turnover=turnover,
        )

    def history(self) -> History:
        """Return what a report is made from; without ``recording``, the last figures alone."""
        model, last = self.model, self.snapshot()
        forest = None if model is None else model.forest
        if self._recorder is None:
            history = History(snapshots=[last])
        else:
            history = self._recorder.history(forest, last)
            if model is not None:
                history.importances = self._recorder.importances(model)
        if last.task == CLASSIFY:
            history.by_class = self.scores.classes.by_class()
            history.reliability = self.scores.calibration.reliability()
        if forest is not None:
            parameters = sorted(forest.get_params().items())
            history.parameters = {name: value for name, value in parameters if value is not None}
        return history

    # Rows

    def begin(
        self,
        names: list[str] | None = None,
        *,
        name: str | None = None,
        total_rows: int | None = None,
        about_rows: int | None = None,
        default_target: str | None = None,
        predictions: PredictionLog | None = None,
    ) -> None:
        """Describe the source before its first row; check the settings against its columns.

        The first rows call it if nobody did.

        Parameters
        ----------
        names : list of str or None
            The columns; None if each row may have others.
        name : str or None
            What the source is called in snapshots.
        total_rows, about_rows : int or None
            Its number of rows if that is known, and an estimate if it is not.
        default_target : str or None
            The column to predict if neither the settings nor the model names one.
        predictions : PredictionLog or None
            The file that predictions are written to: a durable session brings it to the disk before
            it learns more.
        """
        settings, model = self.settings, self.model
        self.name = name or self.name
        self._total_rows, self._about_rows = total_rows, about_rows
        target = self.target or default_target
        if target is None:
            hint = f"; the columns are {listed(names)}" if names else ""
            raise StreamError(f"target (the column to predict) is required{hint}")
        if model is None:
            options = settings.options(target)
        else:
            options = settings.options_for(model.columns)
            self.choices = describe(model.columns)
        if names is not None:
            options.check(names if settings.learning else [*names, target])
            if not options.feature_names(names):
                raise StreamError(
                    f"no column is left to predict {target!r} from: all others are dropped"
                )
        self._learner = StreamLearner(
            options,
            settings.forest_parameters(),
            warmup=settings.warmup or WARMUP,
            model=model,
            state=self._state,
            lock=self._lock,
            predicting=settings.predicting,
            learning=settings.learning,
            predictions=predictions,
            recorded=self._recorder is not None,
            cluster=settings.cluster,
            stopped=self._stopped,
        )

    def take(self, batch: RowBatch) -> Iterator[Event]:
        """Answer and learn the rows of a batch, and yield what becomes of them.

        An event is yielded when its rows are learned, and on the disk if the session is durable.
        Nothing happens to a row before the event that precedes it was taken: whoever stops
        iterating stops the session there, and it can be resumed with the next row.

        Parameters
        ----------
        batch : RowBatch
            The rows, with their numbers in the source; those that are used up already are skipped.

        Yields
        ------
        event : Answered, Refused or Decided
        """
        if self._resume_check is not None:
            self._resume_check.take(self._ready(), batch, self.name)
        yield from self._counted(self._ready().take(batch.from_row(self.resumed + 1)))

    def take_rows(self, rows: Any) -> list[Event]:
        """Answer and learn rows that come from no source, and return what became of them.

        Parameters
        ----------
        rows : frame
            A frame of pandas, polars or pyarrow, or a list of dicts. They are numbered in turn.

        Returns
        -------
        events : list of Answered, Refused and Decided
        """
        table = as_table(rows)
        first = self.consumed + 1
        return list(
            self.take(RowBatch(table, np.arange(first, first + len(table), dtype=np.int64)))
        )

    def finish(self) -> Iterator[Event]:
        """End the warm-up if it has not ended, and yield what becomes of its rows.

        A durable session that is stopped in its warm-up does not: it starts again, so that columns
        are decided from as many rows as if it had not been stopped.
        """
        if self._resume_check is not None and not self._stopped():
            self._resume_check.finish(self.name)
        restarts = self.settings.durable is not None and not self.settings.live
        if not (restarts and self._stopped()):
            yield from self._counted(self._ready().finish(), whole=True)

    def _ready(self) -> StreamLearner:
        if self._learner is None:
            self.begin()
        assert self._learner is not None
        return self._learner

    def _counted(self, events: Iterable[Event], *, whole: bool = False) -> Iterator[Event]:
        """Keep scores and records of events, in time: before the next rows are learned.

        A signal to stop ends it, unless the events belong to one decision, as a ``whole``.
        """
        taken, self._taken = self._taken, False  # unless an exception ends it here
        for event in events:
            if isinstance(event, Decided):
                self.choices = event.choices
            elif isinstance(event, Refused):
                self.scores.refuse(event)
            else:
                totals = self.scores.add(event, learning=self.settings.learning)
                if self._recorder is not None:
                    self._recorder.add_quality(event.task, totals, self.scores.rows)
                self._record(event)
            yield event
            taken = True
            if self._stopped() and not whole:
                break
        self._taken = taken

    def _record(self, event: Answered) -> None:
        if self._recorder is None:
            return
        columns = self._ready().options.feature_names(event.table.column_names)
        self._recorder.add(event, self.model, columns)
        if self.model is not None:
            self._recorder.add_importances(self.model)
        if self._recorder.snapshot_due(self.scores.rows):
            self._recorder.add_snapshot(self.snapshot())

    # What is kept

    def checkpoint(self) -> None:
        """Save a durable session's model and how far the source is used; others do nothing.

        What was learned is safe without it; resuming takes longer. Nothing is saved if an exception
        came in the way of the last event: what it is about comes again when it is resumed.
        """
        if self._taken:
            self._ready().checkpoint()

    def save(self, path: str | os.PathLike[str]) -> bool:
        """Save the model to a file; return False if there is none yet."""
        if self.model is None:
            return False
        self.model.save(path)
        return True

    def close(self) -> None:
        """Let others open the durable folder, if there is one."""
        if self.model is not None and isinstance(self.model.forest, DurableForest):
            self.model.forest.close()
        if self._lock is not None:
            self._lock.release()
