"""Find out which law a growing cost follows, by the paper's procedure.

Both laws are fitted to the first half of the points, and judged by their root mean square error
over all of them; the law that is ruled out should err several times as much (the paper: 5 times).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar  # type: ignore[import-untyped]

Floats = NDArray[np.float64]
EVEN_POINTS = 100
FEWEST_POINTS = 4  # the first half must have two, for each law has two parameters


def judged(n: Sequence[float], cost: list[float]) -> dict[str, Any] | None:
    """Fit a log N + b and c N^p; return parameters, errors, and the ratio of the errors."""
    if len(n) < FEWEST_POINTS:
        return None
    N, y = np.array(n, dtype=np.float64), np.array(cost, dtype=np.float64)
    half = (len(N) + 1) // 2
    a, b = np.polyfit(np.log(N[:half]), y[:half], 1)
    c, p = power_law(N[:half], y[:half])
    log_rms = rms(a * np.log(N) + b - y)
    power_rms = rms(c * N**p - y)
    return {
        "points": len(N),
        "fitted": half,
        "from": n[0],
        "log": {"a": float(a), "b": float(b), "rms": log_rms},
        "power": {"c": c, "p": p, "rms": power_rms},
        "factor": power_rms / log_rms,
    }


def judged_evenly(n: list[int], cost: list[float]) -> dict[str, Any] | None:
    """Do as ``judged``, at points evenly spaced in N, interpolated between those given."""
    if len(n) < FEWEST_POINTS:
        return None
    even = np.linspace(n[0], n[-1], EVEN_POINTS)
    return judged(even.tolist(), np.interp(np.log(even), np.log(n), cost).tolist())


def power_law(N: Floats, y: Floats) -> tuple[float, float]:
    """Return c and p of the least-squares fit in the unit of y; c follows from p."""

    def best_c(p: float) -> float:
        return float(N**p @ y / (N**p @ N**p))

    found = minimize_scalar(
        lambda p: rms(best_c(p) * N**p - y),
        bounds=(-1, 2),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return best_c(found.x), float(found.x)


def rms(errors: Floats) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(errors**2)))


def straight_in_logs(n: list[int], y: list[float]) -> dict[str, float]:
    """Fit c N^p as a straight line of log y against log N; return c, p and R²."""
    x, log_y = np.log(n), np.log(y)
    p, log_c = np.polyfit(x, log_y, 1)
    rest = log_y - (p * x + log_c)
    r2 = 1 - float(np.sum(rest**2) / np.sum((log_y - log_y.mean()) ** 2))
    return {"c": float(np.exp(log_c)), "p": float(p), "r2": r2}


def linear(x: list[float], y: list[float]) -> dict[str, float]:
    """Fit the straight line a x + b by least squares; return a, b and R²."""
    X, Y = np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)
    a, b = np.polyfit(X, Y, 1)
    left = float(np.sum((a * X + b - Y) ** 2))
    return {"a": float(a), "b": float(b), "r2": 1 - left / float(np.sum((Y - Y.mean()) ** 2))}


def fitted_line(terms: list[Floats], y: list[float]) -> dict[str, Any]:
    """Fit y by least squares as a linear combination of the terms; return parameters and rms."""
    A, Y = np.stack(terms, axis=1), np.array(y, dtype=np.float64)
    scale = np.abs(A).max(axis=0)  # columns such as N² and 1 are far apart
    parameters = np.linalg.lstsq(A / scale, Y, rcond=None)[0] / scale
    return {"parameters": parameters.tolist(), "rms": rms(A @ parameters - Y)}
