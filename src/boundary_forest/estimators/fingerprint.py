"""A forest's hash: its settings, a digest of each tree, and a sum over the stored examples.

A tree's digest is of who came under whom, in order of creation; an example's is of its arrival
number, position and label. The engine makes both without copying a row, and a sum does not depend
on where examples lie, so that neither the layout of memory nor the number of machines matters.
"""

from __future__ import annotations

import hashlib
from typing import Any

from boundary_forest.estimators.errors import plain
from boundary_forest.estimators.fitted import LATER_PARAMETERS, Fitted
from boundary_forest.estimators.metrics import name_of


def fingerprint_of(fitted: Fitted) -> str:
    """Return 32 hexadecimal digits."""
    settings = dict(vars(fitted.settings)) | fitted.labels.parameters | fitted.labels.rules
    settings["E"] = fitted.labels.parameters.get("estimator")
    params = fitted.settings.metric_params or {}
    settings["metric_params"] = sorted((key, plain(value)) for key, value in params.items())
    del settings["ids"]  # names of the user's own change no answer
    for name, value in settings.pop("adaptive").items():
        if value != LATER_PARAMETERS[name]:  # the paper's forest keeps the hash that it had
            settings[name] = value
    trees, examples, adaptation = fitted.engine.digest(fitted.labels.keys())
    described = [(key, _described(value)) for key, value in sorted(settings.items())]
    text = repr((described, fitted.engine.seen))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
    digest.update(trees.tobytes())
    digest.update(examples.tobytes())
    if adaptation.any():
        digest.update(adaptation.tobytes())
    return digest.hexdigest()


def _described(value: Any) -> Any:
    return name_of(value) if callable(value) else value
