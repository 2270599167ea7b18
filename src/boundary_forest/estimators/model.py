"""What every model of this package that predicts can do, whether it is a forest or wraps one."""

from __future__ import annotations

import os
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Model(Protocol):
    """What forests, durable forests and frame models have in common.

    What they take differs: a forest takes positions and labels, a frame model raw rows.
    """

    @property
    def examples_seen(self) -> int:
        """How many examples were learned."""

    def predict(self, *queries: Any, **options: Any) -> Any:
        """Return the answer to each query."""

    def partial_fit(self, *examples: Any, **options: Any) -> Any:
        """Continue learning."""

    def predict_then_learn(self, *examples: Any, **options: Any) -> Any:
        """Return the answer to each example from just before it was learned."""

    def explain(self, *query: Any, **options: Any) -> Any:
        """Return the answer to one query and what it is made of."""

    def stats(self) -> dict[str, Any]:
        """Return what was learned and what it cost."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to a file."""

    def fingerprint(self) -> str:
        """Return a hash of the whole model."""
