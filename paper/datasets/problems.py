"""The errors of data sets: a data set is absent, or a file is not what it should be."""

from __future__ import annotations


class DataAbsentError(FileNotFoundError):
    """A data set cannot be obtained; the message says where it was sought and how to get it."""


class DataCorruptError(ValueError):
    """A file of a data set is damaged, or holds something other than its name says."""
