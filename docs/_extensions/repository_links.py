"""Let pages link to files of the repository as they do on a Git host.

A page writes ``[name](../CONTRIBUTING.md#tests)``, which a Git host follows. The site has
pages of its own for some of these files; a link to any other file leads to the repository if its
address is known (``DOCS_REPOSITORY``), and is plain text otherwise.
"""

import os
import posixpath
import re
from typing import Any

PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
}
LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)\s#]*)(#[^)\s]*)?\)")


def rewrite(app: Any, docname: str, source: list[str]) -> None:
    """Replace the links of a page that lead out of docs/."""
    here = posixpath.dirname(docname)

    def replaced(found: re.Match[str]) -> str:
        text, path, anchor = found[1], found[2], found[3] or ""
        target = posixpath.normpath(posixpath.join("docs", here, path))
        if target.startswith("docs/"):
            return found[0]
        if target in PAGES:
            return f"[{text}]({posixpath.relpath(PAGES[target], here or '.')}{anchor})"
        if app.config.repository:
            branch = os.environ.get("DOCS_BRANCH", "main")
            where = f"https://github.com/{app.config.repository}/blob/{branch}/{target}"
            return f"[{text}]({where}{anchor})"
        return text

    source[0] = LINK.sub(replaced, source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.add_config_value("repository", "", "env")
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
