"""Searches from other threads while an index is changed: each sees one state, and none goes back.

A search does not say which state it saw. So the steps are first taken alone, and what is found
after each is written down; then they are taken again with readers, and each finding is looked up.
Searches are exact, or with a beam as wide as the index, so that growing it anew changes no answer.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

from boundary_forest import BoundaryForestNeighbors

FEATURES = 3
QUERIES = np.random.default_rng(1).normal(size=(6, FEATURES)).astype(np.float32)
QUESTIONS = {
    "by the graph": lambda index: index.kneighbors(QUERIES, 4, beam=2000, exact=False),
    "exactly": lambda index: index.kneighbors(QUERIES, 4, exact=True),
    "allowed ids": lambda index: index.kneighbors(
        QUERIES, 2, beam=2000, allowed=range(50, 5000), exact=False
    ),
    "within a radius": lambda index: [
        part
        for parts in index.radius_neighbors(QUERIES, 0.5, beam=2000, exact=False)
        for part in parts
    ],
}


def steps(n):
    """Changes that are published once each; the index begins with 60 rows."""
    rng, learned, gone = np.random.default_rng(0), 60, 0
    for step in range(n):
        if step % 3 == 0:
            count = int(rng.integers(1, 12))
            ids, learned = np.arange(learned, learned + count), learned + count
            yield "partial_fit", rng.normal(size=(count, FEATURES)).astype(np.float32), ids
        elif step % 3 == 1:  # near the queries, so that answers change
            near = QUERIES[:1] + rng.normal(size=(1, FEATURES)) / 10
            yield "upsert", near.astype(np.float32), [learned - 1]
        else:
            count = int(rng.integers(3, 9))
            yield "forget", np.arange(gone, gone + count)
            gone += count


def begun(n_jobs):
    X = np.random.default_rng(2).normal(size=(60, FEATURES)).astype(np.float32)
    index = BoundaryForestNeighbors(n_estimators=5, random_state=0, n_jobs=n_jobs)
    return index.fit(X, ids=np.arange(60))


def change(index, step):
    name, *arguments = step
    if name == "partial_fit":
        index.partial_fit(arguments[0], ids=arguments[1])
    else:
        getattr(index, name)(*arguments)


def found(index, question):
    return [np.asarray(part).tolist() for part in QUESTIONS[question](index)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_while_rows_come_go_and_move_sees_one_state(n_jobs):
    alone, n_steps = begun(n_jobs), 300
    answers = {question: [found(alone, question)] for question in QUESTIONS}
    n_anew = 0
    for step in steps(n_steps):
        before = alone.fitted.engine.n_forgotten
        change(alone, step)
        n_anew += alone.fitted.engine.n_forgotten < before
        for question, of_states in answers.items():
            of_states.append(found(alone, question))
    assert n_anew > 1  # it was grown anew on the way
    index, done, wrong = begun(n_jobs), threading.Event(), []
    n_seen = dict.fromkeys(QUESTIONS, 0)

    def read(question):
        at, of_states = 0, answers[question]
        while True:
            last = done.is_set()
            answer, state = found(index, question), at
            while state < len(of_states) and of_states[state] != answer:
                state += 1
            if state == len(of_states):
                wrong.append((question, at, answer in of_states))
                return
            n_seen[question] += state != at
            at = state
            if last:
                return

    readers = [threading.Thread(target=read, args=[question]) for question in QUESTIONS]
    for reader in readers:
        reader.start()
    for step in steps(n_steps):
        change(index, step)
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong  # question, state before, whether it went back
    assert max(n_seen.values()) > 3
