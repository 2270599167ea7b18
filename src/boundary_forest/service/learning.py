"""One group of jobs: checked each, written in one transaction, learned in one call."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from boundary_forest.estimators.errors import JournalError
from boundary_forest.service.errors import ServiceError, unavailable, unprocessable
from boundary_forest.service.jobs import (
    KEEP,
    LABEL,
    PREDICT_THEN_LEARN,
    UPSERT,
    Job,
    Part,
    Preparation,
)
from boundary_forest.service.model import FORMAT, SCORES, TARGET_KIND, ServiceModel
from boundary_forest.service.recorder import Recorder, Scored
from boundary_forest.service.rows import joined
from boundary_forest.service.scoring import answers_of, count, no_answer, response_of
from boundary_forest.service.settings import CLASSIFICATION, RETRIEVAL, Limits
from boundary_forest.service.tables import Changes, Response
from boundary_forest.service.targets import target_array

Outcome = tuple[Job, bytes | Exception]


class LearningFailedError(Exception):
    """A call that was written could not be learned: the process must start again."""


class GroupLearner:
    """Learns groups of jobs.

    Parameters
    ----------
    model : ServiceModel
        The model.
    recorder : Recorder
        Where learned rows are recorded.
    limits : Limits
        What a client may take.
    committed : callable
        Called after each commit, before the group is learned, with the outcomes of its jobs that
        learn nothing.
    """

    def __init__(
        self,
        model: ServiceModel,
        recorder: Recorder,
        limits: Limits,
        committed: Callable[[list[Outcome]], None],
    ) -> None:
        self._model = model
        self._recorder = recorder
        self._limits = limits
        self._committed = committed

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Do jobs, of which no two have an id or a key in common; return what became of them.

        Those that were handed to ``committed`` are left out.
        """
        outcomes: list[Outcome] = []
        preparation, parts = Preparation(self._model, self._limits, jobs), list[Part]()
        for job in jobs:
            try:
                repeated = self._repeated(job)
                if repeated is None:
                    parts.append(preparation.part(job))
                else:
                    outcomes.append((job, repeated))
            except ServiceError as error:
                outcomes.append((job, error))
        if not parts:
            return outcomes
        try:
            return outcomes + self._commit(parts, preparation)
        except (TypeError, ValueError) as error:  # of the forest, before anything was written
            if len(parts) > 1:
                return outcomes + [one for part in parts for one in self.run([part.job])]
            refused = unprocessable(" ".join(str(error).split()))
        except JournalError as error:
            self._check_not_written(error)
            refused = unavailable("the journal could not be written: is the disk full?")
        return outcomes + [(part.job, refused) for part in parts]

    def _check_not_written(self, error: JournalError) -> None:
        """Begin with what the disk has; raise if the call is there without having been learned."""
        tables = self._model.tables
        tables.load()
        if tables.group.first + tables.group.n > self._model.forest.examples_seen:
            raise LearningFailedError(str(error)) from error

    def _repeated(self, job: Job) -> bytes | None:
        """Return the response to an idempotency key that was used before."""
        if job.key is None:
            return None
        found = self._model.tables.response(job.key)
        if found is None:
            return None
        if found.content is None:
            raise ServiceError(
                410, "erased_response", "this key was used, and its response was erased by forget"
            )
        if found.body != job.digest:
            raise unprocessable("this key was used with another request", "Idempotency-Key")
        return found.content

    def _commit(self, parts: list[Part], preparation: Preparation) -> list[Outcome]:
        model, tables = self._model, self._model.tables
        kept = [part for part in parts if part.job.kind == KEEP]
        parts = [part for part in parts if part.job.kind != KEEP]
        learned = [part for part in parts if part.n]
        asks = any(part.job.kind == PREDICT_THEN_LEARN for part in learned)
        first = model.forest.examples_seen
        n = sum(part.n for part in learned)
        changes = Changes(
            kept=[row for part in kept for row in part.kept],
            labelled=[id for p in parts if p.job.kind == LABEL for id in p.ids],
        )
        scores = model.scores.copied() if learned else model.scores
        if learned:
            changes.group = tables.new_group(first, n, answered=not asks)
            if model.format is None and preparation.format is not None:
                changes.state[FORMAT] = json.dumps(preparation.format.to_json())
            if model.target_kind != preparation.target_kind:
                changes.state[TARGET_KIND] = json.dumps(preparation.target_kind)
            if model.task != RETRIEVAL:
                changes.learned = [id for part in learned for id in part.ids]
        scored: Scored = []
        if not asks:
            responses = self._responses(parts, first)
            scored = self._count(scores, learned, preparation)
            self._record(changes, parts, responses, scores)
        with model.forest.learning_paused():  # a snapshot comes before or after all of this
            done = self._outcomes(kept, self._responses(kept, first))
            answers = self._write_and_learn(learned, changes, preparation, done)
            if asks:
                self._give_answers(learned, answers)
                responses = self._responses(parts, first)
                scored = self._count(scores, learned, preparation)
                self._answer(parts, responses, scores)
        model.scores = scores
        self._recorder.learned(scored)
        return self._outcomes(parts, responses)

    @staticmethod
    def _outcomes(parts: list[Part], responses: list[bytes]) -> list[Outcome]:
        return [(part.job, response) for part, response in zip(parts, responses, strict=True)]

    def _write_and_learn(
        self,
        learned: list[Part],
        changes: Changes,
        preparation: Preparation,
        done: list[Outcome],
    ) -> list[dict[str, Any]] | None:
        """Commit, then learn; return answers from before each row was learned, if wanted."""
        model, tables = self._model, self._model.tables

        def committed() -> None:
            tables.written(changes)
            self._committed(done)

        if not learned:
            with model.forest.database.transaction(synced=False):
                tables.write(changes)
            committed()
            return None
        written = False

        def write() -> None:
            nonlocal written
            tables.write(changes)
            written = True

        model.forest.along = write
        model.forest.recorded = committed
        try:
            answers = self._learn(learned, preparation)
        except JournalError:
            raise
        except Exception as error:
            if written:
                raise LearningFailedError(str(error)) from error
            raise
        finally:
            model.forest.along = model.forest.recorded = None
        model.format, model.target_kind = preparation.format, preparation.target_kind
        return answers

    def _learn(self, learned: list[Part], preparation: Preparation) -> list[dict[str, Any]] | None:
        model, forest = self._model, self._model.forest
        X = joined([part.X for part in learned if part.X is not None])
        ids = [id for part in learned for id in part.ids]
        named: dict[str, Any] = {"ids": ids} if model.has_ids else {}
        if learned[0].job.kind == UPSERT:
            forest.upsert(X, ids)
            return None
        if model.task == RETRIEVAL:
            forest.partial_fit(X, **named)
            return None
        assert preparation.target_kind is not None
        y = target_array([one for part in learned for one in part.y], preparation.target_kind)
        if all(part.job.kind != PREDICT_THEN_LEARN for part in learned):
            forest.partial_fit(X, y, **named)
            return None
        if model.task == CLASSIFICATION:
            shares = forest.predict_proba_then_learn(X, y, **named)
            return answers_of(model.task, None, shares, forest.classes_)
        return answers_of(model.task, forest.predict_then_learn(X, y, **named))

    def _give_answers(self, learned: list[Part], answers: list[dict[str, Any]] | None) -> None:
        assert answers is not None
        begin = 0
        for part in learned:
            if part.job.kind == PREDICT_THEN_LEARN:
                part.answers = answers[begin : begin + part.n]
            begin += part.n

    def _responses(self, parts: list[Part], first: int) -> list[bytes]:
        responses, seen = [], first
        for part in parts:
            seen += part.n
            responses.append(json.dumps(self._response(part, seen)).encode())
        return responses

    def _response(self, part: Part, seen: int) -> dict[str, Any]:
        kind = part.job.kind
        answered = {} if part.answers is None else response_of(self._model.task, part.answers)
        if kind == KEEP:
            return answered
        if kind == UPSERT:
            return {"upserted": part.n, "seen": seen}
        learned = {"learned": part.n, "seen": seen}
        if kind == LABEL:
            return learned
        return {**answered, **learned, "ids": part.ids}

    def _count(self, scores: Any, learned: list[Part], preparation: Preparation) -> Scored:
        kind, task, forest = preparation.target_kind, self._model.task, self._model.forest
        if kind is None or not learned:
            return []
        y = target_array([one for part in learned for one in part.y], kind)
        answers = []
        for part in learned:
            answers += [no_answer(task)] * part.n if part.answers is None else part.answers
        seen = forest.examples_seen
        return count(scores, task, y, answers, seen if seen >= forest.model.n_estimators else None)

    def _record(
        self, changes: Changes, parts: list[Part], responses: list[bytes], scores: Any
    ) -> None:
        for part, response in zip(parts, responses, strict=True):
            job = part.job
            if job.key is not None and job.digest is not None:
                changes.responses.append(Response(job.key, job.digest, response))
        if any(part.n for part in parts):
            changes.state[SCORES] = json.dumps(scores.to_json())

    def _answer(self, parts: list[Part], responses: list[bytes], scores: Any) -> None:
        """Commit responses that are known only after learning."""
        tables, changes = self._model.tables, Changes()
        self._record(changes, parts, responses, scores)
        tables.group.answered = True
        try:
            with self._model.forest.database.transaction(synced=False):
                tables.write(changes)
        except Exception as error:  # the group is taken back when the process starts again
            raise LearningFailedError(str(error)) from error
        tables.written(changes)
        self._committed([])
