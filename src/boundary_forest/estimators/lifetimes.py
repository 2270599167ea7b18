"""How long the trees of a forest live that forgets."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from boundary_forest.estimators.engine_constants import LONGEST_LIFETIME, SHORTEST_LIFETIME

# What measurement found best on streams of all kinds: half of the trees live for ever, an eighth
# for 4,096 arrivals, and the rest for 16, 64, 256 and 1,024. Trees take them in turn.
_RENEWED = (4096, 16, 256, 64, 1024, 4096, 16, 64, 256, 1024, 4096, 64, 16, 1024, 256, 4096)
AUTO: tuple[int | None, ...] = tuple(life for renewed in _RENEWED for life in (None, renewed))


def checked_lifetimes(forgetting: Any) -> None:
    """Refuse what is neither None, "auto" nor lifetimes, with a ValueError."""
    if forgetting is None or (isinstance(forgetting, str) and forgetting == "auto"):
        return
    if isinstance(forgetting, str) or not hasattr(forgetting, "__len__") or not len(forgetting):
        raise ValueError(
            f"forgetting must be None, 'auto' or a list of lifetimes, got {forgetting!r}"
        )
    for lifetime in forgetting:
        whole = isinstance(lifetime, Integral) and not isinstance(lifetime, bool)
        if lifetime is not None and not (
            whole and SHORTEST_LIFETIME <= lifetime <= LONGEST_LIFETIME
        ):
            raise ValueError(
                f"forgetting contains the lifetime {lifetime!r}: each lifetime must be a number "
                f"of examples from {SHORTEST_LIFETIME} to {LONGEST_LIFETIME}, or None for trees "
                "that are never replaced"
            )


def as_written(forgetting: Any) -> str | list[int | None] | None:
    """Return the parameter as JSON has it too."""
    if forgetting is None or isinstance(forgetting, str):
        return forgetting
    return [None if lifetime is None else int(lifetime) for lifetime in forgetting]


def lifetimes_of(forgetting: str | Sequence[int | None] | None, n_trees: int) -> list[int]:
    """Return the lifetime of each tree, 0 for ever; nothing if no tree forgets."""
    if forgetting is None:
        return []
    lifetimes = AUTO if isinstance(forgetting, str) else forgetting
    return [lifetimes[i % len(lifetimes)] or 0 for i in range(n_trees)]
