"""The metrics d on positions and d_c on labels, in the one order of summation that is theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Row = Any  # a 1-D numpy array
Distances = Callable[[Row, Any], list[float]]  # of y to every row of an array, in reduced form


def added(terms: Iterable[float]) -> float:
    """Add in order; Python's own sum rounds otherwise from version 3.12 on."""
    total = 0.0
    for term in terms:
        total += term
    return total


def euclidean_label_distance(a: Row, b: Row) -> float:
    largest = max(abs(float(x) - float(y)) for x, y in zip(a, b, strict=True))
    if largest == 0 or math.isinf(largest):
        return largest
    parts = [(float(x) - float(y)) / largest for x, y in zip(a, b, strict=True)]
    return largest * math.sqrt(added(part * part for part in parts))


def always(a: Row, b: Row) -> float:
    """Retrieval: every example is kept."""
    return math.inf


def in_lanes(terms: Any, fold: Any = np.add) -> list[float]:
    """Folds the features: lane l takes those with i mod 16 = l in order, then 16, 8, 4, 2, 1."""
    n, features = terms.shape
    padded = np.zeros((n, -(-features // 16) * 16), dtype=terms.dtype)
    padded[:, :features] = terms
    lanes = np.zeros((n, 16), dtype=terms.dtype)
    for block in range(0, padded.shape[1], 16):
        lanes = fold(lanes, padded[:, block : block + 16])
    for half in (8, 4, 2, 1):
        lanes = fold(lanes[:, :half], lanes[:, half : 2 * half])
    return list(lanes[:, 0].astype(np.float64).tolist())


def cosine(y: Row, X: Any) -> list[float]:
    qq = in_lanes((y * y)[None])[0]

    def to(x: Row, qr: float, rr: float) -> float:
        if not (0 < qq < math.inf and 0 < rr < math.inf):
            return 0.0 if (y == x).all() else 1.0 if qq == 0 or rr == 0 else math.inf
        if qr == qq == rr:
            return 0.0
        norms = math.sqrt(qq * rr)
        if not 0 < norms < math.inf:
            norms = math.sqrt(qq) * math.sqrt(rr)
        distance = 1 - qr / norms
        return 0.0 if distance < 0 else distance

    return [to(*args) for args in zip(X, in_lanes(y * X), in_lanes(X * X), strict=True)]


def canberra(y: Row, X: Any) -> list[float]:
    y, X = y.astype(np.float64), X.astype(np.float64)
    size = abs(y) + abs(X)
    return in_lanes(np.where(size == 0, 0.0, abs(y - X) / np.where(size == 0, 1.0, size)))


def power(x: float, p: float) -> float:
    """X ** p; if p is an integer or half of one, by multiplications and a square root alone."""
    if p > 64 or 2 * p != int(2 * p):
        try:
            return math.pow(x, p)
        except OverflowError:
            return math.inf
    exponent, base = int(p), x
    result = math.sqrt(x) if 2 * p % 2 == 1 else 1.0
    while exponent > 0:
        if exponent % 2 == 1:
            result *= base
        exponent, base = exponent // 2, base * base
    return result


def root(r: float, p: float) -> float:
    """The largest number whose power is at most r; the bits of numbers are ordered as they are."""
    if p > 64 or 2 * p != int(2 * p):
        return math.pow(r, 1 / p)
    if r in (0, math.inf):  # powers of small numbers underflow, but d(x, x) is 0
        return r
    below, above = 0, int(np.float64(math.inf).view(np.uint64))
    while above - below > 1:
        middle = (below + above) // 2
        if power(float(np.uint64(middle).view(np.float64)), p) <= r:
            below = middle
        else:
            above = middle
    return float(np.uint64(below).view(np.float64))


def as_float32(x: Any) -> Any:
    """Rows of int8 and float16 are compared as the float32 that have their values."""
    return x.astype(np.float32) if x.dtype in (np.int8, np.float16) else x


def metric(
    d: str | Callable[[Row, Row], float], p: float
) -> tuple[Distances, Callable[[float, int], float]]:
    """The reduced distances of y to rows, and what turns one into a distance."""

    def minkowski(y: Row, X: Any) -> list[float]:
        differences = abs(y.astype(np.float64) - X.astype(np.float64))
        return in_lanes(np.array([[power(float(x), p) for x in row] for row in differences]))

    formulas: dict[str, tuple[Distances, Callable[[float, int], float]]] = {
        "euclidean": (lambda y, X: in_lanes((y - X) * (y - X)), lambda r, n: math.sqrt(r)),
        "manhattan": (lambda y, X: in_lanes(abs(y - X)), lambda r, n: r),
        "chebyshev": (lambda y, X: in_lanes(abs(y - X), np.maximum), lambda r, n: r),
        "minkowski": (minkowski, lambda r, n: root(r, p)),
        "cosine": (cosine, lambda r, n: r),
        "hamming": (lambda y, X: in_lanes((y != X).astype(np.int64)), lambda r, n: r / n),
        "canberra": (canberra, lambda r, n: r),
        "inner_product": (lambda y, X: [-r for r in in_lanes(y * X)], lambda r, n: 1 + r),
    }
    if callable(d):
        f = d
        return lambda y, X: [f(y.astype(float), x.astype(float)) for x in X], lambda r, n: r
    if d == "minkowski" and p in (1, 2):
        d = "manhattan" if p == 1 else "euclidean"
    reduced, distance = formulas[d]

    def compared(y: Row, X: Any) -> list[float]:
        """Bytes as integers; a query that the rows' type does not hold in float64; NaN is far."""
        y, X = as_float32(y), as_float32(X)
        if y.dtype != X.dtype:
            y, X = y.astype(np.float64), X.astype(np.float64)
        elif y.dtype == np.uint8:
            y, X = y.astype(np.int64), X.astype(np.int64)
        return [math.inf if math.isnan(r) else r for r in reduced(y, X)]

    return compared, distance


def weighted_euclidean(weights: Row) -> Distances:
    """Squares of (x - y) s, s the root of the weight; in float64 where either row is float64."""

    def compared(y: Row, X: Any) -> list[float]:
        y, X = as_float32(y), as_float32(X)
        s = np.sqrt(weights).astype(np.float64 if X.dtype == np.float64 else np.float32)
        sums = np.float32 if y.dtype == X.dtype != np.float64 else np.float64
        parts = (y.astype(sums) - X.astype(sums)) * s.astype(sums)
        return [math.inf if r != r else r for r in in_lanes(parts * parts)]  # NaN is far

    return compared
