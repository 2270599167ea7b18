"""Files that a release leaves for later versions to load: ``python -m release_files FOLDER``.

Writes ``FOLDER/<version>/``: a model file of every kind in ``models/``, a durable folder of every
kind in ``durable/``, a stream's folder with its source in ``stream/``, and ``answers.json``: what
the release itself answered. ``make fixtures`` runs it; later versions must give the same answers.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from damaged_files import raw_rows, samples
from stream_rows import job, mixed_table, write

import boundary_forest
from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    load,
    open_durable,
)
from boundary_forest.cli.job import run
from boundary_forest.frames import FrameModel

ANSWERS = "answers.json"
FEW = {"n_estimators": 4, "random_state": 0}


def write_release(folder):
    """Write the files of this version; return their folder."""
    place = Path(folder) / boundary_forest.__version__
    (place / "models").mkdir(parents=True)
    samples(place / "models")
    for name, forest in durable_forests().items():
        learn_durably(forest, place / "durable" / name)
    write(mixed_table(200), place / "stream.csv")
    resume_stream(place)
    (place / ANSWERS).write_text(json.dumps(answers_of(place), indent=1) + "\n")
    return place


def durable_forests():
    """A forest for each kind of durable folder."""
    return {
        "classifier": BoundaryForestClassifier(**FEW),
        "regressor": BoundaryForestRegressor(**FEW),
        "neighbors": BoundaryForestNeighbors(**FEW),
        "general": BoundaryForest(**FEW, epsilon=0.5),
        "streams": BoundaryForestClassifier.for_streams(**FEW),
    }


def learn_durably(forest, folder):
    """Learn, take a snapshot, and leave every operation in the journal."""
    X = queries(90)
    y = X[:, 0].astype(int) % 3 if isinstance(forest, BoundaryForestClassifier) else X[:, 0]
    ids = np.arange(90)
    with open_durable(folder, forest) as durable:
        for rows in np.split(ids, [40, 80]):
            durable.partial_fit(X[rows], y[rows], ids=ids[rows])
            if rows[0] == 0:
                durable.snapshot()
        durable.forget([3, 70])
        if isinstance(forest, BoundaryForestNeighbors):
            durable.upsert(X[:2] + 1, ids[:2])


def resume_stream(place, model=None):
    """Begin or continue the stream whose folder and source are in a place."""
    source = job(place / "stream.csv", target="label", durable=place / "stream", save=model)
    if run(source) != 0:
        raise RuntimeError(f"the stream in {place} could not be continued")


def queries(n=20):
    """Rows of five features."""
    return np.random.default_rng(1).integers(0, 9, size=(n, 5)).astype(np.float32)


def answers_of(place):
    """What this version answers from the files of a release, by their names; they do not change."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(shutil.copytree(place, Path(temporary) / "copy"))
        answers = {}
        for path in sorted((copy / "models").iterdir()):
            answers[f"models/{path.name}"] = answered(load(path))
        for path in sorted((copy / "durable").iterdir()):
            with open_durable(path) as forest:
                answers[f"durable/{path.name}"] = answered(forest)
        resume_stream(copy, copy / "stream.bf")
        rows = mixed_table(20, seed=1).drop_columns("label")
        answers["stream"] = load(copy / "stream.bf").predict(rows).tolist()
        return json.loads(json.dumps(answers))


def answered(forest):
    """What a forest answers."""
    if isinstance(forest, FrameModel):
        rows = raw_rows(20)
        del rows["kind"]
        return forest.predict(rows).tolist()
    if hasattr(forest, "predict"):
        return forest.predict(queries()[:, : forest.n_features_in_]).tolist()
    return [part.tolist() for part in forest.kneighbors(queries(), 3)]


if __name__ == "__main__":
    print(write_release(sys.argv[1]))
