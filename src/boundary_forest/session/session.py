"""A session: rows in, events out, and a forest that has learned them.

It knows no terminal, no signal and no file format: the command line is one shell around it, which
reads a source and shows the events, and a web service would be another. What to do is in its
:class:`Settings`, when to stop is a function of the shell's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from boundary_forest.durable import DurableForest
from boundary_forest.estimators.turnover import turnover_in
from boundary_forest.frames.columns import CLASSIFY
from boundary_forest.frames.describing import describe
from boundary_forest.frames.dialect import PLAIN, Dialect
from boundary_forest.frames.model import FrameModel
from boundary_forest.frames.naming import listed
from boundary_forest.frames.values import as_table
from boundary_forest.session.events import Answered, Decided, Event, Refused
from boundary_forest.session.learning import Learner
from boundary_forest.session.opening import open_model
from boundary_forest.session.pace import Pace, peak_memory
from boundary_forest.session.problems import StreamError
from boundary_forest.session.progress import History, Snapshot
from boundary_forest.session.recording import Recorder
from boundary_forest.session.retracing import Retraced
from boundary_forest.session.scores import Scores
from boundary_forest.session.settings import WARMUP, Settings
from boundary_forest.session.sources.batches import Batch


def _never() -> bool:
    return False


class Session:
    """Answer rows, learn them, and keep what was learned.

    The model comes from the settings' file or durable folder, or is created from the first rows.
    It is to be used by one thread at a time.

    Parameters
    ----------
    settings : Settings
        What to do.
    name : str
        What the rows' source is called in snapshots.
    stopped : callable
        Called between two events; true ends :meth:`take`.
    recording : bool
        Whether to gather what a report needs; see :meth:`history`.
    delivered : callable or None
        For a durable session, called before it learns more: brings what was made of the events so
        far to the disk, and returns what should be recorded about it, a dict of int or None. A
        session that is resumed has the last of these as ``answers``.

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
        What ``delivered`` returned when the last event before those rows had been taken; None if
        nothing was delivered.

    Examples
    --------
    >>> from boundary_forest.session import Session, Settings
    >>> with Session(Settings(target="kind", warmup=2)) as session:
    ...     for row in [{"size": 1, "kind": "a"}, {"size": 9, "kind": "b"}, {"size": 8}]:
    ...         events = session.take_rows([row])
    >>> events[0].answers.tolist()
    ['b']
    """

    def __init__(
        self,
        settings: Settings,
        *,
        name: str = "rows",
        stopped: Callable[[], bool] = _never,
        recording: bool = False,
        delivered: Callable[[], dict[str, int] | None] | None = None,
    ) -> None:
        self.settings = settings
        self.name = name
        self.total_rows: int | None = None  # of the source, if that is known
        self.about_rows: int | None = None  # an estimate, if it is not
        self.choices: tuple[str, ...] = ()
        self.delivered = delivered
        self._stopped = stopped
        self._recorder = Recorder() if recording else None
        self._learner: Learner | None = None
        opened = open_model(settings)
        self._opened, self._progress, self._lock = opened.model, opened.progress, opened.lock
        if self._opened is not None:
            self._opened.columns = replace(self._opened.columns, dialect=self.dialect)
        self.resumed = self._progress.consumed
        self.answers = self._progress.answers
        self._retraced = Retraced(self._progress) if self.resumed else None
        self._taken = True  # whether the last event was made, and taken by whoever iterates
        self._rows_before = self.scores.rows
        self._pace = Pace(self._rows_before)

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
        return self._progress.scores

    @property
    def consumed(self) -> int:
        """The number of the last row that was used up."""
        return self._progress.consumed

    @property
    def target(self) -> str | None:
        """The column to predict, if it is known."""
        columns = None if self.model is None else self.model.columns
        return self.settings.target or (None if columns is None else columns.target)

    @property
    def id_column(self) -> str | None:
        """The column that identifies rows."""
        return self._ready().options.id

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

    def snapshot(self) -> Snapshot:
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
        return Snapshot(
            source=self.name,
            task=learner.task,
            predicting=self.settings.predicting,
            rows=scores.rows,
            total_rows=self.total_rows,
            about_rows=self.about_rows,
            learned=scores.learned,
            unlabelled=scores.unlabelled,
            bad=scores.bad,
            unseen_categories=scores.unseen,
            **self._pace.at(scores.rows),
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

    def begin(self, names: list[str] | None = None, *, default_target: str | None = None) -> None:
        """Check the settings against the columns of a source before its first row.

        The first rows call it if nobody did.

        Parameters
        ----------
        names : list of str or None
            The columns; None if each row may have others.
        default_target : str or None
            The column to predict if neither the settings nor the model names one.
        """
        settings, model = self.settings, self.model
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
        self._learner = Learner(
            options,
            settings.forest_parameters(),
            warmup=settings.warmup or WARMUP,
            model=model,
            progress=self._progress,
            lock=self._lock,
            predicting=settings.predicting,
            learning=settings.learning,
            delivered=lambda: self.answers if self.delivered is None else self.delivered(),
            recorded=self._recorder is not None,
            cluster=settings.cluster,
        )

    def take(self, batch: Batch) -> Iterator[Event]:
        """Answer and learn the rows of a batch, and yield what becomes of them.

        An event is yielded when its rows are learned, and on the disk if the session is durable.
        Nothing happens to a row before the event that precedes it was taken: whoever stops
        iterating stops the session there, and it can be resumed with the next row.

        Parameters
        ----------
        batch : Batch
            The rows, with their numbers in the source; those that are used up already are skipped.

        Yields
        ------
        event : Answered, Refused or Decided
        """
        if self._retraced is not None:
            self._retraced.take(self._ready(), batch, self.name)
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
        return list(self.take(Batch(table, np.arange(first, first + len(table), dtype=np.int64))))

    def finish(self) -> Iterator[Event]:
        """End the warm-up if it has not ended, and yield what becomes of its rows.

        A durable session that is stopped in its warm-up does not: it starts anew, so that columns
        are decided from as many rows as if it had not been stopped.
        """
        if self._retraced is not None and not self._stopped():
            self._retraced.finish(self.name)
        restarts = self.settings.durable is not None and not self.settings.live
        if not (restarts and self._stopped()):
            yield from self._counted(self._ready().finish())

    def _ready(self) -> Learner:
        if self._learner is None:
            self.begin()
        assert self._learner is not None
        return self._learner

    def _counted(self, events: Iterable[Event]) -> Iterator[Event]:
        """Keep scores and records of events, in time: before the next rows are learned."""
        taken, self._taken = self._taken, False  # unless an exception ends it here
        for event in events:
            if isinstance(event, Decided):
                self.choices = event.choices
            elif isinstance(event, Refused):
                self.scores.refuse(event)
            else:
                totals = self.scores.add(event)
                if self._recorder is not None:
                    self._recorder.judge(event.task, totals, self.scores.rows)
                self._record(event)
            yield event
            taken = True
            if self._stopped():
                break
        self._taken = taken

    def _record(self, event: Answered) -> None:
        if self._recorder is None:
            return
        columns = self._ready().options.feature_names(event.table.column_names)
        self._recorder.add(event, self.model, columns)
        if self.model is not None:
            self._recorder.weigh(self.model)
        if self._recorder.wants(self.scores.rows):
            self._recorder.see(self.snapshot())

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
