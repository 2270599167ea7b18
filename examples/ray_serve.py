"""A classifier on a Ray cluster that learns and answers over HTTP.

    pip install "ray[data,serve]"
    CHECKPOINT_DIR=/shared/digits serve run examples.ray_serve:app

    curl localhost:8000/learn   -d '{"X": [[0.0], [9.0]], "y": ["a", "b"]}'
    curl localhost:8000/predict -d '{"X": [[8.0]]}'

One replica drives the forest, whose trees are on actors of their own. What ``/learn`` has answered
is in CHECKPOINT_DIR, a folder that all nodes see: if the replica dies, Ray starts another, which
goes on from there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse

from boundary_forest.ray import BoundaryForestClassifier


class Digits:
    """A forest, and what requests ask of it."""

    def __init__(self, checkpoint_dir: str, n_actors: int | None = None) -> None:
        if (Path(checkpoint_dir) / "driver.bf").exists():
            self.forest = BoundaryForestClassifier.from_checkpoint(
                checkpoint_dir, n_actors=n_actors
            )
        else:
            self.forest = BoundaryForestClassifier(
                random_state=0, n_actors=n_actors, checkpoint_dir=checkpoint_dir
            )

    def learn(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Learn rows X with classes y."""
        self.forest.partial_fit(asked["X"], asked["y"])
        return {"examples_seen": self.forest.examples_seen}

    def predict(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the classes of rows X, and each class's share of the votes."""
        shares = self.forest.predict_proba(asked["X"])
        classes = self.forest.classes_
        return {
            "classes": classes.tolist(),
            "answers": classes[shares.argmax(axis=1)].tolist(),
            "shares": shares.tolist(),
        }

    async def __call__(self, request: Request) -> JSONResponse:
        """Answer a request: POST /learn or /predict, with JSON."""
        method = {"/learn": self.learn, "/predict": self.predict}.get(request.url.path)
        if method is None or request.method != "POST":
            return JSONResponse({"error": "POST to /learn or /predict"}, status_code=404)
        try:
            return JSONResponse(method(await request.json()))
        except (KeyError, TypeError, ValueError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)


# One at a time: two drivers of one forest would not know of each other.
Deployment = serve.deployment(Digits, num_replicas=1)

app = Deployment.bind(os.environ.get("CHECKPOINT_DIR", "checkpoint"))
