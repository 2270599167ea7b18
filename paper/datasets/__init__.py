"""Data sets: those of the paper, and some streams, regressions and word vectors beside them.

>>> from paper import datasets
>>> mnist = datasets.load("mnist")  # doctest: +SKIP
>>> mnist.X_train.shape  # doctest: +SKIP
(60000, 784)

A data set is read from the folder that ``$BOUNDARY_FOREST_DATA`` names, else from the cache, else
downloaded from the site that publishes it. If none of these has it, :class:`DataAbsentError` is
raised; no other data set is substituted.
"""

from paper.datasets.catalogue import names
from paper.datasets.loading import available, load
from paper.datasets.problems import DataAbsentError, DataCorruptError

__all__ = ["DataAbsentError", "DataCorruptError", "available", "load", "names"]
