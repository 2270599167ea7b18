"""What the estimators on a cluster have beyond those in one process."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from sklearn.utils._param_validation import Interval, StrOptions

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.checking import n_threads
from boundary_forest.estimators.engine_constants import GRAPH
from boundary_forest.estimators.errors import callers_level
from boundary_forest.estimators.fitted import Fitted, Forest
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import forget_examples
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.estimators.learning_call import LearningCall, LearningMode
from boundary_forest.ray.actor_group import Cluster
from boundary_forest.ray.checkpoint import DRIVER, Checkpoint, opened
from boundary_forest.ray.ray_backend import SpreadForest
from boundary_forest.ray.shard_votes import ShardedForest
from boundary_forest.ray.shards import ShardedIndex, check_shards
from boundary_forest.ray.streaming import LearningProgress, is_dataset, parts_of

CLUSTER_CONSTRAINTS: dict[str, list[Any]] = {
    "n_actors": [Interval(Integral, 1, None, closed="left"), None],
    "num_cpus": [Interval(Real, 0, None, closed="left")],
    "resources": [dict, None],
    "checkpoint_dir": [str, os.PathLike, None],
    "checkpoint_rows": [Interval(Integral, 1, None, closed="left")],
    "shard_by": [StrOptions({"trees", "examples"})],
}


class ClusterMixin(BaseBoundaryForest):
    """Adds actors to an estimator: its engine is a :class:`SpreadForest`.

    Parameters
    ----------
    n_actors : int or None, default=None
        Number of actors that hold the trees; None is one per processor of the cluster, as far as
        there are trees.
    num_cpus : float, default=1
        Processors that each actor reserves; ``n_jobs`` is how many threads it uses.
    resources : dict or None, default=None
        Further resources that each actor reserves, by Ray's names.
    checkpoint_dir : str, path-like or None, default=None
        A folder that all nodes can read and write. When a call returns, what it learned is on disk
        there. Actors that die are restarted from it; if this process dies, continue with
        :meth:`from_checkpoint`.
    checkpoint_rows : int, default=100_000
        Number of examples after which the actors write snapshots to this folder.

    Notes
    -----
    For the same ``random_state``, the forest and every answer are those of the estimator in one
    process. Functions as ``metric`` and ``weights="mixture"`` are refused, and ``forget`` collects
    the forest in this process. Columns must be numbers without missing values, whatever
    ``columns`` is.
    """

    local: ClassVar[type[BaseBoundaryForest]]  # the estimator in one process
    _can_mix: ClassVar[bool] = False
    encodes_columns = False  # columns="auto" takes numbers alone

    _checkpoint: Checkpoint | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._parameter_constraints = {**cls._parameter_constraints, **CLUSTER_CONSTRAINTS}

    def __init__(
        self,
        *arguments: Any,
        n_actors: int | None = None,
        num_cpus: float = 1,
        resources: dict[str, float] | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_rows: int = 100_000,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.n_actors = n_actors
        self.num_cpus = num_cpus
        self.resources = resources
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_rows = checkpoint_rows

    def check_params(self) -> None:
        """Raise the error that ``fit`` would raise for a parameter that cannot be used."""
        super().check_params()
        if callable(self.metric):
            raise ValueError(
                "on a cluster, metric must be given by name, because other processes may not "
                f"have the same function, got {self.metric!r}"
            )
        if getattr(self, "weights", None) == "mixture":
            raise ValueError(
                "weights='mixture' is not available on a cluster, because no actor has the rows "
                "of all trees: use weights='auto'"
            )
        if self.checkpoint_dir is not None and self.offline:
            raise ValueError(
                "offline=True cannot be combined with checkpoint_dir, because a journal is "
                "learned row by row"
            )
        if self._is_sharded():
            check_shards(self.get_params(deep=False))
            return
        n = self.n_actors
        if n is not None and n > self.n_estimators:
            raise ValueError(
                f"n_actors must be at most n_estimators={self.n_estimators}, because each actor "
                f"holds at least one tree, got {n}"
            )

    def to_local(self) -> Any:
        """Return the same forest in this process.

        Returns
        -------
        forest : estimator
            The estimator of the same name of ``boundary_forest``, with the same fingerprint.
        """
        forest = self.local(**self._local_parameters())
        with self.learning_paused():
            fitted = self._fitted
            if fitted is not None:
                engine = spread_engine(fitted).gathered()
                forest.fitted = replace(fitted, engine=engine, labels=copy(fitted.labels))
        return forest

    @classmethod
    def from_local(cls, forest: Any, **cluster: Any) -> Self:
        """Return the same forest on a cluster.

        Parameters
        ----------
        forest : estimator
            The estimator of the same name of ``boundary_forest``, fitted or not; it is not changed.
        **cluster
            ``n_actors`` and the other parameters that only the class on a cluster has.
        """
        if type(forest) is not cls.local:
            raise TypeError(
                f"forest must be a boundary_forest.{cls.local.__name__}, got a "
                f"{type(forest).__name__}"
            )
        spread = cls(**forest.get_params(deep=False), **cluster)
        spread.check_params()
        encoder = None if forest.fitted is None else forest.fitted.encoder
        if encoder is not None and encoder.described() is not None:
            raise ValueError(
                "forest has learned columns of text, dates or with missing values, which a "
                "cluster does not encode: keep it in one process"
            )
        with forest.learning_paused(), forest.changing():
            forest.erase_forgotten()
            fitted: Fitted | None = forest.fitted
            if fitted is not None:
                try:
                    spread._take_over(replace(fitted, encoder=None))
                except BaseException:
                    spread.close()
                    raise
        return spread

    @classmethod
    def from_checkpoint(
        cls, checkpoint_dir: str | os.PathLike[str], *, n_actors: int | None = None, **cluster: Any
    ) -> Self:
        """Return the forest that another driver has left, with all that it had acknowledged.

        Parameters
        ----------
        checkpoint_dir : str or path-like
            The folder; nobody else may have it open.
        n_actors : int or None, default=None
            How many actors; None is as many as there were.
        **cluster
            The other parameters that only the class on a cluster has.

        Raises
        ------
        JournalError, ModelFileError
            If the folder is open elsewhere, or damaged.
        """
        folder = Path(checkpoint_dir)
        if not (folder / DRIVER).exists():
            raise FileNotFoundError(
                f"{folder} contains no forest: start one with checkpoint_dir=..."
            )
        forest: Self | None = None
        checkpoint = Checkpoint(folder, lambda: 0 if forest is None else forest.examples_seen)
        try:
            found = opened(
                checkpoint, cls.__name__, cls.label_policy, set(cls.local().get_params(deep=False))
            )
            if n_actors is None and checkpoint.latest is not None:
                n_actors = len(checkpoint.latest.trees)
            chosen = {"n_actors": n_actors, "checkpoint_dir": checkpoint_dir, **cluster}
            forest = cls(**found.parameters, **chosen)
            forest.check_params()
            forest._checkpoint = checkpoint
            if found.settings is not None and found.labels is not None:
                engine = forest._spread_engine(found.settings, found.labels, None)
                forest._fitted = Fitted(engine, found.settings, found.labels, found.feature_names)
            for batch in checkpoint.batches():
                forest.learn_batch(batch)
            forest.record_with(checkpoint)
            if checkpoint.latest is not None and forest._fitted is not None:
                held = spread_engine(forest._fitted).trees
                if held != checkpoint.latest.trees:
                    forest.save_checkpoint()
        except BaseException:
            checkpoint.close()
            raise
        return forest

    def save_checkpoint(self) -> Self:
        """Have all actors write snapshots, which make the journal before them needless.

        It happens by itself after every ``checkpoint_rows`` examples.

        Returns
        -------
        self : estimator
        """
        with self.learning_paused(), self.changing():
            self._write_snapshots()
        return self

    def _write_snapshots(self) -> None:
        checkpoint = self._checkpoint
        if checkpoint is None:
            raise ValueError(
                "there is nothing to save: checkpoint_dir is None, or nothing has been learned yet"
            )
        fitted = self._require_fitted()
        engine = spread_engine(fitted)
        checkpoint.save(type(self).__name__, self._local_parameters(), fitted, engine.trees, engine)

    def forget(self, ids: Any) -> Self:
        """Forget examples, as the estimator in one process.

        The forest is gathered for it, as for ``save``. With ``checkpoint_dir`` the call returns
        when the folder has nothing of them; if that fails, the folder has not forgotten, and the
        forest learns no more: go on with ``from_checkpoint``, and repeat the request.

        Parameters
        ----------
        ids : array-like of int or str
            As they were given to ``partial_fit``.

        Returns
        -------
        self : estimator
        """
        checkpoint = self._checkpoint
        if checkpoint is None:
            return super().forget(ids)
        with self.learning_paused(), self.changing():
            with checkpoint.forgetting(KeyError, TypeError, ValueError):
                self._fitted = forget_examples(self._fitted, ids, n_threads(self.n_jobs))
                spread_engine(self._fitted).labels = self._fitted.labels
            with checkpoint.forgetting():
                self._write_snapshots()
        return self

    def close(self) -> None:
        """End the actors, and let others open ``checkpoint_dir``."""
        with self.learning_paused():
            if self._fitted is not None:
                spread_engine(self._fitted).stop()
            if self._checkpoint is not None:
                self._checkpoint.close()
            self.record_with(None)
            self._fitted = self._checkpoint = None

    def save(
        self, path: str | os.PathLike[str], *, attachments: Mapping[str, Any] | None = None
    ) -> None:
        """Gather the forest, and save it to one file that ``boundary_forest.load`` opens.

        Parameters
        ----------
        path, attachments
            As for the estimator in one process.
        """
        self.to_local().save(path, attachments=attachments)

    def _local_parameters(self) -> dict[str, Any]:
        given = self.get_params(deep=False)
        return {name: given[name] for name in self.local().get_params(deep=False)}

    def _learn(self, call: LearningCall) -> tuple[Fitted, Any]:
        if is_dataset(call.X):
            return self._learn_dataset(call), None
        if self.checkpoint_dir is not None and self._recorder is None:
            self.check_params()
            self._open_checkpoint()
        if self._checkpoint is not None and self._fitted is None:
            call = replace(call, reset=False)  # there is nothing to forget
        result = super()._learn(call)
        if self._checkpoint is not None and self._checkpoint.n_rows >= self.checkpoint_rows:
            try:
                self.save_checkpoint()
            except OSError as error:  # what was learned is safe in the journal all the same
                warnings.warn(
                    f"could not save a snapshot ({error}); nothing is lost, and it will be "
                    "retried after the next batch",
                    RuntimeWarning,
                    stacklevel=callers_level(),
                )
        return result

    def _learn_dataset(self, call: LearningCall) -> Fitted:
        """Learn a dataset part by part; what was learned before an error stays."""
        if call.mode is not LearningMode.LEARN:
            raise TypeError(
                f"{call.mode.value} does not accept a Dataset: pass arrays, for example from "
                "dataset.iter_batches()"
            )
        if self.offline:
            raise ValueError(
                "offline=True needs all rows at once, but a Dataset is streamed: use "
                "offline=False, or pass arrays"
            )
        progress, n = LearningProgress(), 0
        try:
            for part in parts_of(call.X, call.y, call.ids):
                call = replace(call, X=part.X, y=part.y, ids=part.ids, shuffle=False)
                self._learn(call)
                call, n = replace(call, reset=False, classes=None), n + len(part.X)
                progress.add(len(part.X))
        except Exception as error:
            error.add_note(f"{n:,} rows of the dataset were learned before this error and are kept")
            raise
        finally:
            progress.close()
        if n == 0:
            raise ValueError("X is a Dataset without rows")
        return self._require_fitted()

    def _open_checkpoint(self) -> None:
        assert self.checkpoint_dir is not None
        checkpoint = Checkpoint(Path(self.checkpoint_dir), lambda: self.examples_seen)
        try:
            checkpoint.check_new()
        except BaseException:
            checkpoint.close()
            raise
        self._checkpoint = checkpoint
        self.record_with(checkpoint)

    def _is_sharded(self) -> bool:
        by_examples = getattr(self, "shard_by", None) == "examples"
        return by_examples or getattr(self, "search", None) == GRAPH

    def _new_engine(self, settings: ForestSettings, labels: LabelPolicy) -> Forest:
        if self._checkpoint is not None and self._recorder is not None:
            self._checkpoint.begin(type(self).__name__, self._local_parameters(), settings.seed)
        if self._fitted is not None:  # another takes its place, which may need its actors' room
            spread_engine(self._fitted).stop()
        return self._spread_engine(settings, labels, None)

    def _spread_engine(
        self, settings: ForestSettings, labels: LabelPolicy, state: dict[str, Any] | None
    ) -> Forest:
        cluster = Cluster(self.n_actors, self.num_cpus, self.resources)
        if self._is_sharded():
            if labels.rules["estimator"] == "nearest":
                return cast(Forest, ShardedIndex(settings, labels, cluster, state))
            if state is not None:
                raise ValueError("from_local requires shard_by='trees'")
            return cast(Forest, ShardedForest(settings, labels, cluster))
        # It has the methods of the compiled engine that estimators call.
        return cast(Forest, SpreadForest(settings, labels, cluster, state, self._checkpoint))

    def _take_over(self, fitted: Fitted) -> None:
        """Take over what an estimator in one process has learned."""
        if self.checkpoint_dir is not None:
            self._open_checkpoint()
        state = fitted.engine.snapshot().state()
        labels = copy(fitted.labels)  # each engine has classes of its own
        engine = self._spread_engine(fitted.settings, labels, state)
        self._fitted = replace(fitted, engine=engine, labels=labels)
        if self._checkpoint is not None:
            settings = fitted.settings
            self._checkpoint.begin(type(self).__name__, self._local_parameters(), settings.seed)
            self.save_checkpoint()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_checkpoint", None)  # which is this process's alone
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._fitted is not None:
            self.checkpoint_dir = None  # of the forest that this one is a copy of
            self._take_over(self._fitted)


def spread_engine(fitted: Fitted) -> SpreadForest:
    """Return the engine of a fitted estimator on a cluster."""
    return cast(SpreadForest, fitted.engine)
