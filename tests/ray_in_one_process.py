"""What actors do, done by one process: to test what they do takes no time to start them."""

from __future__ import annotations

from boundary_forest.ray.actors import Crew, Part


class OneProcess(Crew):
    """The parts of a forest, without Ray."""

    def __init__(self, cluster, settings, labels, trees, states=None):
        self.trees = trees
        states = [None] * len(trees) if states is None else states
        self._actors = [
            Part(settings, labels, held, state) for held, state in zip(trees, states, strict=True)
        ]

    def put(self, value):
        return value

    def submit(self, method, *arguments, only=None, **options):
        chosen = range(len(self)) if only is None else only
        return [getattr(self._actors[i], method)(*arguments, **options) for i in chosen]

    def results(self, references):
        return references
