"""A forest, its last snapshot, and the journal of what it has learned since.

A batch is written down first and learned then, so that a full disk is found before anything has
changed. Learning is deterministic: the snapshot and the batches after it give the same forest.
Batches are known by the number of their first example, so that one that a snapshot already has is
never learned twice, whenever the crash came.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from boundary_forest.durable.batches import Examples, packed, unpacked
from boundary_forest.durable.journal import Batch, Journal
from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.errors import JournalError
from boundary_forest.files import make_folder, remove_unfinished
from boundary_forest.files.loading import FUNCTIONS, load_forest

SNAPSHOT = "model.bf"
JOURNAL = "journal.sqlite"
SNAPSHOT_BYTES = 1 << 28
_FREE = ("n_jobs", "random_state")  # may be given differently when a forest is opened again


class DurableForest:
    """A forest that forgets nothing it has acknowledged; made by :func:`open_durable`.

    It has the methods of the estimator it is made of, but for ``fit``, which would forget. Those
    that learn return once what they were given is on the disk.

    Attributes
    ----------
    model : estimator
        The forest itself, to be asked as one likes; only the durable one may teach it.
    path : Path
        The folder.
    note : str or None
        A text of your own, such as how far a source has been read. It goes to the disk in one piece
        with every batch that is learned while it is set; when the folder is opened again, it is the
        one that went with the last batch. ``keep_note`` writes it by itself.
    taken_back : str or None
        The note of the batch that was forgotten when the folder was opened with ``redo=True``.
    """

    taken_back: str | None = None

    def __init__(
        self,
        path: Path,
        model: BaseBoundaryForest,
        journal: Journal,
        *,
        snapshot_rows: int | None,
        snapshot_bytes: int | None,
    ) -> None:
        self.path = path
        self.model = model
        self._journal = journal
        self._snapshot_rows = snapshot_rows
        self._snapshot_bytes = snapshot_bytes
        self._saving = threading.Lock()
        self._closed = False
        self._differs = False  # the journal from what was learned
        self.note = journal.note(_seen(model))
        model._journal = self

    @property
    def attachments(self) -> dict[str, Any]:
        """The documents that go into every snapshot."""
        frame = self.model.__dict__.get("_frame")
        return {} if frame is None else {"frame": frame}

    def partial_fit(self, X: Any, y: Any = None, **more: Any) -> Self:
        """Go on learning, as the estimator's ``partial_fit`` does; returns when it is on the disk.

        Parameters
        ----------
        X, y, **more
            As for the estimator.

        Returns
        -------
        self : DurableForest
        """
        self._opened().partial_fit(X, y, **more)
        self._snapshot_if_due()
        return self

    def predict_then_learn(self, X: Any, y: Any, **more: Any) -> Any:
        """As the estimator's; returns the answers when what was learned is on the disk.

        Parameters
        ----------
        X, y, **more
            As for the estimator.

        Returns
        -------
        answers : ndarray of the shape of y
        """
        model: Any = self._opened()
        answers = model.predict_then_learn(X, y, **more)
        self._snapshot_if_due()
        return answers

    def predict_proba_then_learn(self, X: Any, y: Any, **more: Any) -> Any:
        """As the estimator's; returns the shares when what was learned is on the disk.

        Parameters
        ----------
        X, y, **more
            As for the estimator.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
        """
        model: Any = self._opened()
        shares = model.predict_proba_then_learn(X, y, **more)
        self._snapshot_if_due()
        return shares

    def keep_note(self) -> None:
        """Bring the note to the disk though nothing was learned."""
        model = self._opened()
        with model._learning():
            if self.note is not None:
                self._journal.keep_note(_seen(model), self.note)

    def fit(self, X: Any, y: Any = None, **more: Any) -> None:
        """Not for a durable forest: it would forget all.

        Parameters
        ----------
        X, y, **more
            Not used.
        """
        raise TypeError(
            "fit would forget what is to be kept: use partial_fit, or open another folder"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "model" not in self.__dict__:
            raise AttributeError(f"a durable forest has no {name}")
        return getattr(self.model, name)

    def snapshot(self) -> None:
        """Save the forest, and empty the journal that it makes needless."""
        with self._saving:  # an older snapshot must not take the place of a newer one
            model = self._opened()
            seen = _seen(model)  # more may be learned, and saved, from now on
            model.save(self.path / SNAPSHOT)
            self._journal.forget(seen)

    def close(self) -> None:
        """Let others open the folder. What was learned is kept, and will be replayed."""
        if self._journal.is_inherited:  # and so may be the locks, held by threads that are not here
            return
        with self._saving, self.model._learning():
            self._closed = True
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self) -> BaseBoundaryForest:
        if self._closed:
            raise JournalError(f"{self.path} was closed: open it again with open_durable")
        if self._differs:
            raise JournalError(
                f"{self.path}: a batch was not learned whole, and the journal could not be told: "
                "close it and open it again"
            )
        if self._journal.is_inherited:
            raise JournalError(
                f"{self.path} is open in the process that this one is a fork of: learn there, or "
                "close it there and open it here"
            )
        return self.model

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
                f"no snapshot could be saved ({error}); the journal is kept, and it will be tried "
                "again after the next batch",
                RuntimeWarning,
                stacklevel=3,
            )

    # Called by the estimator

    @contextmanager
    def recording(self, draft: Any, X: Any, y: Any, ids: Any, classes: Any) -> Iterator[None]:
        """Write a batch down before it is learned inside; take back what was not."""
        self._opened()
        engine = draft._engine
        first = engine.seen
        examples = Examples(
            X,
            draft._labels_given(y),
            ids,
            None if classes is None else draft._labels_given(classes),
            getattr(draft, "feature_names_in_", None) if first == 0 else None,
        )
        batch = Batch(first, X.shape[0], packed(examples), self.note)
        try:
            self._journal.append(batch)
            yield
        except BaseException:  # an interrupt too, perhaps after the batch was written down
            n = engine.seen - first
            if n < batch.n:
                self._differs = True  # for good, if this fails
                part = Batch(first, n, packed(examples.first(n))) if n > 0 else None
                self._journal.replace(batch, part)
                self._differs = False
            raise


def open_durable(
    path: str | os.PathLike[str],
    model: Any = None,
    *,
    snapshot_rows: int | None = None,
    snapshot_bytes: int | None = SNAPSHOT_BYTES,
    mmap: bool = False,
    note: str | None = None,
    redo: bool = False,
    attachments: dict[str, Any] | None = None,
) -> DurableForest:
    """Open a folder in which a forest survives crashes; a new one begins with ``model``.

    Every ``partial_fit`` of the forest returns only when its examples are in a journal on the disk.
    When the folder is opened, the last snapshot is loaded and the journal learned again, which
    gives the forest that was lost, identical by its fingerprint. A batch whose call had not
    returned may be there or not.

    Parameters
    ----------
    path : str or path-like
        The folder; it is made if it is not there. One process at a time can have it open.
    model : estimator or None, default=None
        What a new folder begins with, taught or not; it is copied. For one that exists it may be
        left out, unless functions must be given again; else its parameters must be the same.
    snapshot_rows, snapshot_bytes : int or None, default=None and 2**28
        A snapshot is saved when the journal has so many examples, or so many bytes; None: not by
        this measure. ``snapshot`` saves one at any time.
    mmap : bool, default=False
        Whether the snapshot's positions stay in its file, as for :func:`boundary_forest.load`.
    note : str or None, default=None
        The note that a new folder begins with; of no effect on one that exists.
    redo : bool, default=False
        Whether the last batch is forgotten, unless a snapshot has it, because what the process was
        about to do with the answers was lost with it: the batch is to be learned again. It is also
        the way out if learning that batch ends the process, as a faulty compiled metric may.
    attachments : dict or None, default=None
        Documents that go into every snapshot of a new folder.

    Returns
    -------
    forest : DurableForest
        A context manager.

    Raises
    ------
    JournalError
        If the journal is damaged, or another process has it open.
    ModelFileError
        If the snapshot is damaged.

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
        raise TypeError(f"model must be a forest of boundary_forest, got {type(model).__name__}")
    if attachments is not None and model is not None:
        model._frame = attachments["frame"]
    folder = Path(path)
    snapshot = folder / SNAPSHOT
    if model is None and not snapshot.exists():
        raise FileNotFoundError(f"{folder} has no forest yet: give the model to begin with")
    make_folder(folder)
    journal = Journal(folder / JOURNAL)
    try:
        remove_unfinished(folder)
        if not snapshot.exists():
            if note is not None:
                journal.keep_note(_seen(model), note)
            _beginning(model).save(snapshot)
        forest = load_forest(snapshot, mmap=mmap, **_functions(model))
        if model is not None:
            _check_same(model, forest, folder)
        taken_back = journal.take_back_last(_seen(forest)) if redo else None
        _replay(forest, journal)
        durable = DurableForest(
            folder, forest, journal, snapshot_rows=snapshot_rows, snapshot_bytes=snapshot_bytes
        )
        durable.taken_back = taken_back
        return durable
    except BaseException:
        journal.close()
        raise


