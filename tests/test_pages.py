"""README.md and the pages under docs/: code runs, what is shown is so, links lead somewhere."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from boundary_forest import BoundaryForestClassifier

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
MADE = DOCS / "generated"  # by the build of the site
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in DOCS.rglob("*.md") if MADE not in page.parents),
]
CODE = re.compile(r"^```python\n(.*?)^```", flags=re.M | re.S)
N_DIGITS = 1797


def named(page):
    return str(page.relative_to(ROOT))


def run(page):
    """Run each block of code on its own, as a reader would who copies it."""
    blocks = CODE.findall(page.read_text())
    for block in blocks:
        exec(compile(block, str(page), "exec"), {"__name__": "example"})
    return len(blocks)


def anchors(page):
    """The headings of a page as GitHub names them in links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = [re.sub(r"[^\w\- ]", "", h.lower()) for h in re.findall(r"^#+ (.*)$", text, re.M)]
    return {heading.replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [p for p in PAGES if CODE.search(p.read_text())], ids=named)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    BoundaryForestClassifier().fit([[0], [9]], ["a", "b"]).save("model.bf")  # format.md reads one
    assert run(page) > 0


def test_the_readme_shows_what_its_code_prints(capsys):
    assert run(README) == 1
    printed = capsys.readouterr().out
    shown = re.search(
        r"^```python\n.*?^```\n+```\n(.*?)^  \.\.\.\n```", README.read_text(), re.M | re.S
    )
    assert shown[1].count("\n") > 5
    assert printed.startswith(shown[1])


def test_the_page_of_a_service_shows_the_explanation_that_its_code_prints(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    page = DOCS / "guides" / "end-to-end.md"
    run(page)
    shown = re.search(r"^```\n(prediction.*?)^  \.\.\.\n```", page.read_text(), re.M | re.S)
    printed = capsys.readouterr().out
    assert shown[1] in printed
    assert float(printed.splitlines()[0]) == 0.865


def test_the_example_row_by_row_makes_few_mistakes(capsys):
    run(DOCS / "guides" / "row-by-row.md")
    found = re.search(r"(\d+) of (\d+) predictions were wrong", capsys.readouterr().out)
    assert int(found[1]) < 80  # seen: 58
    assert int(found[2]) == N_DIGITS - 1


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)\s]*)\)", page.read_text())
    lost = []
    for link in links:
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (heading and heading not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_commands_that_install_it_from_an_index_are_marked_as_future():
    """No index has it before the first release; messages and pages name what works today."""
    files = [
        *PAGES,
        *sorted((ROOT / "src").rglob("*.py")),
        *sorted((ROOT / "examples").rglob("*.py")),
    ]
    wrong = []
    for file in files:
        text = " ".join(file.read_text().split())
        found = re.finditer(r"pip install [^.:]{0,20}boundary-forest.{0,60}", text)
        wrong += [f"{named(file)}: {f[0]}" for f in found if "from 0.1.0 on" not in f[0]]
    assert wrong == []


def test_every_page_is_in_the_table_of_contents():
    """The README leads to the pages that open the site, and these to all others."""
    found = set(re.findall(r"\]\((docs/[\w/-]*\.md)", README.read_text()))
    new = {ROOT / page for page in found}
    reached: set[Path] = set()
    while new:
        page = new.pop()
        reached.add(page)
        entries = re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.M | re.S)
        linked = re.findall(r"^(?:\w+ <)?([\w/-]+)>?$", "\n".join(entries), re.M)
        new |= {page.parent / f"{name}.md" for name in linked if "generated" not in name} - reached
    assert {page for page in PAGES if DOCS in page.parents} <= reached


@pytest.mark.parametrize("name", ["", ".river", ".ray", ".plot"])
def test_the_api_page_has_every_public_name(name):
    pytest.importorskip("ray" if name == ".ray" else "boundary_forest")
    module = importlib.import_module(f"boundary_forest{name}")
    section = (DOCS / "api.md").read_text().split(f"currentmodule:: boundary_forest{name}\n")[1]
    listed = set(re.findall(r"^   (\w+)$", section.split("```")[0], re.M))
    assert listed == set(module.__all__) - {"__version__"}


def test_the_gallery_is_of_short_scripts():
    """The site's build runs them all."""
    scripts = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
    assert len(scripts) >= 10
    assert [s.name for s in scripts if s.read_text().count("\n") > 80] == []
