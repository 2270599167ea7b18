"""The example of a Ray Serve deployment learns, answers, and goes on after a crash."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("ray.serve", exc_type=ImportError)

EXAMPLE = Path(__file__).parents[1] / "examples" / "ray_serve.py"


def test_requests_are_learned_and_answered(tmp_path, one_process):
    digits = runpy.run_path(str(EXAMPLE))["Digits"]
    service = digits(str(tmp_path), n_actors=2)
    learned = service.learn({"X": [[0.0], [9.0]], "y": ["a", "b"]})
    assert learned == {"examples_seen": 2}
    answer = {"classes": ["a", "b"], "answers": ["b"], "shares": [[0.0, 1.0]]}
    assert service.predict({"X": [[8.0]]}) == answer
    service.forest.close()
    again = digits(str(tmp_path), n_actors=2)
    assert again.predict({"X": [[8.0]]}) == answer
    again.forest.close()
