"""In a pipe: every line is answered as it comes, and whoever closes or interrupts ends it well."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from contextlib import suppress

import numpy as np
import pytest
from stream_rows import SCRIPT

from boundary_forest import load


def started(*arguments, **pipes):
    pipes = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        **pipes,
    }
    return subprocess.Popen([SCRIPT, "stream", "-", *map(str, arguments)], **pipes)


def line(i: int) -> bytes:
    return (
        json.dumps({"a": i % 17, "b": (i * 7) % 5, "y": "odd" if i % 2 else "even"}).encode()
        + b"\n"
    )


def test_each_line_is_answered_at_once_also_in_the_warm_up():
    with started("--target", "y", "--warmup", 40, "--predictions", "-") as child:
        seconds = []
        for i in range(80):
            child.stdin.write(line(i))
            child.stdin.flush()
            begin = time.perf_counter()
            assert json.loads(child.stdout.readline())["row"] == i + 1
            seconds.append(time.perf_counter() - begin)
        child.stdin.close()
        assert child.wait(60) == 0
        assert b"80" in child.stderr.read()
    # The first line waits for the process to begin. Seen: median 0.001 s, at most 0.01 s.
    assert np.quantile(seconds[1:], 0.95) < 0.1


def test_a_reader_that_closes_ends_it_quietly_and_the_model_is_saved(tmp_path):
    model = tmp_path / "model.bf"
    arguments = ("--target", "y", "--warmup", 10, "--predictions", "-", "--save", model)
    with started(*arguments) as child:
        child.stdin.write(b"".join(map(line, range(50))))
        child.stdin.flush()
        for _ in range(50):
            child.stdout.readline()
        child.stdout.close()
        with suppress(BrokenPipeError):
            for i in range(50, 5000):
                child.stdin.write(line(i))
                child.stdin.flush()
                time.sleep(0.001)
        with suppress(BrokenPipeError):
            child.stdin.close()
        assert child.wait(60) == 0
        assert b"Error" not in child.stderr.read()
    assert load(model).stats()["examples_seen"] >= 50


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_saves_what_was_learned_and_says_how_far_it_came(tmp_path, number, code):
    model = tmp_path / "model.bf"
    arguments = ("--target", "y", "--warmup", 10, "--save", model)
    with started(*arguments, "--predictions", tmp_path / "answers") as child:
        child.stdin.write(b"".join(map(line, range(100))))
        child.stdin.flush()
        for _ in range(600):
            time.sleep(0.05)
            answers = tmp_path / "answers"
            if answers.exists() and len(answers.read_bytes().splitlines()) == 100:
                break
        child.send_signal(number)
        assert child.wait(60) == code
        assert b"after row 100" in child.stdout.read()
        assert child.stderr.read() == b""
    assert load(model).stats()["examples_seen"] == 100


def test_a_named_pipe_is_read_as_it_is_written(tmp_path):
    rows = b"".join(map(line, range(30)))
    command = f"{SCRIPT} stream <(cat) --target y --json"
    told = subprocess.run(
        ["bash", "-c", command], input=rows, capture_output=True, timeout=60, check=False
    )
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout.splitlines()[-1])["rows"] == 30
