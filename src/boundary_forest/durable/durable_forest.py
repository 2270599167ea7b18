"""A forest, its last snapshot, and the journal of what it has learned since.

A call is written down first and learned then, so that a full disk is found before anything has
changed. Learning is deterministic: the snapshot and the operations after it give the same forest.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from boundary_forest.durable.database import Database
from boundary_forest.durable.interruptible_blocks import BlockPace, interruptible
from boundary_forest.durable.interrupts import Interrupts
from boundary_forest.durable.journal import Journal
from boundary_forest.durable.locking import FolderLock
from boundary_forest.durable.packing import packed_parts
from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.batch import LearningBatch
from boundary_forest.estimators.checking import n_threads
from boundary_forest.estimators.errors import JournalError, callers_level
from boundary_forest.estimators.ids import forget_examples
from boundary_forest.estimators.progress import shown_erasing
from boundary_forest.files import save_forest, write_model
from boundary_forest.files.saving import contents_of

SNAPSHOT = "model.bf"
JOURNAL = "journal.sqlite"
RECORD = "durable"  # the snapshot's attachment that says where in the journal it belongs


class DurableForest:
    """A forest whose learning survives crashes; returned by :func:`open_durable`.

    It has the methods of its estimator, except ``fit``, which would discard what was learned. A
    method that learns returns when its rows are on disk. Ctrl-C interrupts it between two blocks of
    rows: those learned until then are kept, and the forest can still be used.

    Attributes
    ----------
    model : estimator
        The forest itself, for queries of any kind; learn through the durable forest only.
    path : Path
        The folder.
    attachments : dict of str to JSON
        JSON documents that are saved with every snapshot and restored when the folder is opened.
    note : str or None
        Any text, such as how far a source has been read. It is written to disk atomically
        with every call that learns while it is set; when the folder is opened again, it is the one
        of the last call that was learned whole. ``keep_note`` writes it by itself.
    along : callable or None
        Called without arguments inside the transaction that writes a learning call to the journal:
        what it writes to other tables of ``database`` is on the disk with the call, or neither is.
    recorded : callable or None
        Called without arguments when a learning call is in the journal, before it is learned.
    syncs : bool
        Whether calls that learn return once they are on the disk. A caller that sets it to False
        must call ``database.sync()`` before it relies on them, and may learn more meanwhile.
    taken_back : str or None
        The note of the call that was taken back when the folder was opened with ``redo=True``.
    """

    def __init__(
        self,
        path: Path,
        model: BaseBoundaryForest,
        journal: Journal,
        lock: FolderLock,
        *,
        attachments: dict[str, Any],
        snapshot_rows: int | None,
        snapshot_bytes: int | None,
        interruptible: bool,
        taken_back: str | None = None,
    ) -> None:
        self.path = path
        self.model = model
        self.attachments = attachments
        self.note = journal.note
        self.along: Callable[[], None] | None = None
        self.recorded: Callable[[], None] | None = None
        self.syncs = True
        self.taken_back = taken_back
        self._journal = journal
        self._lock = lock
        self._snapshot_rows = snapshot_rows
        self._snapshot_bytes = snapshot_bytes
        self._interruptible = interruptible  # whether learning may be interrupted at any moment
        self._pace = BlockPace()
        # One snapshot at a time. Taken after the model's own lock, which whoever learns, forgets or
        # closes holds, and which a snapshot holds until all that it saves is captured.
        self._saving = threading.RLock()
        self._closed = False
        self._unsettled = False  # the journal may have more than was learned
        self._unwritten = False  # it may lack that what was forgotten was erased
        self._is_ahead = False  # what was forgotten is still in the folder
        model.record_with(self)

    @property
    def examples_seen(self) -> int:
        """How many examples were learned."""
        return self.model.examples_seen

    @property
    def journal_bytes(self) -> int:
        """Bytes of examples in the journal since the last snapshot."""
        return self._journal.n_bytes

    @property
    def database(self) -> Database:
        """The journal's database, in which a caller may keep tables of its own."""
        return self._journal.database

    def partial_fit(self, X: Any, y: Any = None, **more: Any) -> Self:
        """Continue learning like the estimator's ``partial_fit``; return when it is on disk.

        Parameters
        ----------
        X, y, **more
            As for the estimator.

        Returns
        -------
        self : DurableForest
        """
        self._call_model("partial_fit", X, y, **more)
        return self

    def predict_then_learn(self, X: Any, y: Any, **more: Any) -> Any:
        """Predict and learn like the estimator's method; return when it is on disk.

        Parameters
        ----------
        X, y, **more
            As for the estimator.

        Returns
        -------
        answers : ndarray of the shape of y
            With ``return_ends=True``, a tuple of them and ``ends``, as for the estimator.
        """
        return self._call_model("predict_then_learn", X, y, **more)

    def predict_proba_then_learn(self, X: Any, y: Any, **more: Any) -> Any:
        """Predict and learn like the estimator's method; return when it is on disk.

        Parameters
        ----------
        X, y, **more
            As for the estimator.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
            With ``return_ends=True``, a tuple of them and ``ends``, as for the estimator.
        """
        return self._call_model("predict_proba_then_learn", X, y, **more)

    def _call_model(self, method: str, X: Any, y: Any, **more: Any) -> Any:
        with self.model.learning_paused():
            result = getattr(self._opened(), method)(X, y, **more)
        self._snapshot_if_due()
        return result

    def upsert(self, X: Any, ids: Any) -> Self:
        """Replace vectors like the estimator's ``upsert``; return when it is on disk.

        What was replaced stays in the folder's files until the next snapshot.

        Parameters
        ----------
        X, ids
            As for the estimator.

        Returns
        -------
        self : DurableForest
        """
        self._call_model("upsert", X, ids)
        return self

    def forget(self, ids: Any) -> Self:
        """Forget examples like the estimator's ``forget``; return when they are gone from disk.

        A snapshot without them takes the place of the last one, and the journal is emptied, so that
        neither file has a byte of their rows. If that fails, the folder has not forgotten, and is
        closed: open it again, and repeat the request.

        Parameters
        ----------
        ids : array-like of int or str
            As they were given to ``partial_fit``.

        Returns
        -------
        self : DurableForest
        """
        with Interrupts(), self.model.learning_paused():
            model = self._opened()
            with self._saving:
                with model.changing():
                    threads = n_threads(model.n_jobs)
                    with shown_erasing(model):
                        model.fitted = forget_examples(model.fitted, ids, threads, erase=True)
                self._is_ahead = True
                try:
                    self._write_snapshot(self._captured())
                except BaseException as error:
                    self.close()
                    error.add_note(
                        f"{self.path} was closed before it forgot the examples: open it again, and "
                        "call forget() again"
                    )
                    raise
                self._is_ahead = False
        return self

    def keep_note(self) -> None:
        """Write the note to disk without learning anything."""
        with self.model.learning_paused():
            self._opened()
            if self.note is not None:
                self._journal.keep_note(self.note)

    def fit(self, X: Any, y: Any = None, **more: Any) -> None:
        """Refuse: it would discard what was learned.

        Parameters
        ----------
        X, y, **more
            Not used.
        """
        raise TypeError(
            "fit() would discard what this durable forest has learned: use partial_fit(), or "
            "open another folder"
        )

    def save(
        self, path: str | os.PathLike[str], *, attachments: Mapping[str, Any] | None = None
    ) -> None:
        """Save the forest and its attachments to a file outside the folder.

        Parameters
        ----------
        path : str or path-like
            The file; the folder's own snapshot is saved by ``snapshot``.
        attachments : dict of JSON values or None, default=None
            Further documents, or others of the same name.
        """
        save_forest(self.model, path, {**self.attachments, **(attachments or {})})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "model" not in self.__dict__:
            raise AttributeError(f"a durable forest has no attribute {name!r}")
        return getattr(self.model, name)

    # What an index has of a container; other forests are none, as their own errors say.

    def __len__(self) -> int:
        return len(self.model)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, id: object) -> bool:
        return id in self.model

    def __iter__(self) -> Iterator[Any]:
        return iter(self.model)

    def __dir__(self) -> list[str]:
        of_model = (name for name in dir(self.model) if not name.startswith("_"))
        return sorted({*super().__dir__(), *of_model})

    def __reduce__(self) -> Any:
        raise TypeError(
            f"a durable forest cannot be pickled or copied, because {self.path} is open here: "
            "pickle or copy its model instead, or call save()"
        )

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        seen = f"{self.examples_seen:,} examples seen"
        return f"<DurableForest of {self.model!r} in {str(self.path)!r}, {seen}{closed}>"

    def snapshot(self) -> None:
        """Save the forest, and empty the journal."""
        with ExitStack() as saving:
            with self.model.learning_paused():
                self._opened()
                # An older snapshot must not take the place of a newer one.
                saving.enter_context(self._saving)
                captured = self._captured()
            self._write_snapshot(captured)

    def _captured(self) -> tuple[int, Any]:
        """Return the last operation, and what a snapshot has that includes it."""
        model = self._opened()
        with model.changing():  # first, because it is an operation of its own
            model.erase_forgotten()
        last = self._journal.last
        record = {"operation": last, "journal": self._journal.identity}
        return last, contents_of(model, {**self.attachments, RECORD: record})

    def _write_snapshot(self, captured: tuple[int, Any]) -> None:
        last, contents = captured
        write_model(self.path / SNAPSHOT, *contents)
        self._journal.drop_until(last)

    def close(self) -> None:
        """Close the folder, so that others can open it; everything learned is kept."""
        if self._journal.is_inherited:  # and so may be the locks, held by threads that are not here
            return
        with Interrupts(), self.model.learning_paused(), self._saving:
            if not self._closed:
                with suppress(JournalError):  # else the call that was cut short is learned whole
                    self._settle()
            self._closed = True
            self._journal.close()
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> BaseBoundaryForest:
        if self._closed:
            raise JournalError(f"{self.path} was closed: open it again with open_durable")
        if self._journal.is_inherited:
            raise JournalError(
                f"{self.path} is open in the parent process: learn there, or close it there and "
                "open it here"
            )
        try:
            self._settle()
        except JournalError as error:
            raise JournalError(
                f"{self.path}: a call was learned only in part, and the journal could not record "
                f"this ({error}): close the forest and open it again"
            ) from error
        return self.model

    def _settle(self) -> None:
        """Write down how much of the last call was learned, and what was erased, if that is due."""
        if self._unsettled:
            self._journal.truncate(self.examples_seen)
            self._unsettled = False
        if self._unwritten:
            self._journal.append_erasure(self.examples_seen)
            self._unwritten = False

    def _snapshot_if_due(self) -> None:
        journal = self._journal
        too_many = self._snapshot_rows is not None and journal.n_rows >= self._snapshot_rows
        too_long = self._snapshot_bytes is not None and journal.n_bytes >= self._snapshot_bytes
        if not (too_many or too_long):
            return
        try:
            self.snapshot()
        except Exception as error:  # what was learned is safe all the same, so it must not fail
            if self._closed:  # by another thread, just now
                return
            warnings.warn(
                f"could not save a snapshot ({error}); nothing is lost, and it will be retried "
                "after the next batch",
                RuntimeWarning,
                stacklevel=callers_level(),
            )

    # Called by the estimator

    @contextmanager
    def recording(self, batch: LearningBatch) -> Iterator[Iterable[LearningBatch]]:
        """Return a context inside which a batch is learned, after it was written down.

        Parameters
        ----------
        batch : LearningBatch
            What a call was given, checked.
        """
        with Interrupts() as interrupts:
            try:
                self._opened()
                self._unsettled = True
                parts = interruptible(packed_parts(batch), interrupts)
                self._journal.append(
                    batch.first,
                    parts,
                    self.note,
                    replaces=batch.replaces,
                    along=self.along,
                    synced=self.syncs,
                )
                if self.recorded is not None:
                    self.recorded()
                if self._interruptible:
                    interrupts.release()
                    yield [batch]
                    interrupts.hold()
                else:
                    yield self._pace.blocks(batch, interrupts)
                self._unsettled = self.examples_seen != batch.first + len(batch)
            except BaseException as error:
                interrupts.hold()
                self._settle()
                learned = self.examples_seen - batch.first
                if learned > 0:
                    error.add_note(f"{learned:,} of {len(batch):,} examples were learned")
                raise

    def erased(self) -> None:
        """Write down that what was forgotten was erased; if that fails, before more is learned."""
        if self._closed or self._is_ahead or self._journal.is_inherited:
            return
        self._unwritten = True
        with suppress(JournalError):
            self._settle()
