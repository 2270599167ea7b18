"""
Where a tree stores examples
============================

A tree stores only the examples that it predicts wrongly when they arrive. So its nodes gather along
the boundary between the classes, and the regions inside need few of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from boundary_forest import BoundaryForestClassifier
from boundary_forest.plot import plot_decision_boundary, plot_tree

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(4000, 2))
y = np.digitize(X[:, 1] - 0.4 * np.sin(4 * X[:, 0]), [-0.4, 0.4])
forest = BoundaryForestClassifier(random_state=0).fit(X, y)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot_tree(forest, tree=0, X=X, y=y, ax=left)
plot_decision_boundary(forest, X, ax=right)
right.set_title("What all 50 trees predict")
plt.show()

# %%
# Each tree has its own root and its own nodes. Their vote is smoother than one tree alone.

n_nodes = [len(nodes) for nodes, _ in forest.trees()]
print(f"{min(n_nodes)} to {max(n_nodes)} of {len(X)} rows are stored by a tree")
