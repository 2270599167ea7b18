"""``sample_weight`` is refused: a tree stores an example or does not, whatever it weighs.

It is no parameter of ``fit``, so that scikit-learn's meta-estimators, which look at the signature,
know. Whoever passes it all the same learns what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def refuses_sample_weight(method: Callable[P, T]) -> Callable[P, T]:
    """Return the method with an error that says what to do instead of passing sample_weight."""

    @wraps(method)
    def checked(*arguments: P.args, **options: P.kwargs) -> T:
        if options.pop("sample_weight", None) is not None:
            kind: Any = arguments[0]
            instead = ", or set class_weight" if hasattr(kind, "class_weight") else ""
            raise TypeError(
                f"{type(kind).__name__}.{method.__name__}() does not accept sample_weight, because "
                f"a tree stores an example or does not: repeat rows of X and y{instead}"
            )
        return method(*arguments, **options)

    return checked
