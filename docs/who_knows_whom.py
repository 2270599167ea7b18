"""Print the drawing of who imports whom in CONTRIBUTING.md, from the import graph itself.

Run it as ``.venv/bin/python docs/who_knows_whom.py``; a test compares the two.
"""

import grimp

PACKAGE = "boundary_forest"
# Made when a method is called, against the direction of all others: save(), and loading a file with
# columns.
DEFERRED = [
    ("boundary_forest.estimators.base", "boundary_forest.files"),
    ("boundary_forest.files.loading", "boundary_forest.frames"),
]


def drawing() -> str:
    """Return a Mermaid flowchart: an arrow for each package that imports another one."""
    graph = grimp.build_graph(PACKAGE)
    for importer, imported in DEFERRED:
        graph.remove_import(importer=importer, imported=imported)
    parts = sorted(graph.find_children(PACKAGE))
    names = {part: part.rpartition(".")[2] for part in parts}
    arrows = {
        (names[importer], names[imported])
        for importer in parts
        for imported in parts
        if importer != imported
        and graph.direct_import_exists(importer=importer, imported=imported, as_packages=True)
    }
    # What an arrow of two steps says already need not be drawn.
    drawn = {
        (a, b)
        for a, b in arrows
        if not any((a, c) in arrows and (c, b) in arrows for c in names.values())
    }
    lines = [f"    {a} --> {b}" for a, b in sorted(drawn)]
    return "\n".join(["flowchart TD", *lines, "    estimators --> _core[(_core)]"])


if __name__ == "__main__":
    print(drawing())
