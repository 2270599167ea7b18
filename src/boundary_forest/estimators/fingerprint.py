"""A forest's hash: what it was told, and per tree who came under whom, in order of creation.

Examples are known by arrival number, so that the layout of memory does not enter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from boundary_forest.estimators.engine_state import trees_in
from boundary_forest.estimators.metrics import name_of


def digest_of(settings: dict[str, Any], state: dict[str, Any], label_names: Iterable[Any]) -> str:
    """32 hexadecimal digits from the settings, the engine's state and what its labels mean."""
    told = [(key, name_of(v) if callable(v) else v) for key, v in sorted(settings.items())]
    sizes = state["tree_sizes"].tolist()
    digest = hashlib.blake2b(repr((told, state["seen"], sizes)).encode(), digest_size=16)
    arrivals = state["arrivals"]
    for examples, parents in trees_in(state):
        digest.update(arrivals[examples].tobytes())
        digest.update(arrivals[examples[parents[1:]]].tobytes())
    digest.update(arrivals.tobytes())
    positions = state["positions"]
    digest.update(positions if positions.dtype == np.uint8 else positions + 0.0)  # -0.0 is 0.0
    for name in label_names:
        digest.update(name if isinstance(name, bytes) else repr(name).encode())
    return digest.hexdigest()
