"""How much wider an interval is because a scale is an estimate.

>>> from bellief.evaluation.widening import widening
>>> [round(widening(degrees), 2) for degrees in (1, 3, 30)]
[42.03, 2.64, 1.09]
"""

import functools
import math
import statistics

import numpy as np


def widening(degrees: int) -> float:
    """What a variance from so few degrees of freedom is multiplied by: Student's over Gauss's 97.5% point, squared.

    The prior takes the scale that it is given as known. A scale from a handful of numbers is not, and an interval that
    allows for it is wider by this factor: 42 with one degree of freedom, 2.6 with 3, 1.09 with 30.
    """
    return (_student_point(max(degrees, 1)) / statistics.NormalDist().inv_cdf(0.975)) ** 2


@functools.cache
def _student_point(degrees: int) -> float:
    """The 97.5% point of Student's t distribution.

    With t = sqrt(degrees) tan(u) its density is that of cos(u)^(degrees - 1), which Gauss's rule integrates to the last
    digits; `scipy.special` has it too, but importing that takes longer than evaluating a small log.
    """
    node, weight = np.polynomial.legendre.leggauss(64)
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    low, high = 0.0, math.pi / 2
    for _ in range(100):
        angle = (low + high) / 2
        mass = scale * angle / 2 * float(weight @ np.cos(angle / 2 * (node + 1)) ** (degrees - 1))
        low, high = (angle, high) if mass < 0.475 else (low, angle)
    return math.sqrt(degrees) * math.tan((low + high) / 2)
