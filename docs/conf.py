"""How Sphinx builds the site: ``make docs`` runs it, and nothing in it needs the network.

Two settings come from the environment, because they depend on where the site is published:
``DOCS_REPOSITORY`` (``owner/name`` on GitHub) adds "edit this page" and links into the sources, and
``DOCS_VERSIONS_URL`` is the list of versions for the version switcher.
"""

import os
import sys
import warnings
from pathlib import Path

import matplotlib

from boundary_forest import __version__

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))
matplotlib.use("Agg")
warnings.filterwarnings("ignore", message=".*is non-interactive.*")

project = "boundary-forest"
author = "The Boundary Forest developers"
copyright = author
version = release = __version__
repository = os.environ.get("DOCS_REPOSITORY", "")
versions_url = os.environ.get("DOCS_VERSIONS_URL", "/_static/versions.json")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "repository_links",
    "flowchart",
]
exclude_patterns = ["paper/*.md"]
templates_path = ["_templates"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "attrs_block", "attrs_inline"]
myst_fence_as_directive = ["mermaid"]

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "generated/gallery",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("boundary_forest",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 10_000,
    "remove_config_comments": True,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "matplotlib_animations": False,
}

highlight_language = "none"  # of blocks that name no language, such as output

html_theme = "pydata_sphinx_theme"
html_title = "boundary-forest"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "text": "boundary-forest",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["version-switcher", "theme-switcher"],
    "switcher": {"json_url": versions_url, "version_match": version},
    "check_switcher": False,
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc", *(["edit-this-page"] if repository else [])],
    "use_edit_page_button": bool(repository),
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages without pages below them need no list of these.
html_sidebars: dict[str, list[str]] = {
    page: []
    for page in (
        *("index", "start", "how-it-works", "parameters"),
        *("faq", "changelog", "contributing"),
    )
}
if repository:
    owner, _, name = repository.partition("/")
    html_context = {
        "github_user": owner,
        "github_repo": name,
        "github_version": os.environ.get("DOCS_BRANCH", "main"),
        "doc_path": "docs",
    }
