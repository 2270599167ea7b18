"""Draw the pictures of docs/guides/streams.md from a run of ``make bench SECTIONS=streams``.

Run it as ``.venv/bin/python -m docs.draw_streams build/bench/streams-....json``.
"""

import json
import sys
from pathlib import Path
from typing import Any

from paper.plots import COLORS, behind, named_axes, panels, save

TO = Path(__file__).parent / "images"
STREAMS = ("RBF", "Agrawal", "electricity")
COLOR = {"for_streams()": COLORS[1], "never forgetting": COLORS[0], "River ARF(10)": COLORS[5]}
CURVE = 500  # rows for each point in the file
SHOWN = {"RBF": 1, "Agrawal": 1, "electricity": 4}  # points of the file for one that is drawn


def accuracy(section: dict[str, Any]) -> Any:
    """Draw how many of the answers were right, stretch by stretch."""
    figure, axes = panels(STREAMS, width=4.2, height=3.4)
    for ax, name in zip(axes, STREAMS, strict=True):
        step = SHOWN[name]
        for title, color in COLOR.items():
            losses = section["drifting"][name]["rows"][title]["curve"]
            losses = losses[: len(losses) // step * step]
            right = [1 - sum(losses[i : i + step]) / step for i in range(0, len(losses), step)]
            rows = [CURVE * step * (i + 1) / 1000 for i in range(len(right))]
            ax.plot(rows, right, color=color, label=title if ax is axes[0] else None)
        named_axes(ax, "rows, in thousands", f"right of the last {CURVE * step:,}")
    return figure


def memory(section: dict[str, Any]) -> Any:
    """Draw the memory of the long run, and its rows per second."""
    run = section["long"]
    rows = [point["row"] / 1e6 for point in run["points"]]
    each = run["rows"] / len(rows)
    figure, (left, right) = panels(["memory", "speed"], width=5.2, height=3.2)
    process = [point["most_bytes"] / 2**20 for point in run["points"]]
    forest = [point["forest_bytes"] / 2**20 for point in run["points"]]
    left.plot(rows, process, color=COLORS[0], label="resident, of the process")
    left.plot(rows, forest, color=COLORS[1], label="of these, the forest")
    left.set_ylim(0, 1.25 * max(process))
    named_axes(left, "rows, in millions", "MiB")
    speed = [each / point["seconds"] / 1000 for point in run["points"]]
    right.plot(rows, speed, **behind(COLORS[1]))
    right.plot(rows, speed, color=COLORS[1])
    right.set_ylim(0, 1.25 * max(speed))
    named_axes(right, "rows, in millions", "thousand rows a second, one core")
    return figure


if __name__ == "__main__":
    section = json.loads(Path(sys.argv[1]).read_text())["sections"]["streams"]
    save(accuracy, section, TO / "stream-accuracy")
    save(memory, section, TO / "stream-memory")
