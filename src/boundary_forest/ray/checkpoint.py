"""What survives of a forest on a cluster: one journal, and a snapshot of each actor.

``checkpoint_dir`` is a folder that all nodes see. The driver writes every batch to its journal
before it is learned. From time to time each actor writes the state of its trees to a file of its
own; then the driver writes ``driver.bf``, which names these files and the last operation of the
journal that they include, and only with that they count. Learning is deterministic, so that the
snapshot and the journal give what was lost: one actor's trees, or all of it.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boundary_forest.durable.interrupts import Interrupts
from boundary_forest.durable.journal import Journal
from boundary_forest.durable.locking import FolderLock, reserve
from boundary_forest.durable.packing import packed_parts, unpacked
from boundary_forest.estimators.batch import LearningBatch
from boundary_forest.estimators.blocks import row_blocks
from boundary_forest.estimators.element_type import as_rows
from boundary_forest.estimators.engine_constants import VOTE_ARRAYS
from boundary_forest.estimators.errors import JournalError
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import engine_ids
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.files import ModelFile, ModelFileError, remove_unfinished, write_model
from boundary_forest.files.serialization import (
    column_arrays,
    read_column,
    read_parameters,
    written_parameters,
)
from boundary_forest.ray.states import State, TreeRange

DRIVER, JOURNAL = "driver.bf", "journal.sqlite"
_DRIVER_ARRAYS = ("spread", *VOTE_ARRAYS)
_DRIVER_NUMBERS = ("seen", "n_classes", "planted", "vote_power")


class ForestLostError(RuntimeError):
    """An actor has died, and there is nothing from which its trees could be brought back."""


class Rows(NamedTuple):
    """Examples of the journal as the engine takes them."""

    first: int
    X: NDArray[Any]
    labels: NDArray[np.float64]
    ids: Any


class CheckpointSnapshot(NamedTuple):
    """What the files of a folder hold.

    Attributes
    ----------
    included : int
        The last operation of the journal that they include.
    trees : list of (int, int)
        Which trees the parts hold.
    parts : list of str
        Their files.
    driver : dict
        The driver's state.
    """

    included: int
    trees: list[TreeRange]
    parts: list[str]
    driver: State


class Checkpoint:
    """The folder of one forest, which records what it learns.

    Parameters
    ----------
    folder : Path
        The folder; it is made if it is not there.
    seen : callable
        Returns how many examples the forest has learned.

    Attributes
    ----------
    folder : Path
        The folder.
    latest : CheckpointSnapshot or None
        The last snapshot that counts.
    """

    def __init__(self, folder: Path, seen: Callable[[], int]) -> None:
        folder = folder.absolute()  # actors may run in other folders
        self.folder = folder
        self._seen = seen
        self.latest: CheckpointSnapshot | None = None
        self._lock: FolderLock = reserve(folder)
        self._is_broken = False
        try:
            remove_unfinished(folder)
            self._journal = Journal(folder / JOURNAL)
        except BaseException:
            self._lock.release()
            raise
        self.identity = self._journal.identity

    @property
    def n_rows(self) -> int:
        """How many examples the journal has since the last snapshot."""
        return self._journal.n_rows

    def close(self) -> None:
        """Let others open the folder."""
        self._journal.close()
        self._lock.release()

    # Writing

    def check_new(self) -> None:
        """Refuse a folder that has a forest already."""
        if self._journal.last > 0 or self._has_snapshot():
            raise JournalError(
                f"{self.folder} already contains a forest: continue it with from_checkpoint(), or "
                "use another checkpoint_dir"
            )

    def _has_snapshot(self) -> bool:
        """Whether files of actors count; without the driver's word they are what a crash left."""
        if not (self.folder / DRIVER).exists():
            return False
        with ModelFile(self.folder / DRIVER) as file, file.checking("document"):
            return file.document["checkpoint"]["parts"] is not None

    def begin(self, name: str, parameters: dict[str, Any], seed: int) -> None:
        """Write down what forest the folder is to hold.

        Parameters
        ----------
        name : str
            The estimator's.
        parameters : dict
            Its parameters, without those of the cluster.
        seed : int
            The seed that was drawn.
        """
        self._write(self._document(name, parameters, seed), {})

    @contextmanager
    def recording(self, batch: LearningBatch) -> Iterator[Iterable[LearningBatch]]:
        """Return a context inside which a batch is learned, after it was written down.

        Parameters
        ----------
        batch : LearningBatch
            What a call was given, checked.
        """
        self._check()
        try:
            self._journal.append(batch.first, packed_parts(batch), None)
            yield [batch]
        except ForestLostError:
            self._is_broken = True  # the journal has all of it
            raise
        except BaseException:
            with Interrupts():
                self._journal.truncate(self._seen())
            raise

    @contextmanager
    def forgetting(self, *refusals: type[Exception]) -> Iterator[None]:
        """Return a context inside which examples are forgotten, or a snapshot of that is written.

        If it fails, the forest and the folder may have parted.

        Parameters
        ----------
        *refusals : types of exceptions
            What is raised if nothing was forgotten.
        """
        self._check()
        try:
            yield
        except refusals:
            raise
        except BaseException:
            self._is_broken = True
            raise

    def erased(self) -> None:
        """Do nothing: only a graph puts off what it forgets, and has no checkpoint."""

    def save(
        self,
        name: str,
        parameters: dict[str, Any],
        fitted: Fitted,
        trees: list[TreeRange],
        engine: Any,
    ) -> None:
        """Have actors and driver write a snapshot, and empty the journal that it makes needless.

        Parameters
        ----------
        name, parameters
            As for ``begin``.
        fitted : Fitted
            What was learned.
        trees : list of (int, int)
            Which trees the actors hold.
        engine : SpreadForest
            Has the actors write, and gives the driver's state.
        """
        included = self._journal.last
        # Others than those that count until the driver's word is written.
        time = secrets.token_hex(4)
        files = [f"part-{included}-{time}-{first}-{end}.bf" for first, end in trees]
        engine.save_parts([str(self.folder / name) for name in files], self.identity)
        driver, settings = engine.driver_state(), fitted.settings
        labels, columns = fitted.labels.saved(driver["n_classes"])
        document = self._document(name, parameters, settings.seed)
        document["checkpoint"] |= {
            "operation": included,
            "trees": trees,
            "parts": files,
            "driver": {name: driver[name] for name in _DRIVER_NUMBERS},
            "labels": labels,
            "columns": sorted(columns),
            "in_use": written_parameters(fitted.parameters),
            "has_feature_names": fitted.feature_names is not None,
            "settings": {
                name: getattr(settings, name)
                for name in ("element_type", "n_features", "label_length", "ids", "order")
            },
        }
        arrays = {name: driver[name] for name in _DRIVER_ARRAYS}
        if fitted.feature_names is not None:
            arrays |= column_arrays("feature_names", fitted.feature_names)
        for column, values in columns.items():
            arrays |= column_arrays(column, values)
        self._write(document, arrays)
        self.latest = CheckpointSnapshot(
            included, trees, [str(self.folder / name) for name in files], driver
        )
        engine.is_ahead = False
        self._journal.drop_until(included)
        self._remove_older(set(files))

    def _document(self, name: str, parameters: dict[str, Any], seed: int) -> dict[str, Any]:
        parameters = {**parameters, "random_state": seed}
        return {
            "checkpoint": {
                "estimator": name,
                "parameters": written_parameters(parameters),
                "journal": self.identity,
                "operation": 0,
                "parts": None,
            }
        }

    def _write(self, document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        write_model(self.folder / DRIVER, document, arrays)

    def _remove_older(self, kept: set[str]) -> None:
        """Remove all other parts, which may have what was forgotten; OSError if one stays."""
        remove_unfinished(self.folder)  # of actors that died while they wrote
        for path in self.folder.glob("part-*.bf"):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _check(self) -> None:
        if self._is_broken:
            raise ForestLostError(
                f"the actors could not be restarted, but {self.folder} contains everything "
                "learned: continue with from_checkpoint()"
            )

    # Reading

    def operations(self, settings: ForestSettings, labels: LabelPolicy) -> Iterator[Rows]:
        """Return what is to be learned after the last snapshot.

        Parameters
        ----------
        settings, labels
            Of the forest; all classes of the journal are known.
        """
        policy = copy.copy(labels)  # encoding must not change what answers are read with
        for batch in self.batches():
            keys = policy.keys()
            n_known = 0 if keys is None else len(keys)
            codes, policy = policy.encoded(batch.y, None, len(batch), n_known)
            begin = 0
            for X in row_blocks(batch.X, lambda rows: as_rows(rows, settings.element_type)):
                end = begin + len(X)
                ids = None if batch.ids is None else engine_ids(batch.ids[begin:end])
                targets = np.ascontiguousarray(codes[begin:end])
                yield Rows(batch.first + begin, X, targets, ids)
                begin = end

    def batches(self) -> Iterator[LearningBatch]:
        """Return the batches after the last snapshot as they were given."""
        included = 0 if self.latest is None else self.latest.included
        for recorded in self._journal.after(included):
            operation = recorded.operation
            where = f"{self._journal.path}: operation {operation.number}"
            yield unpacked(recorded.contents, operation.first, where).head(recorded.kept)

    def drop_included(self) -> None:
        """Remove from the journal what the snapshot made needless, if a crash came before."""
        if self.latest is not None:
            self._journal.drop_included(self.latest.included)
            self._remove_older({Path(path).name for path in self.latest.parts})


class OpenedCheckpoint(NamedTuple):
    """What a driver has left in a folder.

    Attributes
    ----------
    parameters : dict
        The estimator's, without those of the cluster.
    settings : ForestSettings or None
        What the trees of the snapshot are grown with; None if there is no snapshot.
    labels : LabelPolicy or None
        What its labels mean.
    feature_names : ndarray or None
        Names of the columns.
    """

    parameters: dict[str, Any]
    settings: ForestSettings | None = None
    labels: LabelPolicy | None = None
    feature_names: NDArray[Any] | None = None


def opened(
    checkpoint: Checkpoint, name: str, policy: type[LabelPolicy], names: set[str]
) -> OpenedCheckpoint:
    """Return what ``driver.bf`` says, and make its snapshot the checkpoint's latest.

    Parameters
    ----------
    checkpoint : Checkpoint
        The folder.
    name : str
        Of the estimator that it must hold.
    policy : type
        What labels mean there.
    names : set of str
        Its parameters.
    """
    with ModelFile(checkpoint.folder / DRIVER) as file, file.checking("document"):
        document = file.document["checkpoint"]
        if document["estimator"] != name:
            raise file.error(f"it belongs to a {str(document['estimator'])[:80]}, not to a {name}")
        if document["journal"] != checkpoint.identity:
            raise file.error(f"it does not belong to {JOURNAL} in the same folder")
        parameters = read_parameters(file, document["parameters"], names, {})
        if document["parts"] is None:
            return OpenedCheckpoint(parameters)
        checkpoint.latest = _read_snapshot(file, checkpoint.folder)
        checkpoint.drop_included()
        in_use = {**parameters, **document["in_use"]}
        columns = {column: read_column(file, column) for column in document["columns"]}
        settings = ForestSettings.of(
            in_use, seed=int(parameters["random_state"]), **document["settings"]
        )
        labels = policy.from_parameters(in_use).loaded(
            document["labels"], columns.__getitem__, settings.label_length
        )
        names_of_features = None
        if document["has_feature_names"]:
            names_of_features = read_column(file, "feature_names")
        return OpenedCheckpoint(parameters, settings, labels, names_of_features)


def check_shared(folder: Path, identity: str) -> None:
    """Raise OSError if the folder that an actor sees is not the one of this journal.

    If its snapshot were on a disk of its own node, the journal would be emptied for nothing.
    """
    try:
        with ModelFile(folder / DRIVER) as file, file.checking("document"):
            if file.document["checkpoint"]["journal"] == identity:
                return
    except (OSError, ModelFileError):
        pass
    raise OSError(
        f"{folder} is not the same folder on all nodes: set checkpoint_dir to a folder that all "
        "nodes share"
    )


def _read_snapshot(file: ModelFile, folder: Path) -> CheckpointSnapshot:
    document = file.document["checkpoint"]
    driver: State = {name: document["driver"][name] for name in _DRIVER_NUMBERS}
    driver |= {name: file.array(name, "float64") for name in _DRIVER_ARRAYS}
    trees = [(int(first), int(end)) for first, end in document["trees"]]
    parts = [str(folder / Path(name).name) for name in document["parts"]]
    return CheckpointSnapshot(int(document["operation"]), trees, parts, driver)
