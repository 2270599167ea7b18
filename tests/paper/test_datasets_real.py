"""The real data sets, where BOUNDARY_FOREST_DATA names a folder of them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from paper import datasets

# rows to learn, rows to ask, features, type of X
FORMS = {
    "dna": (1400, 1186, 180, np.uint8),
    "letter": (10500, 5000, 16, np.float32),
    "mnist": (60000, 10000, 784, np.uint8),
    "pendigits": (7494, 3498, 16, np.uint8),
    "protein": (14895, 6621, 357, np.float32),
    "seismic": (78823, 19705, 50, np.float32),
    "abalone": (3133, 1044, 10, np.float64),
    "california": (16512, 4128, 8, np.float64),
    "covtype": (15120, 565892, 54, np.int16),
    "electricity": (30000, 15312, 6, np.float64),
    "glove100": (118000, 2000, 100, np.float32),
}
# Of the files that MNIST was first published in.
MNIST = {
    "X_train": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "y_train": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "X_test": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "y_test": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}


def test_every_set_has_its_form_here():
    assert set(FORMS) == set(datasets.names())


@pytest.mark.parametrize("name", FORMS)
def test_sizes_and_types_are_the_published_ones(name, real_data):
    n_train, n_test, n_features, dtype = FORMS[name]
    data = real_data(name)
    assert datasets.available(name)
    assert data.X_train.shape == (n_train, n_features)
    assert data.X_test.shape == (n_test, n_features)
    assert data.X_train.dtype == data.X_test.dtype == dtype
    beside = ("words_train", "words_test") if name == "glove100" else ("y_train", "y_test")
    assert [len(data[key]) for key in beside] == [n_train, n_test]


def test_labels_are_the_published_ones(real_data):
    labels = {"dna": (1, 3), "letter": (1, 26), "mnist": (0, 9), "pendigits": (0, 9)}
    for name, (first, last) in labels.items():
        data = real_data(name)
        for y in (data.y_train, data.y_test):
            assert np.unique(y).tolist() == list(range(first, last + 1))


@pytest.mark.parametrize("key", MNIST)
def test_mnist_is_byte_for_byte_the_original(key, real_data):
    values = real_data("mnist")[key]
    sizes = (len(values), 28, 28) if key[0] == "X" else (len(values),)
    header = np.array([0x0800 + len(sizes), *sizes], dtype=">i4")
    assert hashlib.sha256(header.tobytes() + values.tobytes()).hexdigest() == MNIST[key]
