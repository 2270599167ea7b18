"""Names in a user's data, and names of files, cannot command the terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import signal

import pytest
from rich.table import Table
from rich.text import Text
from stream_rows import SCRIPT

from boundary_forest.cli.terminal import console_on, warn
from boundary_forest.report.formatting import printable

TITLE, RED, REVERSED = "\x1b]0;x\x07", "\x9b31m", "\u202eevil"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture
def source(tmp_path):
    """A CSV file whose name, columns and classes have all that a terminal might obey."""
    path = tmp_path / f"rows{TITLE}.csv"
    header = f"a{TITLE},b{RED},{REVERSED},label\u2066\n"
    rows = [f"{i % 7},k{TITLE}{i % 3},{i % 2},class{RED if i % 2 else REVERSED}" for i in range(60)]
    path.write_text(header + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def commands(source, folder):
    """Commands that show names, and their exit codes."""
    label, model = "label\u2066", folder / f"m{TITLE}.bf"
    learn = ["--target", label, "--warmup", "20", "--save", model, "--report", folder / "r.html"]
    return [
        (["stream", source, *learn], 0),
        (["info", model], 0),
        (["verify", model], 0),
        (["predict", model, source], 0),
        (["stream", source, "--target", f"no{TITLE}"], 2),
        (["stream", source, "--target", f"a{TITLE}", "--task", "regress", "--features", RED], 2),
        (["stream", source, "--target", f"b{RED}", "--task", "regress"], 2),
        (["stream", source, source, "--target", label], 2),
        (["stream", f"{source}{TITLE}", "--target", label], 2),
        (["index", source, "--save", folder / "i.bf"], 2),
        (["index", source, "--vector", f'a{TITLE},"{REVERSED}"', "--save", f"{model}i"], 0),
        (["neighbors", f"{model}i", source, "-k", "1"], 0),
        (["info", source], 1),
        (["verify", source], 1),
        ([f"no{TITLE}"], 2),
        (["info", f"{model}{REVERSED}"], 2),
    ]


def test_no_command_prints_control_characters(told, source, tmp_path):
    shown = ""
    for arguments, expected in commands(source, tmp_path):
        code, out, error = told(*arguments)
        assert code == expected, (arguments, out, error)
        assert not CONTROLS.search(out + error), (arguments, out, error)
        shown += out + error
    for escape in (r"\x1b]0;x\x07", r"\x9b31m", r"\u202eevil"):
        assert escape in shown


def test_json_stays_json(told, source, tmp_path):
    label, model = "label\u2066", tmp_path / "m.bf"
    _, out, _ = told(
        "stream", source, "--target", label, "--warmup", "20", "--json", "--save", model
    )
    end = json.loads(out.splitlines()[-1])
    assert {entry["name"] for entry in end["classes"]} == {f"class{RED}", f"class{REVERSED}"}
    _, out, _ = told("predict", model, source, "--probabilities")
    first = json.loads(out.splitlines()[0])
    assert first["answer"] in first["probabilities"]
    assert set(first["probabilities"]) == {f"class{RED}", f"class{REVERSED}"}
    assert not CONTROLS.search(out)


def test_on_a_terminal_only_the_panel_moves_the_cursor(source):
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        command = [SCRIPT, "stream", source, "--target", "label\u2066", "--warmup", "20"]
        os.execv(SCRIPT, list(map(str, command)))
    shown = b""
    signal.alarm(60)
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            break
        shown += part
        if not part:
            break
    signal.alarm(0)
    os.close(terminal)
    assert os.waitpid(child, 0)[1] == 0
    text = shown.decode()
    assert "\x1b]0;" not in text
    assert not re.search(r"[\x07\x80-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert r"\x1b]0;x\x07" in text


def test_a_console_shows_any_text_with_escapes(capsys):
    table = Table(title=f"t{TITLE}")
    table.add_row(f"s{TITLE}", Text(f"x{RED}\ny", "bold"))
    console = console_on()
    console.print(table)
    console.print(Text(REVERSED), f"[bold]{TITLE}[/]")
    warn(f"two\nlines {TITLE}")
    out, error = capsys.readouterr()
    assert not CONTROLS.search(out)
    assert out.count(r"\x1b]0;x\x07") == 3
    assert error == "boundary-forest: two\\x0alines \\x1b]0;x\\x07\n"


def test_other_scripts_and_signs_are_left_alone():
    for text in ("größe", "שלום", "日本語", "\u200d", "👩‍👩‍👧", "a\u00a0b", "£"):
        assert printable(text) == text
    assert printable("\udc80") == "\\udc80"
