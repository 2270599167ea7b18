"""What the service records of itself, for pages that show it."""

from __future__ import annotations

import time

from served import in_process

ROWS = [[float(i % 2)] for i in range(200)]
TARGETS = ["even" if i % 2 == 0 else "odd" for i in range(200)]


def _moment(service, condition=lambda moment: True):
    """Wait for a moment."""
    end = time.monotonic() + 20
    while True:
        for moment in service.recorder.since(0):
            if condition(moment):
                return moment
        assert time.monotonic() < end
        time.sleep(0.02)


def test_moments_are_numbered_and_show_scores_and_latencies(tmp_path):
    with in_process(tmp_path) as service:
        first = _moment(service)
        assert (first.number, first.seen, first.figures.accuracy) == (1, 0, None)
        service.post("/v1/learn", {"rows": ROWS, "targets": TARGETS})
        service.post("/v1/predict-then-learn", {"rows": ROWS, "targets": TARGETS})
        service.post("/v1/predict", {"rows": ROWS[:1], "ids": ["late"]})
        last = _moment(service, lambda moment: moment.waiting > 0)
        assert last.seen == last.figures.learned == 400
        assert last.figures.accuracy == 1.0
        assert last.figures.log_loss < 0.1
        assert last.figures.stored > 0
        assert last.latencies["/v1/learn"].requests == 1
        assert 0 < last.latencies["/v1/learn"].p50 <= last.latencies["/v1/learn"].longest
        numbers = [moment.number for moment in service.recorder.since(0)]
        assert numbers == [*range(1, len(numbers) + 1)]
        assert service.recorder.since(last.number - 1)[0].number == last.number
        assert service.recorder.since(10**9) == []


def test_the_history_is_that_of_the_answers_given(tmp_path):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", {"rows": ROWS, "targets": TARGETS})
        service.post("/v1/predict", {"rows": ROWS[:3], "ids": ["a", "b", "c"]})
        service.post("/v1/label", {"ids": ["a", "b", "c"], "targets": ["even", "odd", "odd"]})
        history = service.recorder.history()
        assert history.confusion == {("even", "even"): 1, ("odd", "odd"): 1, ("odd", "even"): 1}
        assert history.curve[-1].error == 1 / 3
        assert history.parameters["max_samples"] == 0.4
        assert len(history.by_class) == 2


def test_a_regression_and_an_index_are_recorded(tmp_path):
    with in_process(tmp_path / "r", task="regression") as service:
        service.post("/v1/learn", {"rows": ROWS, "targets": [row[0] for row in ROWS]})
        answer = service.post("/v1/predict-then-learn", {"rows": [[1.0]], "targets": [1.5]})
        assert service.recorder.history().pairs == [(1.5, *answer.json["predictions"])]
    with in_process(tmp_path / "i", task="retrieval") as service:
        service.post("/v1/upsert", {"rows": ROWS[:2], "ids": ["a", "b"]})
        end = time.monotonic() + 20
        while not any(moment.seen for moment in service.recorder.since(0)):
            assert time.monotonic() < end
            time.sleep(0.02)
        assert service.recorder.since(0)[-1].figures.stored == 2
