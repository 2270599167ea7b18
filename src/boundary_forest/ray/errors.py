"""What is raised when a forest on a cluster cannot go on."""

from __future__ import annotations


class ForestLostError(RuntimeError):
    """An actor has died, and there is nothing from which its trees could be brought back."""


class ActorLostError(RuntimeError):
    """Actors have died, or results of theirs are lost.

    Attributes
    ----------
    actors : list of int
        Which of them had to do with it.
    """

    def __init__(self, actors: list[int]) -> None:
        super().__init__(f"actors {actors} have died")
        self.actors = actors
