"""When two shares that were counted, such as error rates, are the same but for chance."""

import numpy as np


def two_standard_errors(a: float, b: float, n: int) -> float:
    """Two standard errors of a - b, both in per cent of n rows each, were the shares the same."""
    p = (a + b) / 200
    return 200 * float(np.sqrt(2 * p * (1 - p) / n))
