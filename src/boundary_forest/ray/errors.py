"""What is raised when a forest on a cluster cannot go on."""

from __future__ import annotations


class ForestLostError(RuntimeError):
    """An actor has died, and there is nothing from which its trees could be brought back."""
