"""Many trees: each costs little, and so do the rows that they answer together."""

import subprocess
import sys

import boundary_forest
from boundary_forest import BoundaryForestClassifier


def forest_of(n_trees):
    """A forest of n trees that have one node each."""
    forest = BoundaryForestClassifier(n_estimators=n_trees, offline=True, random_state=0)
    return forest.fit([[0.0]], [0])


def test_a_tree_of_one_node_takes_less_than_a_kilobyte(tmp_path):
    # 584 bytes were seen; once it was 2.3 kB, so that 11 MB of them took 2.3 GB to load.
    path = tmp_path / "trees.bf"
    forest_of(20_000).save(path)
    forest = boundary_forest.load(path)
    assert forest.stats()["bytes"]["trees"] < 1000 * 20_000
    assert forest.predict([[3.0]]).tolist() == [0]


MEASURED = """
import resource
import numpy as np
from boundary_forest import BoundaryForestClassifier

forest = BoundaryForestClassifier(n_estimators=20_000, offline=True, random_state=0)
forest.fit([[0.0]], [0])

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

before = peak()
X, y = np.zeros((1000, 1)), np.zeros(1000, dtype=int)
forest.predict(X)
forest.predict_then_learn(X, y)
print(peak() - before)
"""


def test_rows_that_many_trees_answer_are_taken_a_few_at_a_time():
    # What 20,000 trees find for 1,000 rows is 305 MB; the bound is 64 MB a block.
    done = subprocess.run(
        [sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True, timeout=600
    )
    assert int(done.stdout) < 150
