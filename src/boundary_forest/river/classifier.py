"""The classifier on dicts of features."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from river import base

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.class_weight import weights_of
from boundary_forest.estimators.classifier import BoundaryForestClassifier as SklearnClassifier
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.estimators.labels.class_codes import as_labels
from boundary_forest.river.adaptive_river_forest import AdaptiveRiverForest
from boundary_forest.river.named_forest import NamedForest
from boundary_forest.river.river_forest import check_lengths

if TYPE_CHECKING:
    import pandas as pd


class BoundaryForestClassifier(AdaptiveRiverForest, base.MiniBatchClassifier):
    """Online nearest-neighbour classification with a Boundary Forest.

    The same learner as :class:`boundary_forest.BoundaryForestClassifier`: with the same seed and
    the same columns they build the same forest, one example at a time or many.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees (the paper's n_T). Time and memory grow with it.
    max_children : int or None, default=50
        Maximum number of children per node (the paper's k); None is unlimited.
    metric : str or callable, default="euclidean"
        As for :class:`boundary_forest.BoundaryForestClassifier`.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    n_jobs : int or None, default=None
        Number of threads of the mini-batch methods; None is 1, -1 all cores. Results do not depend
        on it.
    seed : int or None, default=None
        Seed of the forest (scikit-learn's ``random_state``); None draws one at the first example.
    feature_weights : None or "learned", default=None
        "learned" learns weights from the stream that multiply the squared differences of features,
        for features of any scale. Requires ``metric="euclidean"``.
    max_samples : float in (0, 1] or None, default=None
        The fraction of the examples that each tree learns; below 1, trees differ more.
    weights : {"distance", "uniform", "auto", "mixture"}, default="distance"
        How the trees' predictions are weighted, as for
        :class:`boundary_forest.BoundaryForestClassifier`.
    forgetting : None, "auto" or list of int and None, default=None
        Lifetimes of the trees, in examples, as for
        :class:`boundary_forest.BoundaryForestClassifier`; see :meth:`for_streams`.
    max_stored : int or None, default=None
        The maximum number of stored examples; None: no limit.
    columns : None or "auto", default=None
        What values may be. None: numbers. "auto": numbers, text, booleans and dates, and None; a
        key that a dict lacks is then a missing value. ``for_tables`` and ``for_streams`` set it.
    class_weight : None, "balanced" or dict, default=None
        Factors that multiply the votes for each label, as for
        :class:`boundary_forest.BoundaryForestClassifier`.

    Attributes
    ----------
    feature_weights_, feature_importances_ : dict
        The weights in use, by feature, and each feature's weight times its variance, as shares that
        sum to 1. Both are empty before the first example.

    Notes
    -----
    Features are numbers; distances compare them as they are, so scale them first, or use
    ``for_tables``, which weights them. A missing feature counts as 0.0. One that appears later adds
    a column that is zero in the examples stored before; its weight is 1 until weights are learned
    again. Features of a query that no example had yet are ignored.

    Labels may be anything hashable, and new ones may come at any time. Equal votes go to the label
    that appeared first.

    Memory grows with the examples that a tree got wrong, and nothing is forgotten, unless
    ``forgetting`` or ``max_stored`` says otherwise. As with River's own models, one thread at a
    time uses a model.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from boundary_forest.river import BoundaryForestClassifier
    >>> model = preprocessing.StandardScaler() | BoundaryForestClassifier.for_tables(seed=0)
    >>> accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> accuracy.get() > 0.89
    True
    """

    def __init__(
        self,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        seed: int | None = None,
        feature_weights: str | None = None,
        max_samples: float | None = None,
        weights: str = "distance",
        forgetting: str | list[int | None] | None = None,
        max_stored: int | None = None,
        columns: str | None = None,
        class_weight: str | dict[Any, float] | None = None,
    ) -> None:
        self.class_weight = class_weight
        super().__init__(
            n_estimators,
            max_children,
            metric,
            metric_params,
            n_jobs,
            seed,
            feature_weights,
            max_samples,
            weights,
            forgetting,
            max_stored,
            columns,
        )
        # Each label's code, in order of appearance, as the engine takes it: an array of one number.
        self._codes: dict[Any, NDArray[np.float64]] = {}
        self._labels: list[Any] = []
        self._n_weighed = 0  # labels whose weights the forest knows

    def _estimator(self) -> BaseBoundaryForest:
        return SklearnClassifier(class_weight=self.class_weight, **self._shared_parameters())

    def _before_learning(self, forest: NamedForest) -> None:
        if isinstance(self.class_weight, dict) and self._n_weighed != len(self._labels):
            forest.weigh_classes(weights_of(self._labels, self.class_weight))
            self._n_weighed = len(self._labels)

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any, id: Any = None) -> None:
        """Learn one example.

        Parameters
        ----------
        x : dict
            Its features, by name.
        y : bool, int, str or whatever is hashable
            Its label.
        id : int, str or None, default=None
            Its id, by which :meth:`forget` removes it. Either all examples have ids or none.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model = BoundaryForestClassifier(seed=0)
        >>> model.learn_one({"size": 0}, "a")
        >>> model.learn_one({"size": 9}, "b")
        >>> model.predict_one({"size": 8})
        'b'
        """
        try:
            code = self._codes.get(y)
        except TypeError:  # not hashable, which is said below
            code = None
        if code is not None:
            self._learn_one(x, code, id)
            return
        with self._naming([y]):
            self._learn_one(x, self._codes[y], id)

    def learn_many(self, X: pd.DataFrame, y: pd.Series, ids: Any = None) -> None:
        """Learn the rows of a frame in their order, as if one by one.

        Parameters
        ----------
        X : DataFrame
            One row per example, one column per feature.
        y : Series
            Their labels, in the same order.
        ids : array-like of int or str, or None, default=None
            Their ids, by which :meth:`forget` removes them. Either all examples have ids or none.

        Examples
        --------
        >>> import pandas as pd
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model, X = BoundaryForestClassifier(seed=0), pd.DataFrame({"size": [0, 9]})
        >>> model.learn_many(X, pd.Series(["a", "b"]))
        >>> model.predict_one({"size": 8})
        'b'
        """
        labels = y.tolist()
        check_lengths(X, labels)
        if labels:
            with self._naming(labels):
                codes = np.concatenate([self._codes[label] for label in labels])
                self._learn_many(X, codes, ids)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Predict the probability of each label: its share of the votes; empty before the first
        example.

        Parameters
        ----------
        x : dict
            Features, by name.
        **kwargs : Any
            River's; not used.

        Returns
        -------
        shares : dict
            For every label seen so far, in order of appearance.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model = BoundaryForestClassifier(seed=0)
        >>> model.learn_one({"size": 0}, "a")
        >>> model.learn_one({"size": 9}, "b")
        >>> model.predict_proba_one({"size": 8})
        {'a': 0.0, 'b': 1.0}
        """
        if self._forest is None:
            return {}
        return dict(zip(self._labels, self._forest.shares_one(x), strict=False))

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Predict the label with the largest share of the votes; None before the first example.

        Parameters
        ----------
        x : dict
            Features, by name.
        **kwargs : Any
            River's; not used.

        Returns
        -------
        label : as it was learned

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model = BoundaryForestClassifier(seed=0)
        >>> model.learn_one({"size": 0}, "a")
        >>> model.learn_one({"size": 9}, "b")
        >>> model.predict_one({"size": 8})
        'b'
        """
        if self._forest is None:
            return None
        return self._labels[int(self._forest.predict_one(x))]

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Predict the probability of each label for every row.

        Parameters
        ----------
        X : DataFrame
            One row per query, one column per feature.

        Returns
        -------
        shares : DataFrame
            X's index; a column for every label seen so far.

        Examples
        --------
        >>> import pandas as pd
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model, X = BoundaryForestClassifier(seed=0), pd.DataFrame({"size": [0, 9]})
        >>> model.learn_many(X, pd.Series(["a", "b"]))
        >>> model.predict_proba_many(X).to_dict("list")
        {'a': [1.0, 0.0], 'b': [0.0, 1.0]}
        """
        import pandas as pd

        if self._forest is None:
            shares = np.empty((len(X), 0))
        elif len(X) == 0:
            shares = np.empty((0, len(self._labels)))
        else:
            shares = self._forest.shares(X, self._n_threads())
        return pd.DataFrame(shares, index=X.index, columns=self._labels[: shares.shape[1]])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the label with the largest share of the votes for every row.

        Parameters
        ----------
        X : DataFrame
            One row per query, one column per feature.

        Returns
        -------
        labels : Series
            With X's index; None before the first example.

        Examples
        --------
        >>> import pandas as pd
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model, X = BoundaryForestClassifier(seed=0), pd.DataFrame({"size": [0, 9]})
        >>> model.learn_many(X, pd.Series(["a", "b"]))
        >>> model.predict_many(X).tolist()
        ['a', 'b']
        """
        import pandas as pd

        if self._forest is None or len(X) == 0:
            return pd.Series([None] * len(X), index=X.index, dtype=object)
        codes = self._forest.predict(X, self._n_threads())
        return pd.Series([self._labels[int(code)] for code in codes], index=X.index)

    def _all_labels(self) -> NDArray[Any]:
        return as_labels(self._labels)

    def _explanation(self, forest: NamedForest, x: dict[Any, Any]) -> Explanation:
        explanation = forest.explanation(x, np.arange(len(self._labels)))
        return explanation.relabelled(self._labels.__getitem__)

    @contextmanager
    def _naming(self, labels: list[Any]) -> Iterator[None]:
        """Give new labels their codes, unless then nothing is learned."""
        known = len(self._labels)
        seen = 0 if self._forest is None else self._forest.examples_seen
        try:
            for label in labels:
                _check_label(label)
                if label not in self._codes:
                    self._codes[label] = np.full((1, 1), float(len(self._labels)))
                    self._labels.append(label)
            yield
        except BaseException:
            self._n_weighed = 0
            if self._forest is None or self._forest.examples_seen == seen:
                for label in self._labels[known:]:
                    del self._codes[label]
                del self._labels[known:]
            raise


def _check_label(label: Any) -> None:
    if not isinstance(label, Hashable):
        raise TypeError(f"y must be hashable, for example a bool, int or str, got {label!r}")
    if label is None or (isinstance(label, float) and math.isnan(label)):
        raise ValueError(f"y must be a label, got {label!r}: skip examples without a label")
