"""
Regression, and what ``epsilon`` stores
=======================================

A regressor stores an example if its prediction is wrong by more than ``epsilon``. So a steep part
of a curve gets more examples than a flat one, and a larger ``epsilon`` stores fewer of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from boundary_forest import BoundaryForestRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-4, 4, size=(1500, 1))
y = np.tanh(3 * X[:, 0]) + 0.3 * X[:, 0]
line = np.linspace(-4, 4, 400)[:, None]

fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, epsilon in zip(axes, (0.05, 0.4), strict=True):
    forest = BoundaryForestRegressor(epsilon=epsilon, random_state=0).fit(X, y)
    nodes, _ = forest.trees()[0]
    ax.plot(line[:, 0], forest.predict(line), label="prediction of 50 trees")
    ax.plot(X[nodes, 0], y[nodes], "o", markersize=4, label=f"{len(nodes)} examples of one tree")
    ax.set_title(f"epsilon={epsilon}")
    ax.legend()
plt.show()
