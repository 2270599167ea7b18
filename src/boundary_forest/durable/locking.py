"""A durable folder belongs to one process at a time, from before there is a forest in it."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path
from typing import Self

from boundary_forest.estimators.errors import JournalError
from boundary_forest.files import make_folder

IN_USE = "this folder is already open, in this process or another"


class FolderLock:
    """A lock on a durable folder; returned by :func:`reserve`.

    It is released by ``release``, at the end of a ``with`` statement, when it is garbage, and by
    the system when the process ends, however that comes about.

    Attributes
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._close = weakref.finalize(self, os.close, _locked(path))
        _held.add(self)

    @property
    def is_held(self) -> bool:
        """Whether it has not been released."""
        return self._close.alive

    def release(self) -> None:
        """Release the lock; releasing it again does nothing.

        In a fork this leaves the folder locked by the parent, whose lock is the same one.
        """
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def reserve(path: str | os.PathLike[str]) -> FolderLock:
    """Lock a durable folder before there is a forest to open it with.

    Whoever prepares a forest for a new folder, from the first rows of a stream for example, must
    know before that no other process does the same.

    Parameters
    ----------
    path : str or path-like
        The folder; it is made if it is not there.

    Returns
    -------
    lock : FolderLock
        To be given to :func:`open_durable` as ``lock``. The durable forest then releases it when it
        is closed.

    Raises
    ------
    JournalError
        If another process, or this one, has the folder open or has reserved it.

    Examples
    --------
    >>> import tempfile
    >>> from boundary_forest import BoundaryForestClassifier, open_durable
    >>> from boundary_forest.durable import reserve
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with reserve(folder) as lock:
    ...         model = BoundaryForestClassifier().fit([[0], [9]], ["a", "b"])  # takes its time
    ...         with open_durable(folder, model, lock=lock) as forest:
    ...             forest.predict([[8]]).tolist()
    ['b']
    """
    folder = Path(path)
    make_folder(folder)
    return FolderLock(folder)


def _locked(folder: Path) -> int:
    """Return the folder, opened and locked.

    SQLite's own lock is lost as soon as this process closes the database once, whoever opened it:
    to copy the folder is enough. This one is not.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        raise JournalError(f"{folder}: {IN_USE}") from None
    except OSError:  # a file system that locks no folders has SQLite's lock still
        pass
    return opened


_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """In a fork: the parent keeps its folders locked, and this process does not."""
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_leave_to_parent)
