"""The model that a session starts from: one in a file, one in a durable folder, or none yet."""

from __future__ import annotations

from dataclasses import dataclass

from boundary_forest.durable import FolderLock, open_durable, reserve
from boundary_forest.durable.learner import SNAPSHOT
from boundary_forest.files.loading import load
from boundary_forest.files.restoring import FRAME
from boundary_forest.frames.model import FrameModel
from boundary_forest.session.notes import Progress, note_of, progress_in
from boundary_forest.session.placing import connect, placed
from boundary_forest.session.problems import StreamError
from boundary_forest.session.settings import Settings
from boundary_forest.session.tracing import Trace

SNAPSHOT_BYTES = 1 << 28  # of the journal, after which a snapshot is saved


@dataclass
class Opened:
    """What a session starts with.

    Parameters
    ----------
    model : FrameModel or None
        The model to continue from; None for a new one.
    progress : Progress
        How far its source was used.
    lock : FolderLock or None
        Of the durable folder, which nobody else can use from before the warm-up.
    """

    model: FrameModel | None
    progress: Progress
    lock: FolderLock | None = None


def open_model(settings: Settings) -> Opened:
    """Return what a session with these settings starts with."""
    if settings.cluster is not None and settings.durable is not None:
        raise StreamError("a durable folder cannot be combined with a cluster: use one of the two")
    connect(settings.cluster)
    if settings.durable is None:
        return Opened(_loaded(settings), Progress())
    lock = reserve(settings.durable)
    try:
        if (settings.durable / SNAPSHOT).exists():
            return _resumed(settings, lock)
        model = _loaded(settings)
        if model is not None:
            model = made_durable(model, lock, note_of(Progress()))
        return Opened(model, Progress(), lock)
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


def _loaded(settings: Settings) -> FrameModel | None:
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
    model.forest = placed(model.forest, settings.cluster)
    return model


def _resumed(settings: Settings, lock: FolderLock) -> Opened:
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
        progress = progress_in(forest)
        if settings.live:
            progress.consumed, progress.trace = 0, Trace()  # the source starts anew
        return Opened(FrameModel.of_forest(forest, forest.attachments), progress, lock)
    except BaseException:
        forest.close()
        raise
