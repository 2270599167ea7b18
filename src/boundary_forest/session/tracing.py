"""Which rows of a source were used: checksums of what they mean, in order.

A session that is resumed reads its source from the beginning, and skips what was used. By these
checksums it notices that the source has changed meanwhile. They cover positions and targets, so a
source may change its format, its columns that are not used and the rows that come later.
"""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

REFUSED, UNLABELLED = "!", "?"


@dataclass
class Trace:
    """The rows that were used, from one on.

    Parameters
    ----------
    first : int
        The number of the first row that it covers. That is 1, unless the warm-up refused rows: it
        did so by what it knew of the columns then, and nobody can repeat that.
    positions, labels : int
        CRC-32 of the rows' positions, and of their targets or why they have none.
    """

    first: int = 1
    positions: int = 0
    labels: int = 0

    def add(self, X: NDArray[Any], y: NDArray[Any] | None) -> None:
        """Add rows that were answered, and learned if ``y`` is not None."""
        self.positions = zlib.crc32(X.astype(np.float64).tobytes(), self.positions)
        texts = [UNLABELLED] * len(X) if y is None else list(map(str, y.tolist()))
        self._add_texts(texts)

    def add_refused(self) -> None:
        """Add a row that cannot be used."""
        self._add_texts([REFUSED])

    def _add_texts(self, texts: list[str]) -> None:
        content = "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")
        self.labels = zlib.crc32(content, self.labels)

    def to_json(self) -> dict[str, int]:
        """Return it as plain JSON."""
        return asdict(self)
