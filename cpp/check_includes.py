"""Check that a folder of cpp/ includes only folders below it: exits with 1 and names others."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# From the lowest to the highest. A folder may include itself and those before it.
LEVELS = (
    "base",  # identifiers, parameters, random numbers, arrays, memory
    "concurrency",  # threads and forks
    "store",  # examples: positions, labels, ids
    "distance",  # metrics, prefilters, SIMD kernels
    "tree",  # Algorithm 1
    "graph",  # the trees' edges, and the search along them
    "vote",  # E: how the trees' answers become one
    "adapt",  # weights of features, lifetimes, limits: what a forest decides for itself
    "forest",  # Algorithm 2
    "distributed",  # a forest on several machines
    "tests",
)


def main() -> int:
    """Report every include of a level above, and every folder without a level."""
    root = Path(__file__).parent
    problems = []
    for path in sorted([*root.rglob("*.hpp"), *root.rglob("*.cpp")]):
        name = path.relative_to(root)
        level = name.parts[0]
        if level not in LEVELS:
            problems.append(f"{name}: the folder {level}/ has no level in {Path(__file__).name}")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            included = re.match(r'#include "([^"]+)"', line)
            if not included:
                continue
            other = included[1].split("/")[0]
            if "/" not in included[1] or other not in LEVELS:
                problems.append(f'{name}:{number}: "{included[1]}" must be written from cpp/')
            elif LEVELS.index(other) > LEVELS.index(level):
                problems.append(f'{name}:{number}: {level}/ must not include "{included[1]}"')
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
