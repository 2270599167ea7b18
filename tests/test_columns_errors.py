"""columns="auto": errors name the column, the value and the remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from boundary_forest import BoundaryForestClassifier
from tests.column_tables import mixed_table


def auto(**more):
    return BoundaryForestClassifier(columns="auto", random_state=0, n_estimators=5, **more)


@pytest.fixture(scope="module")
def fitted():
    frame, y = mixed_table()
    return auto().fit(frame, y)


def test_text_in_a_column_of_numbers(fitted):
    frame, _ = mixed_table()
    frame["age"] = frame["age"].astype(object)
    frame.loc[3, "age"] = "unknown"
    with pytest.raises(TypeError, match=r"column 'age'.*numbers.*'unknown'.*to_numeric"):
        fitted.predict(frame)


def test_numbers_in_a_column_of_dates(fitted):
    frame, _ = mixed_table()
    frame["since"] = 7
    with pytest.raises(TypeError, match=r"column 'since'.*dates.*7.*to_datetime"):
        fitted.predict(frame)


def test_a_column_that_is_not_there(fitted):
    frame, _ = mixed_table()
    with pytest.raises(ValueError, match="yet now missing:\n- city"):
        fitted.predict(frame.drop(columns="city"))
    with pytest.raises(ValueError, match="unseen at fit time:\n- town"):
        fitted.predict(frame.rename(columns={"city": "town"}))


def test_infinity():
    with pytest.raises(ValueError, match=r"infinity"):
        auto().fit(np.array([[1.0], [np.inf]]), [0, 1])
    frame = pd.DataFrame({"a": ["x", "y"], "b": [1.0, np.inf]})
    with pytest.raises(ValueError, match=r"column 'b'.*inf.*missing"):
        auto().fit(frame, [0, 1])


def test_values_of_no_kind():
    frame = pd.DataFrame({"n": [1, 2], "tags": [["a"], ["b"]]})
    with pytest.raises(TypeError, match=r"column 'tags'.*list.*drop or encode"):
        auto().fit(frame, [0, 1])


def test_integers_beyond_float64():
    with pytest.raises(ValueError, match=r"column 'n'.*2\*\*53"):
        auto().fit(pd.DataFrame({"n": [2**60 + 1, 3], "t": ["a", "b"]}), [0, 1])


def test_parameters_that_need_to_know_all_features():
    with pytest.raises(ValueError, match=r"columns='auto'.*hamming"):
        auto(metric="hamming").fit([[0], [1]], [0, 1])
    with pytest.raises(ValueError, match=r"columns='auto' requires feature_weights"):
        auto(feature_weights=[1.0]).fit([[0], [1]], [0, 1])
    with pytest.raises(TypeError, match=r"dtype='uint8'.*text.*float32"):
        auto(dtype="uint8").fit([["a"], ["b"]], [0, 1])


def test_text_without_columns_is_refused_as_before():
    with pytest.raises(ValueError, match="X"):
        BoundaryForestClassifier().fit(pd.DataFrame({"t": ["a", "b"]}), [0, 1])


def test_a_refused_batch_changes_nothing(fitted):
    frame, y = mixed_table()
    before = fitted.fingerprint()
    bad = frame.assign(age="old")
    with pytest.raises(TypeError):
        fitted.partial_fit(bad, y)
    assert fitted.fingerprint() == before


def test_a_row_as_a_series_and_a_lazy_frame_are_refused_with_what_to_pass():
    frame, y = mixed_table(40)
    forest = BoundaryForestClassifier.for_tables(n_estimators=3, random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match=r"X is a Series.*\[X.to_dict\(\)\]"):
        forest.predict(frame.iloc[0])
    assert forest.predict([frame.iloc[0].to_dict()]) == forest.predict(frame[:1])
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"pass X.collect\(\)"):
        forest.predict(polars.from_pandas(frame).lazy())
