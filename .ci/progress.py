"""Run a long command and show how far it has come: ``python progress.py TITLE COMMAND...``.

On a terminal one line counts the seconds, and the steps if the command prints them as ninja does,
``[12/60] ...``. Elsewhere a line is printed every ten seconds. The command's own output is shown
only if it fails.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time

STEP = re.compile(rb"^\s*\[(\d+)/(\d+)\]", re.M)


def main(title: str, *command: str) -> int:
    """Run the command; return its exit code."""
    start = shown = time.monotonic()
    terminal = sys.stdout.isatty()
    print(f"== {title}", end="" if terminal else "\n", flush=True)
    output, steps = b"", ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        while True:
            if select.select([pipe], [], [], 1)[0]:
                read = os.read(pipe, 1 << 16)
                if not read:
                    break
                output += read
                done = STEP.findall(output, max(0, output.rfind(b"[") - 200))
                if done:
                    steps = b" %b of %b," % done[-1]
                    steps = steps.decode()
            now = time.monotonic()
            if now - shown >= (1 if terminal else 10):
                shown = now
                line = f"== {title}:{steps} {now - start:.0f} s"
                print(f"\r{line} " if terminal else line, end="" if terminal else "\n", flush=True)
    if terminal:
        print()
    if process.returncode:
        lines = output.decode(errors="replace").splitlines()
        print(*(line for line in lines if not STEP.match(line.encode())), sep="\n", file=sys.stderr)
    return process.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
