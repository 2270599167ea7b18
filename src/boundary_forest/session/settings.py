"""What a run of a stream is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boundary_forest.frames.choosing import Wishes
from boundary_forest.frames.columns import Columns
from boundary_forest.session.problems import StreamError

WARMUP = 1000


@dataclass(frozen=True)
class Settings:
    """Options as they were given; None where nothing was said.

    Parameters
    ----------
    source, format : str
        Where rows come from, and in which format.
    target, features, drop, id, task, scaling, missing
        About columns; see :class:`boundary_forest.frames.choosing.Wishes`.
    warmup : int or None
        By how many rows columns are decided.
    on_error : str
        "stop" or "skip", when a row is bad.
    parameters : dict
        Of the forest, those that were given.
    threads : int or None
        Threads.
    load, durable, save, report : Path or None
        The model to go on with; the folder of a forest that survives crashes; what to write.
    live : bool
        Whether the source goes on where it was when a durable run ended, and skips nothing.
    predictions : str or None
        Where answers go.
    as_json : bool
        Whether reports are JSON.
    answering, teaching : bool
        Whether rows are answered, and whether they are learned.
    """

    source: str
    format: str | None = None
    target: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    id: str | None = None
    task: str | None = None
    scaling: str | None = None
    missing: str | None = None
    warmup: int | None = None
    on_error: str = "stop"
    parameters: dict[str, Any] = field(default_factory=dict)
    threads: int | None = None
    load: Path | None = None
    durable: Path | None = None
    live: bool = False
    save: Path | None = None
    report: Path | None = None
    predictions: str | None = None
    as_json: bool = False
    answering: bool = True
    teaching: bool = True

    def check(self) -> None:
        """Refuse before any work is done what would fail after it."""
        for option, path in (("--save", self.save), ("--report", self.report)):
            if path is not None and not path.absolute().parent.is_dir():
                raise StreamError(f"{option} {path}: there is no folder {path.absolute().parent}")
            if path is not None and path.is_dir():
                raise StreamError(f"{option} {path}: it is a folder")
        if self.save is not None and self.save.resolve() == Path(self.source).resolve():
            raise StreamError(f"--save {self.save}: it is the source")

    def forest_parameters(self) -> dict[str, Any]:
        """Of a new forest. Its seed is fixed, so that the same rows give the same forest."""
        return {"random_state": 0, **self.parameters, "n_jobs": self.threads}

    def wishes(self, target: str) -> Wishes:
        """About the columns of a new model."""
        return Wishes(
            target=target,
            features=self.features,
            drop=self.drop,
            id=self.id,
            task=self.task,
            scaling=self.scaling or "standard",
            missing=self.missing or "error",
        )

    def wishes_for(self, columns: Columns, where: str) -> Wishes:
        """About the columns of a model that there is, of which nothing else must be said."""
        for option in ("target", "task", "scaling", "missing"):
            said, kept = getattr(self, option), getattr(columns, option)
            if said is not None and said != kept:
                name = {"scaling": "scale"}.get(option, option)
                raise StreamError(f"{where} was begun with --{name} {kept}, not {said}")
        return Wishes(
            target=columns.target,
            features=tuple(feature.name for feature in columns.features),
            id=self.id or columns.id,
            task=columns.task,
            scaling=columns.scaling,
            missing=columns.missing,
        )

    def check_parameters(self, forest: Any, where: str) -> None:
        """Refuse parameters that are not those of a forest that there is."""
        kept = forest.get_params()
        for name, said in self.parameters.items():
            if kept[name] != said:
                raise StreamError(f"{where} was begun with {name}={kept[name]}, not {said}")
