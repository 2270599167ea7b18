"""Adapt docstrings to reStructuredText, and leave out methods of other libraries."""

import re
from typing import Any

# For other modules of the package, not for users.
INTERNAL = {
    *("changing", "check_params", "encodes_columns", "erase_forgotten", "erased", "fitted"),
    *("label_policy", "learn_batch", "record_with", "recording", "search"),
}
SHAPE = re.compile(r"shape \(([^)]*)\)")


def escape_shapes(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape names such as ``n_features_in_`` in shapes: they would be taken for references."""
    for i, line in enumerate(lines):
        lines[i] = SHAPE.sub(lambda found: re.sub(r"_(?=\W)", r"\\_", found[0]), line)


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out internal names, and what scikit-learn and River document themselves."""
    if name in INTERNAL:
        return True
    module = getattr(obj, "__module__", None) or getattr(
        getattr(obj, "fget", None), "__module__", ""
    )
    return True if module.split(".")[0] in ("sklearn", "river") else None


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("autodoc-process-docstring", escape_shapes, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
