"""A forest learns on a Ray cluster of two nodes, of which one goes and another one comes.

Run as a program, because it needs a cluster of its own; see test_ray_nodes.py.
"""

from __future__ import annotations

import sys
import threading

import numpy as np
import ray
from ray.cluster_utils import Cluster
from sklearn.datasets import load_digits

import boundary_forest
from boundary_forest.ray import BoundaryForestClassifier


def main(folder: str) -> None:
    X, y = load_digits(return_X_y=True)
    X, y = np.concatenate([X] * 5), np.concatenate([y] * 5)
    memory = {"object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **memory})
    second = cluster.add_node(num_cpus=1, **memory)
    ray.init(address=cluster.address, log_to_driver=False)
    forest = BoundaryForestClassifier(
        n_estimators=20, random_state=0, n_actors=2, checkpoint_dir=folder, checkpoint_rows=2000
    )
    forest.partial_fit(X[:1000], y[:1000])
    reached = threading.Event()

    def learn() -> None:
        for begin in range(1000, len(X), 250):
            forest.partial_fit(X[begin : begin + 250], y[begin : begin + 250])
            if begin >= 3000:
                reached.set()

    learner = threading.Thread(target=learn)
    learner.start()
    reached.wait()
    cluster.remove_node(second, allow_graceful=False)
    seen = forest.examples_seen
    cluster.add_node(num_cpus=1, **memory)
    learner.join()
    local = boundary_forest.BoundaryForestClassifier(n_estimators=20, random_state=0)
    local.partial_fit(X, y)
    assert forest.examples_seen == len(X)
    assert forest.fingerprint() == local.fingerprint()
    print(f"a node was removed after {seen} of {len(X)} examples, and nothing is lost")
    forest.close()
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
