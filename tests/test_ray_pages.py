"""docs/guides/cluster.md: its code runs, and its table is the model's."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "guides" / "cluster.md").read_text()


def test_the_table_is_that_of_the_model():
    assert runpy.run_path(str(DOCS / "cluster_model.py"))["table"]() in PAGE


def test_the_code_of_the_page_runs(one_process, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    block = re.search(r"^```py\n(.*?)^```", PAGE, flags=re.M | re.S)[1]
    exec(compile(block, "cluster.md", "exec"), {"__name__": "example"})
    assert float(capsys.readouterr().out) > 0.9
    assert Path("digits.bf").exists()


def test_the_estimators_are_documented():
    pytest.importorskip("ray")
    from boundary_forest import ray as on_cluster

    for name in ("Classifier", "Neighbors", "Regressor"):
        kind = getattr(on_cluster, f"BoundaryForest{name}")
        for parameter in kind().get_params():
            assert re.search(rf"\b{parameter}\b", kind.__doc__), (name, parameter)
