"""The classifier: an example is kept where a tree would have named another class."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from boundary_forest.estimators.adaptive import (
    ADAPTIVE_CONSTRAINTS,
    STREAM_CONSTRAINTS,
    AdaptiveMixin,
    StreamsMixin,
)
from boundary_forest.estimators.base import PARAMETER_CONSTRAINTS, BaseBoundaryForest
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.forest_settings import BALANCED
from boundary_forest.estimators.labels import ClassLabels
from boundary_forest.estimators.learning_call import LearningCall, LearningMode
from boundary_forest.estimators.prequential import PredictThenLearnMixin
from boundary_forest.estimators.sample_weight import refuses_sample_weight

Shares = tuple[NDArray[np.float64], NDArray[Any]]  # of each class in each row, and the classes


class BoundaryForestClassifier(
    ClassifierMixin, PredictThenLearnMixin, AdaptiveMixin, StreamsMixin, BaseBoundaryForest
):
    """Online nearest-neighbour classification with a Boundary Forest.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees (the paper's n_T). More trees are more accurate, up to a point; time and
        memory grow in proportion.
    max_children : int or None, default=50
        Maximum number of children per node (the paper's k). None is unlimited: a query then costs a
        power of the number of examples instead of its logarithm.
    metric : str or callable, default="euclidean"
        "euclidean" or "l2", "manhattan" or "l1", "chebyshev", "minkowski" (with
        ``metric_params={"p": p}``), "cosine", "hamming" or "canberra"; a function of two float64
        arrays; or a compiled function with an ``address``, such as numba's ``cfunc`` of signature
        ``float64(CPointer(float64), CPointer(float64), int64)``.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    dtype : {"auto", "uint8", "int8", "float16", "float32", "float64"}, default="auto"
        Type in which vectors are stored. "auto" follows the first batch, but never chooses int8 or
        float16, which save memory and give the same results as float32.
    offline : bool, default=False
        Whether ``fit`` lets each tree learn the data in its own random order (the paper's OBF).
    n_jobs : int or None, default=None
        Number of threads; None is 1, -1 all cores. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest; None draws one.
    feature_weights : None, "learned" or array-like of shape (n_features,), default=None
        Weights that multiply the squared differences of features, as scipy's ``w`` does. "learned"
        learns the weights from the stream, for features of any scale.
        Requires ``metric="euclidean"``.
    max_samples : float in (0, 1] or None, default=None
        The fraction of the examples that each tree learns, drawn at random. Below 1, trees differ
        more and learning costs less.
    weights : {"distance", "uniform", "auto", "mixture"}, default="distance"
        How the trees' predictions are combined:

        - "distance": weighted by 1 / distance, as in the paper.
        - "uniform": all trees count the same.
        - "auto": weighted by 1 / distance ** p, with the p in {0, 0.5, 1, 2} that made the fewest
          mistakes on recent rows. With ``forgetting``, the recent accuracy of each tree counts too.
        - "mixture": up to four models are combined, such as means and ridge regressions of the
          stored examples found, and linear models of all rows. Their weights are fitted to
          predictions of recent rows, made before these were learned. Probabilities are calibrated,
          and none is 0.
          Requires ``metric="euclidean"``. The guides on tables and on streams list the models.

        Except with "mixture", stored examples at distance 0 decide alone.
    forgetting : None, "auto" or list of int and None, default=None
        Lifetimes of the trees, in examples, assigned in turn. At the end of its lifetime, a tree is
        replaced by one that has learned the latest examples; None in the list is an unlimited
        lifetime. None: no tree is replaced, as in the paper. See :meth:`for_streams`.
    max_stored : int or None, default=None
        The maximum number of stored examples, at least 4 per tree. When it is nearly reached, the
        tree with the oldest example is rebuilt from the newer half of its examples. None: no limit.
    shuffle : bool, default=True
        Whether ``fit`` learns its rows in an order drawn from the seed, so that rows sorted by
        class or target do no harm. With False, ``fit`` is ``partial_fit`` from nothing. Rows keep
        their numbers either way. With ``offline=True`` it has no effect.
    class_weight : None, "balanced" or dict, default=None
        Factors that multiply the votes for each class. "balanced" is n_samples / (n_classes *
        count), as in scikit-learn, where count is the number of learned examples of the class,
        without forgotten ones. A dict has a factor above 0 for each class; a class that it lacks
        has the factor 1, and classes that have not appeared yet are allowed. The trees do not
        depend on the factors. None: no factors.
    columns : None or "auto", default=None
        What X may contain. None: numbers. "auto": columns of numbers, text, categories, booleans
        and dates, in a frame of pandas, polars or pyarrow, an array, or a list of dicts, with
        missing values anywhere. What is known about columns is learned from the stream; new
        categories may appear at any time. See the guide on frames.
    verbose : int or bool, default=0
        Whether ``fit`` and ``partial_fit`` print every few seconds how many rows were learned and
        how long the rest will take. It acts at once, like ``n_jobs``, and changes no forest.

    Attributes
    ----------
    classes_ : ndarray
        The classes seen so far, sorted.
    seed_ : int
        The seed in use.
    feature_weights_ : ndarray of shape (n_features_in_,)
        The weights of the features in use; 1 without any.
    mixture_ : dict
        With ``weights="mixture"``, the weight of each expert that has one, by name.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Each feature's weight times its variance, as shares that sum to 1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the first batch was a data frame whose columns are all named by text. Later
        frames must have the same names in the same order; with ``columns="auto"``, in any order.

    Notes
    -----
    Rows in order, such as sorted ones, turn the trees into chains, and learning N of them takes
    time proportional to N^2: shuffle the rows first, or use ``for_tables`` or ``for_streams``,
    which rebuild trees that become too deep.

    Classes may be text, integers, booleans, or objects of one kind that sort. They are kept as they
    were given: text of any length stays whole, and kinds do not mix.

    Positions are kept dense. A sparse X is accepted and made dense by blocks of rows, so that a
    call needs 64 MB more and not the whole of X; with a callable metric, and in an offline ``fit``,
    it is made dense at once. If the rows are mostly zeros, project them first, for example with
    :class:`sklearn.random_projection.SparseRandomProjection`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from boundary_forest import BoundaryForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = BoundaryForestClassifier(random_state=0)
    >>> for start in range(0, 1500, 100):
    ...     forest = forest.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> forest.score(X[1500:], y[1500:]) > 0.9
    True
    """

    label_policy = ClassLabels

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        **ADAPTIVE_CONSTRAINTS,
        **STREAM_CONSTRAINTS,
        "class_weight": [dict, StrOptions({BALANCED}), None],
    }

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
        feature_weights: Any = None,
        max_samples: float | None = None,
        weights: str = "distance",
        forgetting: Any = None,
        max_stored: int | None = None,
        shuffle: bool = True,
        class_weight: Any = None,
        columns: str | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            max_children=max_children,
            metric=metric,
            metric_params=metric_params,
            dtype=dtype,
            offline=offline,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.feature_weights = feature_weights
        self.max_samples = max_samples
        self.weights = weights
        self.forgetting = forgetting
        self.max_stored = max_stored
        self.shuffle = shuffle
        self.columns = columns
        self.class_weight = class_weight

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes seen so far, sorted, without those that were forgotten."""
        fitted = self._attributes("classes_")
        return _labels(fitted).classes(fitted.engine.n_classes)

    @refuses_sample_weight
    def fit(self, X: Any, y: Any, *, ids: Any = None) -> Self:
        """Learn from scratch; everything learned before is discarded.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors; ``shuffle`` says in which order they are learned.
        y : array-like of shape (n_samples,)
            Their classes.
        ids : array-like of shape (n_samples,) or None, default=None
            Ids of the examples, int64 or str, unique in the batch and among the stored examples;
            ``kneighbors`` then returns them. Either all batches have ids or none.

        Returns
        -------
        self : BoundaryForestClassifier

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[0], [9]], ["a", "b"])
        >>> forest.score([[1], [8]], ["a", "b"])
        1.0
        """
        self._learn(LearningCall(X, y, ids, reset=True, shuffle=self.shuffle))
        return self

    @refuses_sample_weight
    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, ids: Any = None) -> Self:
        """Continue learning; new classes may appear at any time.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors, in the order in which they are learned.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like or None, default=None
            Classes that ``classes_`` should have even if none of their examples came yet, or if
            all were forgotten.
        ids : array-like of shape (n_samples,) or None, default=None
            Ids of the examples, int64 or str, unique in the batch and among the stored examples;
            ``kneighbors`` then returns them. Either all batches have ids or none.

        Returns
        -------
        self : BoundaryForestClassifier

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).partial_fit([[0]], ["b"])
        >>> forest.partial_fit([[9]], ["a longer name"]).classes_.tolist()
        ['a longer name', 'b']
        >>> forest.score([[1], [8]], ["b", "a longer name"])
        1.0
        """
        self._learn(LearningCall(X, y, ids, classes))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class with the largest share of the votes; ties go to the first class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        y : ndarray of shape (n_samples,)

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[0], [9]], ["a", "b"])
        >>> forest.predict([[1], [8]]).tolist()
        ['a', 'b']
        """
        return self._predicted(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class: its share of the votes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``. New classes add columns, and a class that ``forget`` left
            without an example loses its column.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[0], [9]], ["a", "b"])
        >>> forest.predict_proba([[1], [8]])
        array([[1., 0.],
               [0., 1.]])
        """
        fitted = self._require_fitted()
        while (shares := _joined(self._query_blocks(fitted, X, _shares))) is None:
            pass  # a class was forgotten between two blocks
        return shares

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        log_shares : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``; -inf for a class without votes.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[0], [9]], ["a", "b"])
        >>> forest.predict_log_proba([[1], [8]])
        array([[  0., -inf],
               [-inf,   0.]])
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict_proba_then_learn(
        self, X: Any, y: Any, *, ids: Any = None, return_ends: bool = False
    ) -> Any:
        """Predict class probabilities for each row just before the row is learned.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors, in the order in which they are predicted and learned.
        y : array-like of shape (n_samples,)
            Their classes.
        ids : array-like of shape (n_samples,) or None, default=None
            Their ids, as for ``partial_fit``.
        return_ends : bool, default=False
            Whether to return the stored examples that voted as well.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_`` after the call. A class has probability 0 before its first
            example; in the very first row, all have.
        ends : Ends
            If ``return_ends``, as for ``predict_then_learn``.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).partial_fit([[0]], ["b"])
        >>> forest.predict_proba_then_learn([[9], [8]], ["a", "b"])
        array([[0., 1.],
               [1., 0.]])
        """
        _, shares, ends = self._answered_then_learned(
            X, y, ids, LearningMode.ESTIMATE_THEN_LEARN, return_ends
        )
        if len(shares) < len(y):
            shares = np.concatenate([np.zeros((1, shares.shape[1])), shares])
        return shares if ends is None else (shares, ends)


def _labels(fitted: Fitted) -> ClassLabels:
    assert isinstance(fitted.labels, ClassLabels)
    return fitted.labels


def _shares(fitted: Fitted, rows: NDArray[Any], n_threads: int) -> Shares:
    engine = fitted.engine
    while True:
        table = _labels(fitted).shown_table(engine.n_classes)
        shares = engine.estimate(rows, n_threads, table.ranks)
        if shares is not None:  # else a class was published meanwhile
            return shares, table.classes


def _joined(parts: list[Shares]) -> NDArray[np.float64] | None:
    """The shares of successive blocks; a later one may know more classes, which had no share.

    None if it does not know all classes that an earlier one knew.
    """
    if len(parts) == 1:
        return parts[0][0]
    classes = parts[-1][1]
    if not all(np.isin(known, classes).all() for _, known in parts):
        return None
    every = np.zeros((sum(len(shares) for shares, _ in parts), len(classes)))
    start = 0
    for shares, known in parts:
        every[start : start + len(shares), np.searchsorted(classes, known)] = shares
        start += len(shares)
    return every
