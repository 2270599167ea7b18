"""The model file: one safetensors container of arrays and a document that says what they are.

This package knows files, not forests: ``writing.py`` replaces a file as a whole or not at all,
``reading.py`` believes nothing that it has not checked, ``layout.py`` is what both agree on, and
``values.py`` turns labels, ids, names and parameters into what a container can hold, and back.
``docs/format.md`` describes the file array by array.
"""

from boundary_forest.files.layout import VERSION, Streamed
from boundary_forest.files.reading import Arrays, ModelFile, PackedArrays
from boundary_forest.files.writing import make_folder, remove_unfinished, write_model

__all__ = [
    "VERSION",
    "Arrays",
    "ModelFile",
    "PackedArrays",
    "Streamed",
    "make_folder",
    "remove_unfinished",
    "write_model",
]
