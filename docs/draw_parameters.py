"""Measure and draw what parameters cost, for docs/parameters.md, on the data set letter.

``python -m docs.draw_parameters measure`` writes docs/figures/parameters.json, which takes
a minute; without ``measure`` it draws docs/images/parameters.svg from this file. Costs are counted
in comparisons, which do not depend on the machine.
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.__main__ import commit
from boundary_forest import BoundaryForestClassifier
from paper.datasets import load
from paper.machine import described
from paper.plots import COLORS, panels, save

DOCS = Path(__file__).parent
FILE = DOCS / "figures" / "parameters.json"
SEEDS = 3
TRIED: dict[str, list[Any]] = {
    "n_estimators": [1, 2, 5, 10, 20, 50, 100],
    "max_children": [2, 3, 5, 10, 20, 50, None],
    "max_samples": [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0],
}


def measure() -> None:
    """Write errors, and comparisons per row that is predicted."""
    data = load("letter")
    curves = {
        name: [point(data, {name: value}) | {"value": value} for value in values]
        for name, values in TRIED.items()
    }
    run = {
        "command": "python -m docs.draw_parameters measure",
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "processor": described()["cpu"],
        "commit": commit(),
    }
    FILE.write_text(json.dumps({"run": run, **curves}, indent=1) + "\n")


def point(data: Any, parameters: dict[str, Any]) -> dict[str, float]:
    """Return the mean error and the mean comparisons over some seeds."""
    errors, comparisons = [], []
    for seed in range(SEEDS):
        forest = BoundaryForestClassifier(random_state=seed, **parameters)
        forest.fit(data.X_train, data.y_train)
        errors.append(1 - forest.score(data.X_test, data.y_test))
        comparisons.append(forest.stats()["comparisons"]["query"] / len(data.y_test))
    return {"error": float(np.mean(errors)), "comparisons": float(np.mean(comparisons))}


def drawn(figures: dict[str, Any]) -> Any:
    """Return the figure: a panel for each parameter, error above, comparisons on the right."""
    figure, axes = panels(list(TRIED), width=3.9, height=3.4)
    for ax, name in zip(axes, TRIED, strict=True):
        points = figures[name]
        places = range(len(points))
        ax.plot(places, [100 * p["error"] for p in points], "o-", color=COLORS[0])
        ax.set_xticks(places, [str(p["value"]) for p in points])
        ax.set_ylim(0, None)
        ax.tick_params(axis="y", labelcolor=COLORS[0])
        other = ax.twinx()
        other.plot(places, [p["comparisons"] for p in points], "s--", color=COLORS[1])
        other.set_ylim(0, None)
        other.tick_params(axis="y", labelcolor=COLORS[1])
        other.grid(visible=False)
        if ax is axes[0]:
            ax.set_ylabel("error, %", color=COLORS[0])
        if ax is axes[-1]:
            other.set_ylabel("comparisons per prediction", color=COLORS[1])
    return figure


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        measure()
    save(drawn, json.loads(FILE.read_text()), DOCS / "images" / "parameters")
