"""Judge whether two shares that were counted, such as error rates, differ by chance alone."""

import numpy as np


def two_standard_errors(a: float, b: float, n: int) -> float:
    """Return two standard errors of a - b under equal shares, both in per cent of n rows."""
    p = (a + b) / 200
    return 200 * float(np.sqrt(2 * p * (1 - p) / n))
