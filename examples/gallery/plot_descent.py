"""
The path of a query
===================

A query starts at the root of a tree and moves to the closest child, as long as that child is closer
than the node itself. The example where it stops is the tree's prediction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from boundary_forest import BoundaryForestClassifier
from boundary_forest.plot import plot_path, plot_tree

X, y = make_moons(1000, noise=0.15, random_state=1)
forest = BoundaryForestClassifier(random_state=0).fit(X, y)
query = np.array([0.6, 0.15])

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
paths = forest.explain(query).trees
tree = max(range(len(paths)), key=lambda i: len(paths[i].steps))  # the longest path
plot_tree(forest, tree, X=X, y=y, ax=left)
steps = X[[step.arrival for step in paths[tree].steps]]
left.plot(steps[:, 0], steps[:, 1], "o-", color="black", markersize=4, linewidth=2)
left.plot(*query, "X", color="red", markersize=10, zorder=5)
plot_path(forest, query, ax=right)
right.set_title("All 50 trees")
plt.show()

# %%
# The distance to the query falls with every step, because a descent never moves away from it.
# ``explain`` says which stored examples the trees ended at, and what each counts.

print(forest.explain(query))
