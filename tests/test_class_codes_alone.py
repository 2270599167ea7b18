"""A label that comes alone gets the code that it gets among others."""

from __future__ import annotations

import numpy as np
import pytest

from boundary_forest.estimators.labels.class_codes import ClassCodes


@pytest.mark.parametrize("kind", [np.int64, np.str_, np.bool_, np.float64])
def test_labels_one_by_one_are_encoded_as_together(kind):
    labels = np.random.default_rng(0).integers(0, 12, 200).astype(kind)
    together, _ = ClassCodes.empty().encode(labels)
    table, alone = ClassCodes.empty(), []
    for i in range(len(labels)):
        code, table = table.encode(labels[i : i + 1])
        alone.append(code)
    assert np.concatenate(alone).tolist() == together.tolist()
    assert all(code.dtype == np.float64 and code.shape == (1,) for code in alone)
