"""What a session is to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boundary_forest.estimators.adaptive import stream_parameters, table_parameters
from boundary_forest.estimators.forest_settings import ADAPTIVE_PARAMETERS
from boundary_forest.frames.column_kinds import NUMBER, TEXT
from boundary_forest.frames.column_options import ColumnOptions
from boundary_forest.frames.columns import Columns
from boundary_forest.frames.dialect import PLAIN, Dialect
from boundary_forest.sources.row_batch import StreamError

WARMUP = 1000


@dataclass(frozen=True)
class SessionSettings:
    """The settings of a session; None where nothing was specified.

    Parameters
    ----------
    target, features, drop, id, task, scaling, missing, numbers, categories
        About columns; see :class:`boundary_forest.frames.column_options.ColumnOptions`.
    dialect : Dialect
        How text is written. Where nothing is specified, an existing model has it as it was.
    warmup : int or None
        Number of rows from which it is decided what columns mean.
    parameters : dict
        The forest's parameters that were specified.
    plain : bool
        Whether a new forest is the paper's, and not one as ``for_tables`` returns it, or
        ``for_streams`` if the parameters have ``forgetting``.
    threads : int or None
        Number of threads; -1 is one per core.
    load : Path or None
        The model file to continue from.
    durable : Path or None
        The folder of a forest that survives crashes; created if it does not exist.
    live : bool
        Whether the source brings new rows only when a durable session is resumed, so that none
        must be skipped.
    cluster : str or None
        Where the forest is: None is this process, "local" actors of Ray on this machine, and all
        else the address of a Ray cluster.
    predicting, learning : bool
        Whether rows are answered, and whether they are learned.
    """

    target: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    id: str | None = None
    task: str | None = None
    scaling: str | None = None
    missing: str | None = None
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    dialect: Dialect = PLAIN
    warmup: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    plain: bool = False
    threads: int | None = None
    load: Path | None = None
    durable: Path | None = None
    live: bool = False
    cluster: str | None = None
    predicting: bool = True
    learning: bool = True

    def forest_parameters(self) -> dict[str, Any]:
        """Return the parameters of a new forest; the same rows give the same forest by default."""
        # Only the Euclidean distance has weights; nothing was measured with the others.
        euclidean = self.parameters.get("metric", "euclidean") == "euclidean"
        suited: Mapping[str, Any] = {}
        if euclidean and not self.plain:
            forgets = "forgetting" in self.parameters
            parameters_for = stream_parameters if forgets else table_parameters
            suited = parameters_for({}, can_mix=self.cluster is None)
        parameters = {"random_state": 0, **suited, **self.parameters, "n_jobs": self.threads}
        most, n_trees = parameters.get("max_stored"), parameters.get("n_estimators", 50)
        if most is not None and most < 4 * n_trees:
            raise StreamError(
                f"max_stored must be at least {4 * n_trees} (4 for each of {n_trees} trees), got "
                f"{most}: store more rows, or use fewer trees"
            )
        return parameters

    def options(self, target: str) -> ColumnOptions:
        """Return the options about the columns of a new model."""
        return ColumnOptions(
            target=target,
            features=self.features,
            drop=self.drop,
            id=self.id,
            task=self.task,
            scaling=self.scaling or "standard",
            missing=self.missing or "error",
            numbers=self.numbers,
            categories=self.categories,
            dialect=self.dialect,
        )

    def options_for(self, columns: Columns) -> ColumnOptions:
        """Return the options that an existing model has; ours must not contradict them."""
        for name in ("target", "task", "scaling", "missing"):
            given, kept = getattr(self, name), getattr(columns, name)
            if given is not None and given != kept:
                raise StreamError(
                    f"{self.origin} was created with {name} {kept!r}, which cannot be changed to "
                    f"{given!r}"
                )
        self._check_kinds({feature.name: feature.kind for feature in columns.features})
        return ColumnOptions(
            target=columns.target,
            features=tuple(feature.name for feature in columns.features),
            id=self.id or columns.id,
            task=columns.task,
            scaling=columns.scaling,
            missing=columns.missing,
            dialect=columns.dialect,
        )

    def _check_kinds(self, kinds: dict[str, str]) -> None:
        for names, given in ((self.numbers, NUMBER), (self.categories, TEXT)):
            for name in names:
                kept = kinds.get(name, given)
                if kept != given:
                    raise StreamError(
                        f"{self.origin} was created with column {name!r} as {kept}, which "
                        f"cannot be changed to {given}"
                    )

    def check_parameters(self, kept: dict[str, Any]) -> None:
        """Raise StreamError if a parameter contradicts that of an existing forest."""
        specified = {**(ADAPTIVE_PARAMETERS if self.plain else {}), **self.parameters}
        for name, given in specified.items():
            if kept.get(name) != given:
                raise StreamError(
                    f"{self.origin} was created with {name}={kept.get(name)}, which cannot be "
                    f"changed to {given}"
                )

    @property
    def origin(self) -> str:
        """Where an existing model comes from."""
        return str(self.durable or self.load)
