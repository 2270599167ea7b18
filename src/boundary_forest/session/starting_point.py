"""The model that a session starts from: one in a file, one in a durable folder, or none yet.

Its forest is in this process, or on a Ray cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from boundary_forest.durable import FolderLock, open_durable, reserve
from boundary_forest.durable.durable_forest import SNAPSHOT
from boundary_forest.files.loading import load
from boundary_forest.files.restoring import FRAME
from boundary_forest.frames.model import FrameModel
from boundary_forest.session.resume_state import ResumeState, SourceChecksum, as_note, state_in
from boundary_forest.session.settings import SessionSettings
from boundary_forest.sources.row_batch import StreamError

LOCAL = "local"
SNAPSHOT_BYTES = 1 << 28  # of the journal, after which a snapshot is saved


def connect(address: str | None) -> None:
    """Connect to a cluster, so that a wrong address is found before any row is read.

    Parameters
    ----------
    address : str or None
        "local" starts Ray on this machine; otherwise it is that of a cluster. None: there is none.
    """
    if address is None:
        return
    try:
        import ray

        import boundary_forest.ray  # noqa: F401
    except ModuleNotFoundError as error:
        raise StreamError(f"a cluster requires Ray ({error}): pip install 'ray[data]'") from error
    if ray.is_initialized():
        return
    where = {"include_dashboard": False} if address == LOCAL else {"address": address}
    try:
        ray.init(**where, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError) as error:
        raise StreamError(f"cannot connect to a Ray cluster at {address}: {error}") from error


def placed_on_cluster(forest: Any, address: str | None) -> Any:
    """Return the forest on the cluster that was connected to; as it is without one.

    Parameters
    ----------
    forest : estimator
        Of this process.
    address : str or None
        As for ``connect``.
    """
    if address is None:
        return forest
    from boundary_forest import ray as on_cluster

    kind: Any = getattr(on_cluster, type(forest).__name__)
    return kind.from_local(forest)


@dataclass
class StartingPoint:
    """What a session starts with.

    Parameters
    ----------
    model : FrameModel or None
        The model to continue from; None for a new one.
    state : ResumeState
        How far its source was used.
    lock : FolderLock or None
        Of the durable folder, which nobody else can use from before the warm-up.
    """

    model: FrameModel | None
    state: ResumeState
    lock: FolderLock | None = None


def open_model(settings: SessionSettings) -> StartingPoint:
    """Return what a session with these settings starts with."""
    if settings.cluster is not None and settings.durable is not None:
        raise StreamError("a durable folder cannot be combined with a cluster: use one of the two")
    connect(settings.cluster)
    if settings.durable is None:
        return StartingPoint(_loaded(settings), ResumeState())
    lock = reserve(settings.durable)
    try:
        if (settings.durable / SNAPSHOT).exists():
            return _resumed(settings, lock)
        model = _loaded(settings)
        if model is not None:
            model = made_durable(model, lock, as_note(ResumeState()))
        return StartingPoint(model, ResumeState(), lock)
    except BaseException:
        lock.release()
        raise


def made_durable(model: FrameModel, lock: FolderLock, note: str) -> FrameModel:
    """Return the model as the content of a new durable folder, which its columns go into."""
    forest = open_durable(
        lock.path,
        model.forest,
        note=note,
        attachments=model.attachments,
        snapshot_bytes=None,  # the learner does it, when answers are on the disk
        lock=lock,
    )
    return FrameModel.of_forest(forest, forest.attachments)


def _loaded(settings: SessionSettings) -> FrameModel | None:
    if settings.load is None:
        return None
    model = load(settings.load)
    if not isinstance(model, FrameModel):
        raise StreamError(
            f"{settings.load} contains a {type(model).__name__} that does not accept raw rows: "
            "use a model saved by boundary-forest stream or fit"
        )
    settings.check_parameters(model.forest.get_params())
    if settings.threads is not None:
        model.forest.set_params(n_jobs=settings.threads)
    model.forest = placed_on_cluster(model.forest, settings.cluster)
    return model


def _resumed(settings: SessionSettings, lock: FolderLock) -> StartingPoint:
    # The answers to what was learned last may not have been delivered: it is answered once more.
    forest = open_durable(lock.path, redo=not settings.live, snapshot_bytes=None, lock=lock)
    try:
        if FRAME not in forest.attachments:
            raise StreamError(
                f"{lock.path} contains a forest that does not accept raw rows: use a folder "
                "created by boundary-forest stream --durable"
            )
        settings.check_parameters(forest.get_params())
        forest.set_params(n_jobs=settings.threads)
        state = state_in(forest)
        if settings.live:
            state.consumed, state.checksum = 0, SourceChecksum()  # it has new rows only
        return StartingPoint(FrameModel.of_forest(forest, forest.attachments), state, lock)
    except BaseException:
        forest.close()
        raise
