"""The running scores: of each answer as it was given, counted when its target is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.frames.columns import CLASSIFY, REGRESS
from boundary_forest.service.settings import REGRESSION
from boundary_forest.session.class_measures import as_text
from boundary_forest.session.events import NO_ANSWERS, Answered, Answers
from boundary_forest.session.scores import Scores


def answers_of(
    task: str, values: NDArray[Any] | None, shares: Any = None, classes: Any = None
) -> list[dict[str, Any]]:
    """Return the answer to each row: its prediction, and probabilities by class.

    Parameters
    ----------
    task : str
        The task.
    values : ndarray or None
        Answers of regression.
    shares, classes : ndarray
        Each class's share of the votes, and the classes.
    """
    if task == REGRESSION:
        assert values is not None
        return [{"prediction": None if x != x else x} for x in values.tolist()]
    names = [as_text(value) for value in classes.tolist()]
    labels, answers = classes.tolist(), []
    for row, best in zip(shares.tolist(), shares.argmax(axis=1).tolist(), strict=True):
        if row[best] > 0:
            probabilities = dict(zip(names, row, strict=True))
            answers.append({"prediction": labels[best], "probabilities": probabilities})
        else:  # of the very first row, before which nothing had been learned
            answers.append(dict(no_answer(task)))
    return answers


def no_answer(task: str) -> dict[str, Any]:
    """Return the answer to a row before anything was learned."""
    return {"prediction": None} if task == REGRESSION else {"prediction": None, "probabilities": {}}


def response_of(task: str, answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return answers as the members of a response."""
    found: dict[str, Any] = {"predictions": [answer["prediction"] for answer in answers]}
    if task != REGRESSION:
        found["probabilities"] = [answer["probabilities"] for answer in answers]
    return found


def count(
    scores: Scores,
    task: str,
    y: NDArray[Any],
    answers: list[dict[str, Any]],
    arrival: int | None,
) -> list[tuple[Answered, NDArray[np.float64] | None]]:
    """Count rows that are learned; return them with what the scores say of them.

    Parameters
    ----------
    scores : Scores
        Changed in place.
    task : str
        The task.
    y : ndarray
        Their targets.
    answers : list of dict
        The answer to each as it was given; that of ``no_answer`` if nobody asked for one.
    arrival : int or None
        The arrival number of the first; None as long as the nearest row alone decides.
    """
    known = np.array([answer["prediction"] is not None for answer in answers])
    counted = []
    if not known.all():
        counted.append(_added(scores, task, y[~known], NO_ANSWERS, arrival))
    given = [answer for answer in answers if answer["prediction"] is not None]
    if given:
        if task == REGRESSION:
            predicted = [answer["prediction"] for answer in given]
            result = Answers(np.array(predicted, dtype=np.float64))
        else:
            result = _classified(given)
        counted.append(_added(scores, task, y[known], result, arrival))
    return counted


def _classified(given: list[dict[str, Any]]) -> Answers:
    names = list(dict.fromkeys(name for answer in given for name in answer["probabilities"]))
    shares = np.array(
        [[answer["probabilities"].get(name, 0.0) for name in names] for answer in given]
    )
    values = np.empty(len(given), dtype=object)
    values[:] = [answer["prediction"] for answer in given]
    return Answers(values, shares.max(axis=1), shares, np.array(names, dtype=object))


def _added(
    scores: Scores, task: str, y: NDArray[Any], result: Answers, arrival: int | None
) -> tuple[Answered, NDArray[np.float64] | None]:
    kind = REGRESS if task == REGRESSION else CLASSIFY
    nothing = np.zeros((len(y), 0))
    rows = Answered(kind, np.arange(len(y)), None, nothing, y, result, arrival=arrival)
    return rows, scores.add(rows)
