"""The model file: one safetensors container of arrays and a document that says what they are.

``writing.py`` replaces a file as a whole or not at all, ``reading.py`` believes nothing that it has
not checked, ``layout.py`` is what both agree on, and ``values.py`` turns labels, ids, names and
parameters into what a container can hold, and back; these four know files and no forest.
``saving.py`` makes a document and arrays of a forest, ``restoring.py`` a forest of these, and
``loading.py`` offers that to users. ``docs/format.md`` describes the file array by array.
"""

from boundary_forest.files.layout import LAYOUT, OTHER_LAYOUT, VERSION, Streamed
from boundary_forest.files.loading import load, load_forest
from boundary_forest.files.reading import Arrays, ModelFile, ModelFileError, PackedArrays
from boundary_forest.files.saving import save_forest
from boundary_forest.files.writing import make_folder, remove_unfinished, write_model

__all__ = [
    "LAYOUT",
    "OTHER_LAYOUT",
    "VERSION",
    "Arrays",
    "ModelFile",
    "ModelFileError",
    "PackedArrays",
    "Streamed",
    "load",
    "load_forest",
    "make_folder",
    "remove_unfinished",
    "save_forest",
    "write_model",
]
