"""
The stored images behind a prediction
=====================================

A prediction is a vote of stored examples. ``explain`` returns them, so that a doubtful prediction
can be checked by eye.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from boundary_forest import BoundaryForestClassifier

X, y = load_digits(return_X_y=True)
forest = BoundaryForestClassifier(random_state=0).fit(X[:1200], y[:1200])

# %%
# We look at the row of the others that the trees agree on least.

doubtful = 1200 + np.argmin(forest.predict_proba(X[1200:]).max(axis=1))
explanation = forest.explain(X[doubtful])
shown = explanation.examples[:6]

fig, axes = plt.subplots(1, len(shown) + 1, figsize=(11, 2.2), layout="constrained")
axes[0].imshow(X[doubtful].reshape(8, 8), cmap="Blues")
axes[0].set_title(f"query, a {y[doubtful]}", fontweight="bold")
for ax, example in zip(axes[1:], shown, strict=True):
    ax.imshow(np.reshape(example.values, (8, 8)), cmap="Greys")
    ax.set_title(f"a {example.label}: {example.share:.0%}")
for ax in axes:
    ax.set_xticks([])
    ax.set_yticks([])
plt.show()

# %%
print(explanation)