def _beginning(model: Any) -> Any:
    """What the first snapshot holds: a seed that is drawn later would be another one each time."""
    if hasattr(model, "_engine"):
        return model
    frame = model.__dict__.get("_frame")
    model = clone(model)
    model._validate_params()  # a folder that was begun with wrong ones could not be gone on with
    model.__dict__.update({} if frame is None else {"_frame": frame})
    if not isinstance(model.random_state, int | np.integer):
        seed = int(check_random_state(model.random_state).randint(2**31))
        model.set_params(random_state=seed)
    return model


def _functions(model: Any) -> dict[str, Any]:
    if model is None:
        return {}
    params = model.get_params(deep=False)
    return {name: params[name] for name in FUNCTIONS if callable(params.get(name))}


def _check_same(model: Any, forest: Any, folder: Path) -> None:
    if type(model) is not type(forest):
        raise ValueError(f"{folder} holds a {type(forest).__name__}, not a {type(model).__name__}")
    kept, given = forest.get_params(deep=False), model.get_params(deep=False)
    for name in kept.keys() - set(_FREE):
        if kept[name] != given[name]:
            raise ValueError(
                f"{folder} was begun with {name}={kept[name]!r}, and {given[name]!r} is given: "
                "give the same, or no model"
            )
    forest.set_params(n_jobs=given["n_jobs"])


def _seen(forest: Any) -> int:
    return forest._engine.seen if hasattr(forest, "_engine") else 0


def _replay(forest: Any, journal: Journal) -> None:
    """Learn what the snapshot does not have."""
    names = forest.__dict__.pop("feature_names_in_", None)  # rows in the journal have none
    for batch in journal.batches():
        seen = _seen(forest)
        if batch.first + batch.n <= seen:  # the crash came before the journal was emptied
            continue
        if batch.first != seen:
            raise JournalError(
                f"{journal.path}: its next batch begins with example {batch.first}, and the "
                f"snapshot beside it has seen {seen}"
            )
        where = f"{journal.path}: the batch of example {batch.first}"
        examples = unpacked(batch.contents, where)
        if examples.X.shape[0] != batch.n:
            raise JournalError(f"{where}: it has {examples.X.shape[0]} examples, not {batch.n}")
        try:
            forest._learn(
                examples.X, examples.y, reset=False, classes=examples.classes, ids=examples.ids
            )
        except Exception as error:  # a function that fails, and perhaps failed then too
            error.add_note(f"{where}: it cannot be learned again; all before it can")
            raise
        names = names if examples.feature_names is None else examples.feature_names
    if names is not None:
        forest.feature_names_in_ = names
