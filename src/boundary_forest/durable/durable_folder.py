"""Opening a durable folder: its snapshot is loaded, and what the journal has since is learned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from boundary_forest.durable.durable_forest import JOURNAL, RECORD, SNAPSHOT, DurableForest
from boundary_forest.durable.journal import Journal, Recorded
from boundary_forest.durable.locking import FolderLock, reserve
from boundary_forest.durable.operations import ERASE, REPLACE
from boundary_forest.durable.packing import unpacked
from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.errors import JournalError
from boundary_forest.files import load_forest, remove_unfinished, save_forest
from boundary_forest.files.loading import FUNCTIONS

LOG = f"{JOURNAL}-wal"  # SQLite's name for it
SNAPSHOT_BYTES = 1 << 28
_FREE = ("n_jobs", "random_state")  # may be given differently when a forest is opened again


def open_durable(
    path: str | os.PathLike[str],
    model: Any = None,
    *,
    snapshot_rows: int | None = None,
    snapshot_bytes: int | None = SNAPSHOT_BYTES,
    mmap: bool = False,
    note: str | None = None,
    attachments: dict[str, Any] | None = None,
    redo: bool = False,
    lock: FolderLock | None = None,
) -> DurableForest:
    """Open a durable forest in a folder; a new folder starts with ``model``.

    ``partial_fit`` returns when its examples are in a journal on disk. When the folder is opened
    again, the last snapshot is loaded and the batches of the journal are learned again. The result
    is the same forest, with the same fingerprint. A call that had not returned is included as a
    whole or not at all; if Ctrl-C interrupted it, its first rows may be included.

    Parameters
    ----------
    path : str or path-like
        The folder, which is created if it does not exist. Only one process at a time can open it.
    model : estimator or None, default=None
        The estimator that a new folder starts with, fitted or not; it is copied. An existing folder
        does not need it, unless it has functions, such as a metric, which must be passed again. If
        it is passed, its parameters must be those of the folder.
    snapshot_rows, snapshot_bytes : int or None, default=None and 2**28
        A snapshot is saved when the journal has this many examples, or this many bytes. None: no
        such limit. :meth:`DurableForest.snapshot` saves one at any time.
    mmap : bool, default=False
        Whether the snapshot's positions stay in its file, as for :func:`boundary_forest.load`.
    note : str or None, default=None
        The note of a new folder; an existing folder keeps its own.
    attachments : dict of str to JSON, or None, default=None
        Documents that are saved with every snapshot of a new folder. An existing folder keeps its
        own, which are the forest's ``attachments``.
    redo : bool, default=False
        Whether to undo the last call, unless a snapshot includes it. Use it if the process died
        before it had used the answers of that call, and pass the examples again; or if learning
        them ends the process, as a faulty compiled metric may.
    lock : FolderLock or None, default=None
        The lock of this folder, if :func:`boundary_forest.durable.reserve` has locked it. It is
        released when the forest is closed.

    Returns
    -------
    forest : DurableForest
        The forest, which is also a context manager.

    Raises
    ------
    JournalError
        If the journal is damaged or missing, does not belong to the snapshot, or if another process
        has it open.
    ModelFileError
        If the snapshot is damaged, or of another format.

    Examples
    --------
    >>> import tempfile
    >>> from boundary_forest import BoundaryForestClassifier, open_durable
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_durable(folder, BoundaryForestClassifier()) as forest:
    ...         forest = forest.partial_fit([[0], [9]], ["a", "b"])
    ...     with open_durable(folder) as forest:
    ...         forest.predict([[8]]).tolist()
    ['b']
    """
    for name, value in (("snapshot_rows", snapshot_rows), ("snapshot_bytes", snapshot_bytes)):
        if value is not None and not value >= 1:
            raise ValueError(f"{name} must be at least 1 or None, got {value!r}")
    if model is not None and not isinstance(model, BaseBoundaryForest):
        raise TypeError(
            f"model must be an estimator of boundary_forest, got {type(model).__name__}"
        )
    if attachments is not None and RECORD in attachments:
        raise ValueError(
            f"attachments must not contain {RECORD!r}, which is reserved for the journal"
        )
    folder = Path(path)
    if model is None and not (folder / SNAPSHOT).exists():
        raise FileNotFoundError(f"{folder} contains no forest yet: pass a model to start with")
    held = reserve(folder) if lock is None else _checked_lock(lock, folder)
    journal = None
    try:
        remove_unfinished(folder)
        if not (folder / SNAPSHOT).exists():
            journal = _begin(folder, model, note, attachments or {})
        functions = _functions(model)
        forest, kept = load_forest(folder / SNAPSHOT, mmap=mmap, **functions)
        if model is not None:
            _check_same(model, forest, folder)
        included, identity = _record(folder, kept.pop(RECORD, None))
        if journal is None:
            _check_there(folder)
            journal = Journal(folder / JOURNAL)
        if identity != journal.identity:
            raise JournalError(f"{journal.path} does not belong to {SNAPSHOT}")
        taken_back = journal.take_back_last(included) if redo else None
        journal.drop_included(included)
        for recorded in journal.after(included):
            _learn_again(forest, recorded, journal.path, with_functions=bool(functions))
        return DurableForest(
            folder,
            forest,
            journal,
            held,
            attachments=kept,
            snapshot_rows=snapshot_rows,
            snapshot_bytes=snapshot_bytes,
            # A function may take long for a row, and if it fails, all of its call is taken back.
            interruptible=bool(functions),
            taken_back=taken_back,
        )
    except BaseException:
        if journal is not None:
            journal.close()
        if lock is None:
            held.release()
        raise


def _checked_lock(lock: FolderLock, folder: Path) -> FolderLock:
    if not lock.is_held or not os.path.samefile(lock.path, folder):
        raise ValueError(f"lock must be a held lock on {folder}, got one on {lock.path}")
    return lock


def _begin(folder: Path, model: Any, note: str | None, attachments: dict[str, Any]) -> Journal:
    """Make the journal and then the first snapshot of a new folder."""
    if not _is_there(folder / JOURNAL) and _is_there(folder / LOG):
        raise JournalError(
            f"{folder / LOG} belongs to a journal that is missing, and so is its snapshot: "
            "restore both, or use another folder"
        )
    journal = Journal(folder / JOURNAL)
    try:
        journal.begin(note)
        record = {"operation": 0, "journal": journal.identity}
        save_forest(_beginning(model), folder / SNAPSHOT, {**attachments, RECORD: record})
    except BaseException:
        journal.close()
        raise
    return journal


def _beginning(model: Any) -> Any:
    """Return what the first snapshot holds: a seed drawn later would differ each time."""
    if model.examples_seen > 0:
        return model
    model = clone(model)
    model.check_params()  # a folder that starts with wrong ones would be of no use
    if not isinstance(model.random_state, int | np.integer):
        seed = int(check_random_state(model.random_state).randint(2**31))
        model.set_params(random_state=seed)
    return model


def _record(folder: Path, record: Any) -> tuple[int, str]:
    """Return the last operation that the snapshot includes, and the identity of its journal."""
    if isinstance(record, dict):
        included, identity = record.get("operation"), record.get("journal")
        if type(included) is int and included >= 0 and isinstance(identity, str):
            return included, identity
    raise JournalError(
        f"{folder / SNAPSHOT} was not saved by open_durable: to continue from this model, load it "
        "and pass it to open_durable with another folder"
    )


def _check_there(folder: Path) -> None:
    """Refuse to make a new journal where one was lost: SQLite would delete a log beside it."""
    journal = folder / JOURNAL
    if not _is_there(journal):
        raise JournalError(
            f"{journal} is missing or empty, and with it everything learned since the snapshot: "
            f"restore it, or load {folder / SNAPSHOT} with boundary_forest.load and continue in "
            "another folder"
        )


def _is_there(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _functions(model: Any) -> dict[str, Any]:
    if model is None:
        return {}
    params = model.get_params(deep=False)
    return {name: params[name] for name in FUNCTIONS if callable(params.get(name))}


def _check_same(model: Any, forest: Any, folder: Path) -> None:
    if type(model) is not type(forest):
        raise ValueError(
            f"{folder} contains a {type(forest).__name__}, not a {type(model).__name__}"
        )
    kept, given = forest.get_params(deep=False), model.get_params(deep=False)
    for name in kept.keys() - set(_FREE):
        if kept[name] != given[name]:
            raise ValueError(
                f"{folder} was created with {name}={kept[name]!r}, got {given[name]!r}: pass the "
                "same value, or no model"
            )
    forest.set_params(n_jobs=given["n_jobs"])


def _erase_again(forest: Any, where: str) -> None:
    try:
        with forest.learning_paused(), forest.changing():
            forest.erase_forgotten()
    except MemoryError:
        raise
    except Exception as error:
        raise JournalError(f"{where}: it cannot be repeated ({error})") from error


def _learn_again(forest: Any, recorded: Recorded, path: Path, *, with_functions: bool) -> None:
    operation = recorded.operation
    where = f"{path}: operation {operation.number}"
    seen = forest.examples_seen
    if operation.first != seen:
        raise JournalError(
            f"{where}: it begins after {operation.first} examples, but the forest has learned "
            f"{seen}"
        )
    if operation.kind == ERASE:
        _erase_again(forest, where)
        return
    replaces = operation.kind == REPLACE
    batch = unpacked(recorded.contents, operation.first, where, replaces=replaces)
    if len(batch) != operation.n:
        raise JournalError(f"{where}: it has {len(batch)} examples instead of {operation.n}")
    batch = batch.head(recorded.kept)
    try:
        forest.learn_batch(batch)
    except MemoryError:
        raise
    except Exception as error:
        if not with_functions:
            raise JournalError(f"{where}: it cannot be learned again ({error})") from error
        error.add_note(f"{where}: it cannot be learned again; all earlier operations can")
        raise  # a function that fails, and perhaps failed then too
    if forest.examples_seen != operation.first + recorded.kept:
        raise JournalError(f"{where}: it was learned only in part")
