"""Reading a model file: nothing is believed before it is checked.

The safetensors library reads the header: it makes sure that the arrays fill the file without gaps,
and that types, shapes and sizes agree. All else is checked here or by whoever reads an array. A
file that breaks a rule raises ModelFileError, which names the array.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load

from boundary_forest.files.layout import (
    DTYPES,
    FORMAT,
    LAYOUT,
    LONGEST_DOCUMENT,
    LONGEST_HEADER,
    OTHER_LAYOUT,
    VERSION,
    Entry,
    crc32,
    shown,
)

BLOCK_BYTES = 1 << 20  # read at once, so that their checksum finds them in cache
MOST_TRIES = 100  # to open a file that others save to meanwhile


class ModelFileError(ValueError):
    """A model file that cannot be loaded: which array it is, and what is wrong with it."""


class Arrays:
    """Named arrays from somewhere, and how to refuse them.

    Attributes
    ----------
    path : str
        Where they are, for errors.
    entries : dict
        The arrays that there are, by name.
    """

    path: str
    entries: dict[str, Entry]

    def array(self, name: str, dtype: str, n_dimensions: int = 1) -> NDArray[Any]:
        """Return an array of this type, whole and undamaged."""
        raise NotImplementedError

    def error(self, what: str, array: str | None = None) -> ModelFileError:
        """Return the error to raise, which names the array."""
        where = self.path if array is None else f"{self.path}: {array}"
        return ModelFileError(f"{where}: {what}")

    @contextmanager
    def checking(self, array: str | None = None) -> Iterator[None]:
        """Return a context in which what is refused is the file's fault."""
        try:
            yield
        except ModelFileError:
            raise
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self.error(str(error) or type(error).__name__, array) from error

    def entry(self, name: str) -> Entry:
        """Return what is known of an array that must be there."""
        if name not in self.entries:
            raise self.error("it is missing", name)
        return self.entries[name]

    def expect(self, entry: Entry, dtype: str, n_dimensions: int) -> None:
        """Refuse an array of another type or number of dimensions."""
        if entry.dtype != np.dtype(dtype):
            raise self.error(f"its dtype must be {dtype}, got {entry.dtype}", entry.name)
        if len(entry.shape) != n_dimensions:
            raise self.error(
                f"it must have {n_dimensions} dimensions, got shape {entry.shape}", entry.name
            )


class PackedArrays(Arrays):
    """The arrays of a container in memory, whose bytes were checked by whoever kept them."""

    def __init__(self, contents: bytes, where: str) -> None:
        self.path = where
        try:
            self._arrays = load(contents)
        except SafetensorError as error:
            raise self.error(f"it is not a safetensors container ({error})") from error
        self.entries = {
            name: Entry(name, array.dtype, array.shape, 0) for name, array in self._arrays.items()
        }

    def array(self, name: str, dtype: str, n_dimensions: int = 1) -> NDArray[Any]:
        """Return an array of this type."""
        self.expect(self.entry(name), dtype, n_dimensions)
        return self._arrays[name]


