"""
A stream that changes
=====================

Halfway through this stream the two labels are swapped. In a forest that never forgets, old examples
outvote the new ones. ``for_streams`` keeps replacing some of its trees, and recovers.
"""

import matplotlib.pyplot as plt
import numpy as np

from boundary_forest import BoundaryForestClassifier
from boundary_forest.plot import plot_stream

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(4000, 3))
y = np.where(np.arange(len(X)) < 2000, X[:, 0] > 0, X[:, 0] < 0).astype(int)

forests = {
    "for_streams()": BoundaryForestClassifier.for_streams(random_state=0),
    "for_streams(max_stored=500)": BoundaryForestClassifier.for_streams(
        max_stored=500, random_state=0
    ),
    "never forgets": BoundaryForestClassifier(random_state=0),
}
fig, ax = plt.subplots(layout="constrained")
for name, forest in forests.items():
    plot_stream(y, forest.predict_then_learn(X, y), label=name, ax=ax)
    print(f"{name}: {forest.stats()['examples_stored']} examples are stored")
ax.axvline(2000, color="0.6", linestyle="--")
plt.show()
