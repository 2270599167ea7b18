"""Measure what class_weight does to rare classes, for docs/guides/imbalance.md.

``python -m docs.measure_imbalance`` writes docs/figures/imbalance.json, which takes a minute. The
tables are those of ``$BOUNDARY_FOREST_DATA/tables``; a quarter of the rows is held out.
"""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split

from benchmarks.__main__ import commit
from boundary_forest import BoundaryForestClassifier
from paper.machine import described

FILE = Path(__file__).parent / "figures" / "imbalance.json"
TABLES = {
    "sick": "sick, 6 %",
    "car": "car, 4 %",
    "phoneme": "phoneme, 29 %",
    "credit.g": "credit-g, 30 %",
    "diabetes": "diabetes, 35 %",
}


def rows_of() -> dict[str, tuple[Any, Any]]:
    """Return the rows and labels of each table."""
    made = {"n_features": 20, "n_informative": 6, "weights": [0.97], "random_state": 0}
    found = {
        "make_classification, 3 % rare": make_classification(8000, **made),
        "the same, classes further apart": make_classification(8000, class_sep=2, **made),
    }
    folder = Path(os.environ["BOUNDARY_FOREST_DATA"]) / "tables"
    for name, title in TABLES.items():
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            found[title] = file["X"], file["y"]
    return found


def measured(X: Any, y: Any) -> dict[str, Any]:
    """Return accuracy, balanced accuracy and recall of the rarest class, by the weights' name."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    classes, counts = np.unique(y, return_counts=True)
    balanced = len(y) / (len(classes) * counts)
    roots = {label.item(): float(w) for label, w in zip(classes, np.sqrt(balanced), strict=True)}
    found = {}
    for name, class_weight in {"none": None, "roots": roots, "balanced": "balanced"}.items():
        forest = BoundaryForestClassifier.for_tables(class_weight=class_weight, random_state=0)
        predicted = forest.fit(X, y).predict(X_test)
        found[name] = {
            "accuracy": accuracy_score(y_test, predicted),
            "balanced accuracy": balanced_accuracy_score(y_test, predicted),
            "recall": recall_score(
                y_test, predicted, labels=[classes[counts.argmin()]], average="macro"
            ),
        }
    return found


def main() -> None:
    """Measure all tables, and write the file."""
    run = {
        "command": "python -m docs.measure_imbalance",
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "processor": described()["cpu"],
        "commit": commit(),
    }
    tables = {title: measured(X, y) for title, (X, y) in rows_of().items()}
    FILE.write_text(json.dumps({"run": run, "scores": tables}, indent=1) + "\n")


if __name__ == "__main__":
    main()
