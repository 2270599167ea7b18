"""Which distances there are, and how the one that was asked for is given to the engine.

A metric is the name of a built-in one, a function of two float64 arrays, or a compiled function
with an ``address``. Whatever cannot be one is refused here, before anything is learned.
"""

from __future__ import annotations

import functools
import inspect
from numbers import Real
from typing import Any

import numpy as np

# As scikit-learn calls them, too; and as hnswlib, USearch and Annoy do.
ALIASES = {"l1": "manhattan", "l2": "euclidean", "ip": "inner_product", "angular": "cosine"}

COMPILED_SIGNATURE = "(float64*, float64*, int64) -> float64"


def canonical(metric: Any) -> Any:
    """Return a metric under its own name; a callable as it is."""
    return ALIASES.get(metric, metric) if isinstance(metric, str) else metric


def engine_metric(metric: Any, metric_params: dict[str, Any] | None) -> tuple[Any, float]:
    """Return the metric as the engine takes it: a name, address or function; and minkowski's p."""
    params, metric = dict(metric_params or {}), canonical(metric)
    if callable(metric):
        if not hasattr(metric, "address"):
            _check_arguments(metric, params)
            return functools.partial(metric, **params), 2.0
        if params:
            raise ValueError(
                "metric_params must be None if metric is a compiled function, got "
                f"{metric_params!r}"
            )
        signature = str(getattr(metric, "_sig", COMPILED_SIGNATURE))
        if signature != COMPILED_SIGNATURE:
            raise TypeError(
                f"metric must be compiled with the signature {COMPILED_SIGNATURE}, got "
                f"{signature}: use numba.cfunc('float64(CPointer(float64), CPointer(float64), "
                "int64)')"
            )
        return int(metric.address), 2.0
    p = params.pop("p", None) if metric == "minkowski" else None
    if params:
        raise ValueError(
            f"metric={metric!r} does not accept metric_params {sorted(map(str, params))}: "
            "'minkowski' accepts 'p', a function its own keyword arguments, the other metrics "
            "nothing"
        )
    if p is not None and not (isinstance(p, Real) and 1 <= float(p) < np.inf):
        raise ValueError(f"metric_params['p'] must be a finite number >= 1, got {p!r}")
    return metric, 2.0 if p is None else float(p)


def name_of(function: Any) -> str:
    """Return a metric's name; of a callable, as far as it has one."""
    if isinstance(function, str):
        return function
    module = getattr(function, "__module__", "")
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{module}.{name}"


def _check_arguments(metric: Any, params: dict[str, Any]) -> None:
    """Refuse a callable that does not take what metric_params names now rather than in use."""
    try:
        signature = inspect.signature(metric)
    except (TypeError, ValueError):  # some compiled functions do not tell
        return
    try:
        signature.bind(None, None, **params)
    except TypeError as error:
        raise TypeError(
            "metric must accept two arrays and the keyword arguments in metric_params: "
            f"metric{signature} does not accept metric_params={params!r} ({error})"
        ) from error
