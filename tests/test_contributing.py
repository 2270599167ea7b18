"""CONTRIBUTING's map: its drawing is the import graph's, and what it names is there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def test_the_drawing_is_that_of_the_import_graph():
    pytest.importorskip("grimp", reason="comes with import-linter")
    drawing = runpy.run_path(str(ROOT / "docs" / "who_knows_whom.py"))["drawing"]()
    assert f"```mermaid\n{drawing}\n```" in TEXT


def test_every_file_that_the_map_names_exists():
    table = TEXT[TEXT.index("| what changes | where |") : TEXT.index("## Style")]
    named = re.findall(r"`([\w./]+(?:\.hpp|\.cpp|\.py|\.md|/))`", table)
    places = [ROOT]
    package = ROOT / "src/boundary_forest"
    places += [package, *(path for path in package.rglob("*") if path.is_dir())]
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert missing == []
    assert len(named) > 40


def test_the_package_has_few_entries():
    """The extension's types are made by the build; an empty file marks that there are types."""
    apart = {"__pycache__", "_core.pyi", "py.typed"}
    entries = {path.name for path in (ROOT / "src/boundary_forest").iterdir()} - apart
    assert len({name for name in entries if not name.endswith((".so", ".pyd"))}) <= 16
