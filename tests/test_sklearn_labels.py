"""What scikit-learn's users pass with labels: weights of samples, several labels, logarithms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, VotingClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from boundary_forest import BoundaryForest, BoundaryForestClassifier, BoundaryForestRegressor

X, Y = load_iris(return_X_y=True)
WEIGHTS = np.linspace(1, 2, len(Y))
ESTIMATORS = [BoundaryForestClassifier, BoundaryForestRegressor, BoundaryForest]


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_sample_weight_is_refused_with_what_to_do_instead(kind, method):
    forest = kind()
    assert not has_fit_parameter(forest, "sample_weight")
    with pytest.raises(TypeError, match=r"does not accept sample_weight.* repeat rows"):
        getattr(forest, method)(
            X, Y[:, None] if kind is BoundaryForest else Y, sample_weight=WEIGHTS
        )
    assert forest.fitted is None


def test_sample_weight_none_is_no_weight():
    forest = BoundaryForestClassifier(random_state=0).fit(X, Y, sample_weight=None)
    assert forest.fingerprint() == BoundaryForestClassifier(random_state=0).fit(X, Y).fingerprint()


def test_meta_estimators_know_that_weights_are_not_supported():
    forest = BoundaryForestClassifier(n_estimators=5, random_state=0)
    with pytest.raises(ValueError, match="doesn't support sample_weight"):
        AdaBoostClassifier(forest).fit(X, Y)
    voting = VotingClassifier([("forest", forest), ("bayes", GaussianNB())])
    with pytest.raises(TypeError, match="does not accept sample_weight"):
        voting.fit(X, Y, sample_weight=WEIGHTS)
    with pytest.warns(UserWarning, match="does not appear to accept sample_weight"):
        CalibratedClassifierCV(forest).fit(X, Y, sample_weight=WEIGHTS)
    pipeline = make_pipeline(StandardScaler(), forest)
    with pytest.raises(TypeError, match="repeat rows of X and y, or set class_weight"):
        pipeline.fit(X, Y, boundaryforestclassifier__sample_weight=WEIGHTS)
    for meta in (
        pipeline,
        CalibratedClassifierCV(forest),
        BaggingClassifier(forest, n_estimators=3, random_state=0),
        VotingClassifier([("forest", forest), ("bayes", GaussianNB())], voting="soft"),
    ):
        assert meta.fit(X, Y).score(X, Y) > 0.9


def test_multilabel_targets_are_refused_and_multioutput_learns_them():
    X, Y = make_multilabel_classification(200, n_classes=3, random_state=0)
    forest = BoundaryForestClassifier(n_estimators=10, random_state=0)
    for y in (Y, csr_matrix(Y), Y.tolist(), [[0, 1], [1], *Y[2:].tolist()]):
        with pytest.raises(ValueError, match="MultiOutputClassifier or ClassifierChain"):
            forest.fit(X, y)
    assert forest.fitted is None
    for meta in (MultiOutputClassifier(forest), ClassifierChain(forest)):
        assert meta.fit(X, Y).predict(X).shape == Y.shape
    assert BoundaryForest(random_state=0).fit(X, Y).predict(X).shape == Y.shape


def test_log_probabilities_are_logarithms_of_probabilities():
    forest = BoundaryForestClassifier(random_state=0).fit(X[::2], Y[::2])
    with np.errstate(divide="ignore"):
        expected = np.log(forest.predict_proba(X))
    np.testing.assert_array_equal(forest.predict_log_proba(X), expected)
