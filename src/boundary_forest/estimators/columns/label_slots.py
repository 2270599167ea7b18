"""Labels as few numbers, whose means columns of text are encoded by.

Classes get words of three bits, in order of appearance: two classes differ in one bit, up to four
are told apart by the means of the bits, and more share them. Measured, that is as good as a number
for each class, and the number of features stays small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

N_BITS = 3
WORDS = np.array(
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]],
    dtype=np.float64,
)
MOST_OUTPUTS = 16  # of a target that are encoded by


@dataclass(frozen=True)
class LabelSlots:
    """Which numbers labels count in: the bits of classes, or the outputs of targets.

    Parameters
    ----------
    classes : tuple of int or None
        The codes of the classes in order of appearance; None in regression.
    n_outputs : int, default=0
        Numbers of a target.
    """

    classes: tuple[int, ...] | None = None
    n_outputs: int = 0

    @property
    def n_slots(self) -> int:
        """Number of slots."""
        return min(self.n_outputs, MOST_OUTPUTS) if self.classes is None else N_BITS

    @property
    def shown(self) -> tuple[int, ...]:
        """The slots that are features: a bit becomes one with the first class that has it."""
        n = self.n_slots
        return tuple(range(n if self.classes is None else min(n, max(0, len(self.classes) - 1))))

    def joined_by(self, labels: NDArray[np.float64]) -> LabelSlots:
        """Return the slots with further classes, in order of appearance."""
        if self.classes is None or (len(labels) == 1 and int(labels[0, 0]) in self._places):
            return self
        codes, first = np.unique(labels[:, 0].astype(np.int64), return_index=True)
        new = [int(codes[i]) for i in np.argsort(first) if int(codes[i]) not in self._places]
        return LabelSlots((*self.classes, *new)) if new else self

    def vectors(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return labels as vectors, of shape (n_labels, n_slots)."""
        if self.classes is None:
            return labels[:, : self.n_slots]
        return WORDS[[self._places[int(code)] for code in labels[:, 0].tolist()]]

    @cached_property
    def _places(self) -> dict[int, int]:
        """The word of each class."""
        return {code: i % len(WORDS) for i, code in enumerate(self.classes or ())}
