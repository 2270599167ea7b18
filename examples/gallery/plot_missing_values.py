"""
A frame with categories and missing values
==========================================

``for_tables`` takes frames as they are: numbers, text, dates, and missing values anywhere. Here
more and more values are removed, from the rows that are learned and from those that are predicted.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from boundary_forest import BoundaryForestClassifier

rng = np.random.default_rng(0)
n = 2000
frame = pd.DataFrame(
    {
        "age": rng.normal(40, 12, n),
        "city": rng.choice(["Rome", "Oslo", "Lima", "Pune"], n),
        "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
        "noise": rng.normal(size=n),
    }
)
bought = np.where((frame["city"] == "Rome") | (frame["age"] > 50), "yes", "no")

shares = [0, 0.1, 0.2, 0.3, 0.4, 0.5]
accuracies = []
for share in shares:
    holes = frame.mask(rng.random(frame.shape) < share)
    forest = BoundaryForestClassifier.for_tables(random_state=0)
    forest.fit(holes[:1500], bought[:1500])
    accuracies.append(forest.score(holes[1500:], bought[1500:]))

fig, ax = plt.subplots(layout="constrained")
ax.plot(shares, accuracies, marker="o")
most_frequent = max(np.mean(bought == "yes"), np.mean(bought == "no"))
ax.axhline(most_frequent, color="0.6", linestyle="--", label="always the more frequent class")
ax.set(xlabel="share of missing values", ylabel="accuracy", ylim=(0.5, 1.02))
ax.legend()
plt.show()
