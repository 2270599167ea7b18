"""
How many examples are stored
============================

Each tree stores the examples that it predicts wrongly. As the forest gets better, it stores a
smaller share of the rows that arrive, and a row costs a few more comparisons when there are ten
times as many.
"""

import matplotlib.pyplot as plt
import numpy as np

from boundary_forest import BoundaryForestClassifier

X = np.random.default_rng(0).uniform(0, 4, size=(40_000, 2))
y = np.floor(X).sum(axis=1) % 2  # a board of 16 squares
forest = BoundaryForestClassifier(random_state=0)

seen, per_tree, comparisons = [], [], []
spent = 0
for part, labels in zip(np.array_split(X, 20), np.array_split(y, 20), strict=True):
    forest.partial_fit(part, labels)
    stats = forest.stats()
    seen.append(stats["examples_seen"])
    per_tree.append(np.mean(stats["nodes_per_tree"]))
    comparisons.append((stats["comparisons"]["learn"] - spent) / len(part) / 50)
    spent = stats["comparisons"]["learn"]

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.plot(seen, per_tree, marker="o", markersize=3)
left.set(xlabel="rows learned", ylabel="nodes per tree", ylim=(0, None))
right.plot(seen, comparisons, marker="o", markersize=3)
right.set(xlabel="rows learned", ylabel="comparisons per tree and row", ylim=(0, None))
plt.show()
