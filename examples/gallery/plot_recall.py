"""
Recall and time of a search
===========================

``beam`` sets from how many stored vectors a search goes on. A wider beam finds more of the true
neighbours, and takes longer. ``exact=True`` finds all of them.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from boundary_forest import BoundaryForestNeighbors

rng = np.random.default_rng(0)
X = rng.normal(size=(12_200, 24)).astype("float32")  # without structure, the hardest for any index
X, queries = X[:12_000], X[12_000:]
index = BoundaryForestNeighbors(random_state=0).fit(X)
index.kneighbors(queries, 10, exact=False)  # the first call prepares the search
true = index.kneighbors(queries, 10, return_distance=False, exact=True)

beams, recalls, times = [10, 20, 40, 80, 160], [], []
for beam in beams:
    start = time.perf_counter()
    found = index.kneighbors(queries, 10, return_distance=False, beam=beam, exact=False)
    times.append((time.perf_counter() - start) / len(queries) * 1e6)
    hits = [len(set(a) & set(b)) for a, b in zip(found, true, strict=True)]
    recalls.append(np.mean(hits) / 10)

fig, ax = plt.subplots(layout="constrained")
ax.plot(recalls, times, marker="o")
for beam, recall, micros in zip(beams, recalls, times, strict=True):
    ax.annotate(
        f"beam {beam}", (recall, micros), textcoords="offset points", xytext=(-6, 6), ha="right"
    )
ax.set(xlabel="recall of 10 neighbours", ylabel="µs per query", ylim=(0, None))
plt.show()
