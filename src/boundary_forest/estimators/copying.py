"""Pickles, and copies of every kind: the engine goes along as the arrays it consists of."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from typing import Any

TABLES = {"_ids", "_published"}


class CopiedWithEngine:
    """An estimator whose copy is the same forest, and goes on learning exactly as it would.

    pickle, joblib and copy all ask for the state. It is taken between two learning calls, and put
    back, from a pickle as from a model file, by ``_adopt``, which believes nothing.
    """

    _engine: Any

    def _learning(self) -> AbstractContextManager[Any]:
        """Exclude other learning calls."""
        raise NotImplementedError

    def _empty_engine(self) -> Any:
        """An engine with the parameters of the one in use."""
        raise NotImplementedError

    def _check_state(self, state: dict[str, Any]) -> None:
        """Refuse an engine's state that does not go with what else the estimator knows."""

    def __getstate__(self) -> dict[str, Any]:
        if not hasattr(self, "_engine"):
            return self._without_engine()
        with self._learning():
            return {**self._without_engine(), "_engine_state": self._engine.state()}

    def _without_engine(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        for name in ("_learning_lock", "_engine", "_journal"):
            state.pop(name, None)
        for name in TABLES & state.keys():  # they grow with their engine, and each copy has its own
            state[name] = copy.deepcopy(state[name])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        engine_state = state.pop("_engine_state", None)
        super().__setstate__(state)  # type: ignore[misc]
        if engine_state is not None:
            self._adopt(engine_state)

    def _adopt(self, state: dict[str, Any], *, positions: str = "copied") -> None:
        """Get an engine with this state; positions are "copied", "kept" or "mapped"."""
        self._check_state(state)
        engine = self._empty_engine()
        engine.restore(state, positions)
        self._engine = engine
