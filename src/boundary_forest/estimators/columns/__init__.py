"""Columns of any kind as features: numbers, text, booleans, dates and missing values.

``reading`` turns what users pass into :class:`RawRows`, and ``encoder`` turns these into features,
strictly in order of arrival, so that batches do not matter.
"""

from boundary_forest.estimators.columns.encoded_rows import EncodedRows
from boundary_forest.estimators.columns.encoder import ColumnEncoder, LearnedPart
from boundary_forest.estimators.columns.label_slots import LabelSlots
from boundary_forest.estimators.columns.raw_rows import RawRows

__all__ = ["ColumnEncoder", "EncodedRows", "LabelSlots", "LearnedPart", "RawRows"]
