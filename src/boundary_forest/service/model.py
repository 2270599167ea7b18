"""The service's model: a durable forest, its tables, and what rows and targets look like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    load,
    open_durable,
)
from boundary_forest.durable import DurableForest, reserve
from boundary_forest.durable.durable_forest import SNAPSHOT
from boundary_forest.estimators.checking import takes_any_columns
from boundary_forest.estimators.engine_constants import NONE, TEXT
from boundary_forest.estimators.errors import JournalError
from boundary_forest.service import targets
from boundary_forest.service.id_log import LEARNED
from boundary_forest.service.rows import (
    ELEMENT_TYPE,
    FrameFormat,
    RowFormat,
    format_from_json,
    format_of_model,
)
from boundary_forest.service.settings import (
    CLASSIFICATION,
    REGRESSION,
    RETRIEVAL,
    Limits,
    ServiceSettings,
)
from boundary_forest.service.tables import ServiceTables
from boundary_forest.session.scores import Scores

FORMAT, SCORES, TARGET_KIND = "format", "scores", "target_kind"  # documents of the tables
_KINDS = {"U": targets.TEXT, "O": targets.TEXT, "T": targets.TEXT, "b": targets.BOOLEAN}


class ServiceModel:
    """An opened model.

    Attributes
    ----------
    forest : DurableForest
        The forest; only the writer's thread learns.
    task : str
        One of TASKS.
    tables : ServiceTables
        What is kept besides.
    format : RowFormat or None
        What rows look like; None before the first are learned.
    target_kind : str or None
        Of which kind targets are.
    scores : Scores
        How good the answers were.
    """

    def __init__(self, forest: DurableForest, tables: ServiceTables, loaded: Any) -> None:
        self.forest = forest
        self.tables = tables
        self.task = task_of(forest.model)
        forest.syncs = False  # the writer does, before it answers
        self._adopt(loaded)
        self.read_state()

    def _adopt(self, loaded: Any) -> None:
        """Take over what a model file says of rows and targets, once."""
        state = self.tables.state
        if FORMAT in state or self.forest.examples_seen == 0:
            return
        format = format_of_model(self.forest.model if loaded is None else loaded)
        assert format is not None
        found = {FORMAT: json.dumps(format.to_json())}
        if self.task != RETRIEVAL:
            kind = targets.NUMBER
            if self.task == CLASSIFICATION:
                kind = _KINDS.get(self.forest.model.classes_.dtype.kind, targets.INTEGER)
            found[TARGET_KIND] = json.dumps(kind)
        with self.forest.database.transaction():
            for name, value in found.items():
                self.forest.database.rows(
                    "INSERT OR REPLACE INTO service_state VALUES (?, ?)", name, value
                )
        state.update(found)

    def read_state(self) -> None:
        """Take over what the tables say."""
        state = {name: json.loads(value) for name, value in self.tables.state.items()}
        format = state.get(FORMAT)
        self.format: RowFormat | None = None if format is None else format_from_json(format)
        self.target_kind: str | None = state.get(TARGET_KIND)
        self.scores = Scores.from_json(state[SCORES]) if SCORES in state else Scores()

    @property
    def takes_any_columns(self) -> bool:
        """Whether the forest takes named values of any kind as they are."""
        return takes_any_columns(self.forest.model)

    @property
    def column_kinds(self) -> dict[str, str | None]:
        """The kind of each named column, such as "number"; None as long as it has no value."""
        if isinstance(self.format, FrameFormat):
            return {feature.name: feature.kind for feature in self.format.columns.features}
        fitted = self.forest.model.fitted
        if fitted is None or fitted.encoder is None or fitted.feature_names is None:
            return {}
        return dict(zip(fitted.feature_names.tolist(), fitted.encoder.layout.kinds, strict=True))

    @property
    def has_ids(self) -> bool:
        """Whether the forest takes ids: one that was loaded may have learned without."""
        fitted = self.forest.model.fitted
        return fitted is None or fitted.settings.ids != NONE

    def has_learned(self, id: str) -> bool:
        """Return whether a row with this id was learned, as far as that is remembered."""
        return (LEARNED, id) in self.tables.ids or self.is_stored(id)

    def is_stored(self, id: str) -> bool:
        """Return whether the forest has an example with this id."""
        fitted = self.forest.model.fitted
        if fitted is None or not self.has_ids:
            return False
        return bool(fitted.engine.named([id])[0][0])


def task_of(forest: Any) -> str:
    """Return the task of an estimator."""
    for task, estimator in _ESTIMATORS.items():
        if isinstance(forest, estimator):
            return task
    raise ValueError(f"a {type(forest).__name__} cannot be served")


_ESTIMATORS: dict[str, Any] = {
    CLASSIFICATION: BoundaryForestClassifier,
    REGRESSION: BoundaryForestRegressor,
    RETRIEVAL: BoundaryForestNeighbors,
}


def open_model(settings: ServiceSettings) -> ServiceModel:
    """Open the folder, or begin a new one; what was not answered before a crash is taken back."""
    folder, loaded, new = settings.folder, None, None
    if not (folder / SNAPSHOT).exists():
        loaded = None if settings.load is None else _loaded(settings.load)
        new = _new_forest(settings) if loaded is None else getattr(loaded, "forest", loaded)
        task_of(new)
    forest, tables = _opened(folder, new, settings.limits)
    try:
        forest.set_params(n_jobs=settings.threads)
        task = task_of(forest.model)
        if settings.task not in (None, task):
            raise ValueError(f"{folder} contains a model for {task}, not for {settings.task}")
        fitted = forest.model.fitted
        if fitted is not None and fitted.settings.ids not in (NONE, TEXT):
            raise ValueError(
                "the ids of this model are integers, but ids of a service are text: learn it "
                "again with text ids, or without ids"
            )
        return ServiceModel(forest, tables, loaded)
    except BaseException:
        forest.close()
        raise


def _opened(folder: Path, new: Any, limits: Limits) -> tuple[DurableForest, ServiceTables]:
    """Open a folder and bring journal and tables together; see ``tables.py`` for how they part."""
    lock = reserve(folder)
    try:
        # Snapshots are taken by the service, between two groups: one with an unanswered group could
        # not be taken back.
        forest = open_durable(folder, new, snapshot_bytes=None, lock=lock)
    except BaseException:
        lock.release()
        raise
    try:
        tables = ServiceTables(forest.database, limits)
        group, seen = tables.group, forest.examples_seen
        end = group.first + group.n
        if group.n == 0 or seen > end or (seen == end and group.answered):
            return forest, tables
        if seen > group.first:
            forest.close()
            forest = open_durable(folder, snapshot_bytes=None, redo=True)
            tables = ServiceTables(forest.database, limits)
        if forest.examples_seen != group.first:
            raise JournalError(
                f"{folder}: the last call cannot be taken back to {group.first} examples"
            )
        tables.take_back(group.first)
        return forest, tables
    except BaseException:
        forest.close()
        raise


def _new_forest(settings: ServiceSettings) -> Any:
    task = settings.task or CLASSIFICATION
    if task == RETRIEVAL:
        return BoundaryForestNeighbors(dtype=ELEMENT_TYPE, random_state=settings.seed)
    # The type is that of the first rows: float32 of lists, float64 of named values, among them
    # dates.
    return _ESTIMATORS[task].for_streams(
        max_stored=settings.max_stored, random_state=settings.seed, columns="auto"
    )


def _loaded(path: Path) -> Any:
    model = load(path)
    forest = getattr(model, "forest", model)
    if forest.examples_seen == 0:
        raise ValueError(f"{path} has learned nothing: leave out --load")
    return model
