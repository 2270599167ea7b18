"""What figures depend on besides the code: the processor, and the versions of packages."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from boundary_forest import BoundaryForestNeighbors

PACKAGES = (
    "boundary-forest",
    "faiss-cpu",
    "hnswlib",
    "matplotlib",
    "numpy",
    "pyflann-ibeis",
    "river",
    "scikit-image",
    "scikit-learn",
    "scipy",
    "usearch",
)
# Those that a distance kernel could use; the full list is long and says little.
FEATURES = ("sse4_2", "avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "asimd", "sve")
OWN_VARIABLES = ("BOUNDARY_FOREST_ISA", "BOUNDARY_FOREST_PATH")


def described() -> dict[str, Any]:
    """Return a description of the machine, the instruction set in use, and versions."""
    forest = BoundaryForestNeighbors().fit(np.zeros((1, 1)))
    name, flags = cpu()
    return {
        "cpu": name,
        "cpu_features": [feature for feature in FEATURES if feature in flags],
        "cpus": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "instruction_set": forest.stats()["instruction_set"],
        "platform": platform.platform(),
        "python": platform.python_version(),
        "versions": {package: version_of(package) for package in PACKAGES},
        "environment": {name: value for name, value in os.environ.items() if name in OWN_VARIABLES},
    }


def memory_bytes() -> int | None:
    """Return the physical memory, or None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def version_of(package: str) -> str:
    """Return the installed version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def cpu() -> tuple[str, set[str]]:
    """Return the processor's name, and its features if the system reports them."""
    fields: dict[str, str] = {}
    path = Path("/proc/cpuinfo")
    if path.is_file():
        for line in path.read_text().splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    name = fields.get("model name") or platform.processor() or platform.machine()
    return name, set((fields.get("flags") or fields.get("Features") or "").split())
