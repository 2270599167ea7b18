"""What actors do, done by one process: to test what they do takes no time to start them."""

from __future__ import annotations

import random

from boundary_forest.ray.actor_group import ActorGroup, ActorLostError, PartialForest


class OneProcess(ActorGroup):
    """The parts of a forest, without Ray; they die as it is set here."""

    mortality = 0.0  # the share of calls with which a part dies, before or after it has done them
    chances = random.Random(0)
    n_deaths = 0

    def start(self, i, state):
        self._actors[i] = PartialForest(*self._made_of, self.trees[i], state)

    def check_started(self):
        pass

    def stop(self):
        self._actors = [None] * len(self)

    def put(self, value):
        return value

    def submit(self, method, *arguments, only=None, **options):
        chosen = range(len(self)) if only is None else only
        return [(i, self._result(i, method, arguments, options)) for i in chosen]

    def _result(self, i, method, arguments, options):
        if any(one is LOST for one in arguments):
            return LOST
        chance = OneProcess.chances.random()
        if self._actors[i] is None or chance < OneProcess.mortality / 2:
            return self._die(i)
        result = getattr(self._actors[i], method)(*arguments, **options)
        return self._die(i) if chance < OneProcess.mortality else result

    def _die(self, i):
        if self._actors[i] is not None:
            OneProcess.n_deaths += 1
        self._actors[i] = None
        return LOST

    def results(self, pending):
        lost = [i for i, result in pending if result is LOST]
        if lost:
            raise ActorLostError(lost)
        return [result for _, result in pending]


LOST = object()
