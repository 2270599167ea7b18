"""verbose=1 prints how far a long learning call has come, and changes nothing else."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import boundary_forest
from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors, open_durable
from boundary_forest.estimators import progress

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30_000, 8)), RNG.integers(0, 3, 30_000)


def slow(a, b):
    time.sleep(2e-4)
    return float(np.abs(a - b).sum())


@pytest.mark.parametrize(
    ("params", "rows"),
    [
        ({}, X),
        ({"shuffle": False}, X),
        ({"offline": True}, X),
        ({}, csr_matrix(X)),
        ({"metric": slow}, X[:100]),
    ],
    ids=["shuffled", "in order", "offline", "sparse", "callable metric"],
)
def test_lines_tell_how_many_rows_were_learned(params, rows, monkeypatch, capsys):
    monkeypatch.setattr(progress, "SHOWN_EVERY", 0.01)
    y = Y[: rows.shape[0]]
    quiet = BoundaryForestClassifier(random_state=0, n_estimators=8, **params).fit(rows, y)
    assert capsys.readouterr().out == ""
    forest = BoundaryForestClassifier(random_state=0, n_estimators=8, verbose=1, **params)
    forest.fit(rows, y)
    lines = capsys.readouterr().out.splitlines()
    n = f"{len(y):,}"
    begun = rf"learning {n} rows, \d+ s"
    going_on = rf"[\d,]+ of {n} rows, \d+ s, about [\d,]+ s left"
    for line in lines[:-1]:
        assert re.fullmatch(
            rf"\[BoundaryForestClassifier\] ({begun}|{going_on}|{n} of {n} rows, \d+ s)", line
        )
    assert lines[-1].startswith(f"[BoundaryForestClassifier] {n} of {n} rows, ")
    assert forest.fingerprint() == quiet.fingerprint()


def test_short_calls_print_nothing(capsys):
    forest = BoundaryForestNeighbors(verbose=1, random_state=0).fit(X[:50])
    forest.partial_fit(X[50:60])
    assert capsys.readouterr().out == ""


def test_a_call_that_fails_stops_printing(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SHOWN_EVERY", 0.01)

    def failing(a, b):
        time.sleep(1e-3)
        if b[0] == X[40, 0] or a[0] == X[40, 0]:
            raise ZeroDivisionError
        return slow(a, b)

    forest = BoundaryForestClassifier(n_estimators=2, metric=failing, verbose=True)
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        forest.fit(X[:60], Y[:60])
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("durable", [False, True])
def test_lines_tell_that_forgotten_examples_are_erased(durable, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(progress, "SHOWN_EVERY", 0.01)
    index = BoundaryForestNeighbors(verbose=1, random_state=0).fit(X, ids=np.arange(len(X)))
    if durable:
        with open_durable(tmp_path, index) as index:
            capsys.readouterr()
            index.forget(np.arange(0, len(X), 4))
    else:
        index.forget(np.arange(0, len(X), 4))
        capsys.readouterr()
        index.save(tmp_path / "index.bf")
    lines = capsys.readouterr().out.splitlines()
    name = r"\[BoundaryForestNeighbors\]"
    assert lines
    for line in lines:
        assert re.fullmatch(rf"{name} erasing what was forgotten from the trees, \d+ s", line)


def test_files_keep_it_as_a_parameter(tmp_path):
    forest = BoundaryForestClassifier(verbose=1, random_state=0).fit(X[:100], Y[:100])
    forest.save(tmp_path / "model.bf")
    assert boundary_forest.load(tmp_path / "model.bf").verbose == 1
