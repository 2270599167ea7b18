"""
A stream of handwritten digits
==============================

``predict_then_learn`` predicts each row before it learns it. The forest is right most of the time
after a few hundred rows, and no row is seen twice.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from boundary_forest import BoundaryForestClassifier
from boundary_forest.plot import plot_stream

X, y = load_digits(return_X_y=True)

ax = None
for n_estimators in (1, 10, 50):
    forest = BoundaryForestClassifier(n_estimators=n_estimators, random_state=0)
    predicted = forest.predict_then_learn(X, y)
    name = "1 tree" if n_estimators == 1 else f"{n_estimators} trees"
    ax = plot_stream(y, predicted, window=200, label=name, ax=ax)
plt.show()
