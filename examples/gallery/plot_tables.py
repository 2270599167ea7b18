"""
Features on different scales
============================

The paper's forest compares raw features, so the feature with the largest numbers decides alone.
``for_tables`` learns a weight for each feature.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score

from boundary_forest import BoundaryForestClassifier
from boundary_forest.plot import plot_importances

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
for name, forest in {
    "for_tables()": BoundaryForestClassifier.for_tables(random_state=0),
    "paper's forest": BoundaryForestClassifier(random_state=0),
}.items():
    print(f"{name}: accuracy {cross_val_score(forest, X, y).mean():.2f}")

# %%
# An importance is the feature's share of the squared distance between two rows.

forest = BoundaryForestClassifier.for_tables(random_state=0).fit(X, y)
plot_importances(forest)
plt.show()
