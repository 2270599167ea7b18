"""The model that a session starts from: one in a file, one in a durable folder, or none yet."""

from __future__ import annotations

from pathlib import Path

from boundary_forest.durable import DurableForest, open_durable
from boundary_forest.durable.learner import SNAPSHOT
from boundary_forest.files.loading import load
from boundary_forest.files.restoring import FRAME
from boundary_forest.frames.model import FrameModel
from boundary_forest.session.notes import Progress, note_of, progress_in
from boundary_forest.session.problems import StreamError
from boundary_forest.session.settings import Settings


def open_model(settings: Settings) -> tuple[FrameModel | None, Progress]:
    """Return the model to continue from, None for a new one; and how far its source was used."""
    folder = settings.durable
    if folder is not None and (folder / SNAPSHOT).exists():
        return _resumed(settings, folder)
    if settings.load is None:
        return None, Progress()
    model = load(settings.load)
    if not isinstance(model, FrameModel):
        raise StreamError(
            f"{settings.load} holds a {type(model).__name__} that does not take raw rows: it was "
            "not saved by boundary-forest stream or fit"
        )
    settings.check_parameters(model.forest.get_params())
    if settings.threads is not None:
        model.forest.set_params(n_jobs=settings.threads)
    if folder is not None:
        model = made_durable(model, folder, note_of(Progress()))
    return model, Progress()


def made_durable(model: FrameModel, folder: Path, note: str) -> FrameModel:
    """Return the model as the content of a new durable folder, which its columns go into."""
    forest = open_durable(folder, model.forest, note=note, attachments=model.attachments)
    return FrameModel.of_forest(forest, forest.attachments)


def _resumed(settings: Settings, folder: Path) -> tuple[FrameModel, Progress]:
    # The answers to what was learned last may not have been delivered: it is answered once more.
    forest: DurableForest = open_durable(folder, redo=not settings.live)
    try:
        if FRAME not in forest.attachments:
            raise StreamError(f"{folder} holds a forest that does not take raw rows")
        settings.check_parameters(forest.get_params())
        forest.set_params(n_jobs=settings.threads)
        progress = progress_in(forest)
        if settings.live:
            progress.consumed = 0  # the source starts anew
        return FrameModel.of_forest(forest, forest.attachments), progress
    except BaseException:
        forest.close()
        raise
