"""What writer and reader agree on: names, types, order and checksums.

A model file is a safetensors file: 8 bytes that tell the header's length, the header (JSON: type,
shape and place of every array, and ``__metadata__``), and the arrays' bytes without gaps.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest import _core

# zlib's checksum, several times as fast where the processor helps.
crc32: Callable[[Any, int], int] = _core.crc32 if _core.has_fast_crc32() else zlib.crc32

FORMAT = "boundary-forest"
VERSION = 1
# Until the first release the layout of files and folders may change without a new version. Whoever
# changes it puts any other 31-bit number here (it is also the journal's application_id in SQLite),
# and what was written before is refused.
LAYOUT = 0x5A31D0E8
OTHER_LAYOUT = (
    "it was written by a development version of boundary-forest; fit and save the model again with "
    "this version"
)
ALIGNMENT = 64  # of the first array
LONGEST_DOCUMENT = 1 << 20  # whatever grows with the forest is in arrays, so this is plenty
LONGEST_HEADER = 1 << 22  # it holds the document, with quotes escaped, and a line for each array

# Arrays come with the widest type first, so that all of them are aligned without padding.
DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "F16": np.dtype("<f2"),
    "I16": np.dtype("<i2"),
    "U16": np.dtype("<u2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Streamed:
    """An array that is written block by block, because it may be as large as memory.

    Parameters
    ----------
    dtype : dtype
        Of all blocks.
    shape : tuple of int
        Of the whole.
    blocks : callable
        Gives the blocks, in order.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    blocks: Callable[[], Iterator[NDArray[Any]]]


@dataclass(frozen=True)
class Entry:
    """One array in a file.

    Parameters
    ----------
    name : str
        Its name.
    dtype : dtype
        Little-endian.
    shape : tuple of int
        Its shape.
    start : int
        Where its bytes begin, from the beginning of the arrays.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int

    @property
    def n_bytes(self) -> int:
        """The number of its bytes."""
        n = self.dtype.itemsize
        for length in self.shape:
            n *= length
        return n

    def begin_checksum(self) -> int:
        """Return the checksum of what the array is, to which that of its bytes is added."""
        return zlib.crc32(f"{self.name} {NAMES[self.dtype]} {list(self.shape)}\n".encode())


def laid_out(arrays: Mapping[str, NDArray[Any] | Streamed]) -> list[Entry]:
    """Return the arrays in the order of the file."""
    entries: list[Entry] = []
    start = 0
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize):
        entries.append(Entry(name, array.dtype.newbyteorder("<"), tuple(array.shape), start))
        start += entries[-1].n_bytes
    return entries


def as_bytes(array: NDArray[Any]) -> memoryview:
    """Return a contiguous array's memory."""
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def shown(checksum: int) -> str:
    """Return a checksum as the file has it: always of the same length."""
    return f"{checksum:08x}"


def header(document: dict[str, Any], entries: list[Entry], checksums: dict[str, str]) -> bytes:
    """Return the file up to the first array."""
    model = json.dumps({**document, "layout": LAYOUT, "checksums": checksums}, sort_keys=True)
    if len(model) > LONGEST_DOCUMENT:
        raise ValueError(
            f"the model's parameters take {len(model)} characters, but a file holds at most "
            f"{LONGEST_DOCUMENT}: make metric_params smaller"
        )
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "model": model,
        "checksum": shown(zlib.crc32(model.encode())),
    }
    described: dict[str, Any] = {"__metadata__": metadata}
    for entry in entries:
        described[entry.name] = {
            "dtype": NAMES[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [entry.start, entry.start + entry.n_bytes],
        }
    text = json.dumps(described, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if len(text) > LONGEST_HEADER:
        raise ValueError(
            f"the file's header would take {len(text)} bytes, but at most {LONGEST_HEADER} are "
            "allowed: use fewer attachments"
        )
    return len(text).to_bytes(8, "little") + text