class ModelFile(Arrays):
    """A file whose header and document were found sound; its arrays are read when they are needed.

    Attributes
    ----------
    path : str
        As it was given.
    size : int
        Bytes in all.
    version : int
        Of its format.
    document : dict
        What the arrays are.
    entries : dict
        The arrays that there are, by name.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"{self.path} is a directory, not a model file")
        if not stat.S_ISREG(mode):  # reading a pipe might never end
            raise self.error("it is not a regular file")
        for _ in range(MOST_TRIES):
            if self._open_and_read_header():
                return
        raise self.error("it was replaced repeatedly while it was being read: try again")

    def _open_and_read_header(self) -> bool:
        """Whether that was one and the same file; else a new one was saved in between."""
        self._file: BinaryIO = open(self.path, "rb")  # noqa: SIM115, it is a context manager itself
        opened = os.fstat(self._file.fileno())
        self.size = opened.st_size
        done = False
        try:
            self._read_header()
            done = os.path.samestat(opened, os.stat(self.path))
        except ModelFileError:
            if os.path.samestat(opened, os.stat(self.path)):
                raise
        finally:
            if not done:
                self.close()
        return done

    def close(self) -> None:
        """Close the file; arrays that were read or mapped stay."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The header

    def _read_header(self) -> None:
        if self.size == 0:
            raise self.error("it is empty")
        length = int.from_bytes(self._file.read(8), "little")
        self._file.seek(0)
        if LONGEST_HEADER < length < self.size:  # a million arrays take the library a minute
            raise self.error(
                f"its header is longer than {LONGEST_HEADER} bytes, which no model file has"
            )
        try:
            with safe_open(self.path, framework="numpy") as container:
                metadata = container.metadata() or {}
                described = [
                    (name, part.get_dtype(), tuple(part.get_shape()))
                    for name in container.offset_keys()
                    for part in [container.get_slice(name)]
                ]
        except SafetensorError as error:
            raise self.error(
                f"it is not a safetensors file, or it is truncated ({error})"
            ) from error
        self._check_metadata(metadata)
        self.document = self._read_document(metadata)
        self.entries = self._place(described)
        checksums = self.document.get("checksums")
        if not isinstance(checksums, dict) or checksums.keys() != self.entries.keys():
            raise self.error("the arrays do not match the list of checksums")
        self._checksums = checksums

    def _check_metadata(self, metadata: dict[str, str]) -> None:
        if metadata.get("format") != FORMAT:
            raise self.error("it is a safetensors file, but not a model of boundary_forest")
        version = metadata.get("version", "")
        if not (version.isascii() and version.isdigit() and len(version) < 9 and int(version) > 0):
            raise self.error(f"its format version must be a number, got {version[:20]!r}")
        if int(version) > VERSION:
            raise self.error(
                f"its format version is {version}, but this release reads only up to {VERSION}: "
                "install a newer boundary-forest"
            )
        self.version = int(version)

    def _read_document(self, metadata: dict[str, str]) -> dict[str, Any]:
        text = metadata.get("model", "")
        if len(text) > LONGEST_DOCUMENT:
            raise self.error(f"its document is longer than {LONGEST_DOCUMENT} characters")
        content = text.encode("utf-8", "surrogatepass")
        if metadata.get("checksum") != shown(zlib.crc32(content)):
            raise self.error("its document is damaged: the checksum differs")
        with self.checking("document"):
            document = json.loads(text)
        if not isinstance(document, dict):
            raise self.error("its document is not an object")
        if document.get("layout") != LAYOUT:
            raise self.error(OTHER_LAYOUT)
        return document

    def _place(self, described: list[tuple[str, str, tuple[int, ...]]]) -> dict[str, Entry]:
        """Arrays in the order of the file, without gaps: so their lengths tell where they are."""
        entries, start = {}, 0
        for name, dtype, shape in described:
            if dtype not in DTYPES:
                raise self.error(f"its dtype {dtype} is not supported", name)
            entries[name] = Entry(name, DTYPES[dtype], shape, start)
            start += entries[name].n_bytes
        self._begin = self.size - start
        length = int.from_bytes(self._file.read(8), "little")
        if self._begin != 8 + length:
            raise self.error("it was changed while it was being read")
        return entries

    # The arrays

    def array(self, name: str, dtype: str, n_dimensions: int = 1) -> NDArray[Any]:
        """Return an array of this type, read whole, its checksum checked."""
        entry = self.entry(name)
        self.expect(entry, dtype, n_dimensions)
        data = np.empty(entry.n_bytes, dtype=np.uint8)
        content = memoryview(data)  # type: ignore[arg-type]
        self._file.seek(self._begin + entry.start)
        checksum = entry.begin_checksum()
        for start in range(0, len(content), BLOCK_BYTES):
            block = content[start : start + BLOCK_BYTES]
            if self._file.readinto(block) != len(block):  # type: ignore[attr-defined]
                raise self.error("the file ends inside this array", name)
            checksum = crc32(block, checksum)
        if self._checksums[name] != shown(checksum):
            raise self.error("it is damaged: the checksum differs", name)
        with self.checking(name):  # an empty array may have any length in another dimension
            return data.view(entry.dtype).reshape(entry.shape)

    def mapped(self, name: str) -> NDArray[Any]:
        """Return the array in its file, unread; the mapping lives as long as the array."""
        entry = self.entry(name)
        mapping = mmap.mmap(self._file.fileno(), self.size, mmap.MAP_PRIVATE, mmap.PROT_READ)
        start = self._begin + entry.start
        if start % entry.dtype.itemsize:
            raise self.error("it is not aligned in the file: load it with mmap=False", name)
        flat = np.frombuffer(mapping, np.uint8, entry.n_bytes, start)
        return flat.view(entry.dtype).reshape(entry.shape)
