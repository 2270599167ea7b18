"""
Finding a rare class
====================

3 % of these rows belong to class 1. A larger ``class_weight`` finds more of them, at the price of
more false alarms.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import precision_score, recall_score

from boundary_forest import BoundaryForestClassifier

X, y = make_classification(4000, 20, n_informative=6, weights=[0.97], random_state=0)

fig, ax = plt.subplots(layout="constrained")
weights, recalls, precisions = [1, 2, 5, 10, 20, 40], [], []
for weight in weights:
    forest = BoundaryForestClassifier.for_tables(class_weight={1: weight}, random_state=0)
    predicted = forest.fit(X[:2500], y[:2500]).predict(X[2500:])
    recalls.append(recall_score(y[2500:], predicted))
    precisions.append(precision_score(y[2500:], predicted, zero_division=0))
ax.semilogx(weights, recalls, marker="o", label="recall: rare rows that are found")
ax.semilogx(weights, precisions, marker="o", label="precision: alarms that are right")
ax.set_xticks(weights, [str(weight) for weight in weights])
ax.set(xlabel="class_weight of the rare class", ylim=(0, 1.02))
ax.legend()
plt.show()
