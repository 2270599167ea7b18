"""The registry of items: every file of ``items/`` has a tuple ``ITEMS``."""

import difflib
import importlib
import pkgutil

from paper import items
from paper.item import CHAPTERS, Item


class UnknownItemError(ValueError):
    """No item has this name."""


def all_items() -> dict[str, Item]:
    """Return the items by name, in the paper's order: by chapter, then by file."""
    found: list[Item] = []
    for module in sorted(m.name for m in pkgutil.iter_modules(items.__path__)):
        if not module.startswith("_"):
            found += importlib.import_module(f"{items.__name__}.{module}").ITEMS
    named = {item.name: item for item in found}
    if len(named) < len(found):
        raise AssertionError("two items of the paper have the same name")
    return dict(sorted(named.items(), key=lambda pair: CHAPTERS.index(pair[1].chapter)))


def chosen(names: list[str]) -> list[Item]:
    """Return the items of these names, each once; "all" stands for all of them."""
    known = all_items()
    for name in names:
        if name != "all" and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UnknownItemError(
                f"no item of the paper is called {name!r}{hint} (python -m paper list shows all)"
            )
    return list(known.values()) if "all" in names else [known[n] for n in dict.fromkeys(names)]
