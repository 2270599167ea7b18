"""Importing the package imports nothing optional."""

from __future__ import annotations

import subprocess
import sys

OPTIONAL = (
    "pyarrow", "pandas", "polars", "rich", "typer", "river", "matplotlib", "jinja2",
    "numba", "faiss", "hnswlib", "pooch", "httpx",
)  # fmt: skip


def run(script: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_optional_package_is_imported():
    """Not even tried; scikit-learn itself imports pandas where it finds it."""
    run(f"""
import builtins, sys
import_, tried = builtins.__import__, set()
def watching(name, namespace=None, *more):
    importer = (namespace or {{}}).get("__name__") or ""
    if importer.startswith("boundary_forest") and name.partition(".")[0] in {OPTIONAL!r}:
        tried.add((importer, name))
    return import_(name, namespace, *more)
builtins.__import__ = watching
sys.modules.update(dict.fromkeys({OPTIONAL!r}))
import boundary_forest
assert not tried, tried
forest = boundary_forest.BoundaryForestClassifier(random_state=0).fit([[0], [9]], ["a", "b"])
assert forest.predict([[8]]).tolist() == ["b"]
""")
