"""
Are probabilities calibrated?
=============================

Where a forest says 0.8, is it right in 80 % of the rows? The mixture of ``for_tables`` is
calibrated on recent rows, each predicted before it was learned. The votes of the paper's forest
are not: here they are too sure. Check it on your own data: with many random labels the mixture
may be too careful.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from boundary_forest import BoundaryForestClassifier
from boundary_forest.plot import plot_calibration

X, y = make_moons(8000, noise=0.35, random_state=0)
forests = {
    "for_tables()": BoundaryForestClassifier.for_tables(random_state=0),
    "paper's forest": BoundaryForestClassifier(random_state=0),
}
fig, ax = plt.subplots(layout="constrained")
for name, forest in forests.items():
    forest.fit(X[:4000], y[:4000])
    proba = forest.predict_proba(X[4000:])
    plot_calibration(y[4000:], proba, classes=forest.classes_, label=name, ax=ax)
plt.show()
