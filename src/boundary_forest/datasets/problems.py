"""What can be wrong with a data set: it is not there, or it is not what it should be."""

from __future__ import annotations


class DataAbsentError(FileNotFoundError):
    """A data set is not to be had; says where it was looked for, and how to get it."""


class DataCorruptError(ValueError):
    """A file of a data set is damaged, or holds something else than its name says."""
