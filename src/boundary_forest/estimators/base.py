"""What the estimators share: parameters, and calls over what was learned.

Estimators validate and never compute: whatever touches a distance, a tree or a vote is in the
compiled engine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from boundary_forest.estimators.adaptive import check_adaptive
from boundary_forest.estimators.checking import takes_any_columns
from boundary_forest.estimators.class_weight import check_class_weight
from boundary_forest.estimators.copying import Parts, put_together, taken_apart
from boundary_forest.estimators.engine_constants import (
    ELEMENT_TYPES,
    FEWEST_CHILDREN,
    METRICS,
    MOST_CHILDREN,
    MOST_TREES,
)
from boundary_forest.estimators.fitted import Fitted, Forest, new_engine
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.estimators.learning import LearningMixin
from boundary_forest.estimators.metrics import ALIASES, engine_metric
from boundary_forest.estimators.queries import QueryMixin

# Of this process and this estimator alone: copies begin without them.
_NOT_COPIED = ("_fitted", "_recorder", "_learning_lock", "_runs")


PARAMETER_CONSTRAINTS: dict[str, list[Any]] = {
    "n_estimators": [Interval(Integral, 1, MOST_TREES, closed="both")],
    "max_children": [Interval(Integral, FEWEST_CHILDREN, MOST_CHILDREN, closed="both"), None],
    "metric": [StrOptions({*METRICS, *ALIASES}), callable],
    "metric_params": [dict, None],
    "dtype": [StrOptions({"auto", *ELEMENT_TYPES})],
    "offline": ["boolean"],
    "n_jobs": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Integral, None, -1, closed="right"),
        None,
    ],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class BaseBoundaryForest(LearningMixin, QueryMixin, BaseEstimator):
    """A forest behind scikit-learn's methods.

    ``_fitted`` is all that was learned, as one value. Queries use whichever is there when they
    begin; learning calls exclude each other.

    Attributes
    ----------
    label_policy : type
        What labels mean in the estimator's task.
    encodes_columns : bool
        Whether columns may be of any kind if ``columns`` says so.
    """

    label_policy: ClassVar[type[LabelPolicy]]
    encodes_columns: ClassVar[bool] = True  # with columns="auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PARAMETER_CONSTRAINTS

    def __init__(
        self,
        *,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        dtype: str = "auto",
        offline: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_children = max_children
        self.metric = metric
        self.metric_params = metric_params
        self.dtype = dtype
        self.offline = offline
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        any_kind = takes_any_columns(self)
        tags.input_tags.allow_nan = tags.input_tags.string = any_kind
        tags.input_tags.categorical = any_kind
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    # What was learned

    @property
    def fitted(self) -> Fitted | None:
        """All that was learned, as one value that is only ever replaced; None before."""
        return self._fitted

    @fitted.setter
    def fitted(self, fitted: Fitted | None) -> None:
        self._fitted = fitted

    @property
    def seed_(self) -> int:
        """The seed in use."""
        return self._attributes("seed_").settings.seed

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        return self._attributes("n_features_in_").n_columns

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, if the first batch was a data frame with names."""
        names = self._attributes("feature_names_in_").feature_names
        if names is None:
            raise AttributeError(
                "feature_names_in_ does not exist: the first batch had no feature names"
            )
        return names

    @property
    def examples_seen(self) -> int:
        """How many examples were learned; 0 before fitting."""
        fitted = self._fitted
        return 0 if fitted is None else int(fitted.engine.seen)

    def _attributes(self, name: str) -> Fitted:
        if self._fitted is None:
            raise AttributeError(
                f"{type(self).__name__} has no {name} before it is fitted: call fit or "
                "partial_fit first"
            )
        return self._fitted

    def _new_engine(self, settings: ForestSettings, labels: LabelPolicy) -> Forest:
        """Return the engine that a forest begins to learn with."""
        return new_engine(settings, labels)

    def check_params(self) -> None:
        """Raise the error that ``fit`` would raise for a parameter that cannot be used.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> BoundaryForestClassifier(metric="minkowski", metric_params={"p": 0}).check_params()
        Traceback (most recent call last):
            ...
        ValueError: metric_params['p'] must be a finite number >= 1, got 0
        """
        self._validate_params()
        engine_metric(self.metric, self.metric_params)
        check_adaptive(vars(self))
        check_class_weight(vars(self).get("class_weight"))

    # Files and copies

    def save(
        self, path: str | os.PathLike[str], *, attachments: Mapping[str, Any] | None = None
    ) -> None:
        """Save the forest to a file that :func:`boundary_forest.load` reads.

        The loaded forest predicts and continues to learn exactly like this one. The file is
        replaced atomically: after a crash, the old or the new file is complete.

        Parameters
        ----------
        path : str or path-like
            The file; its folder must exist. The permissions of an existing file are kept.
        attachments : dict of JSON values or None, default=None
            Further documents for the file, by name, which ``boundary_forest.files.load_forest``
            returns with the forest.

        Raises
        ------
        TypeError
            If labels are neither str, int, bool, float nor bytes, or parameters are not JSON: use
            pickle instead. Functions (a metric, label metric or estimator) are saved by name and
            must be passed to ``load``.
        OSError
            If the file cannot be written; the old one stays as it was.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import boundary_forest
        >>> forest = boundary_forest.BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "model.bf"
        ...     forest.save(path)
        ...     boundary_forest.load(path).fingerprint() == forest.fingerprint()
        True
        """
        # Files know estimators; this is the one place where it is the other way round.
        from boundary_forest.files import save_forest

        save_forest(self, path, attachments)

    def __getstate__(self) -> dict[str, Any]:
        with self.learning_paused(), self.changing():  # a copy is made between two learning calls
            state = {k: v for k, v in super().__getstate__().items() if k not in _NOT_COPIED}
            self.erase_forgotten()
            fitted = self._fitted
            if fitted is not None:
                state["_parts"] = taken_apart(fitted, fitted.engine.snapshot().state())
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        parts: Parts | None = state.pop("_parts", None)
        super().__setstate__(state)
        if parts is not None:
            try:
                self._fitted = put_together(self.label_policy, parts)
            except MemoryError:
                raise
            except Exception as error:  # of the bindings, too: std::bad_cast is a RuntimeError
                what = f"{type(error).__name__}: {error}"
                raise ValueError(f"the pickled forest is damaged ({what})") from error
