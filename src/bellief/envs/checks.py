"""Checks of the numbers an environment is built from; each raises a `UserError` that says what to change."""

import math
from numbers import Integral, Real
from typing import Any

from bellief.errors import UserError, require, shorten


def check_number(name: str, value: Any) -> float:
    """`value` as a float, if it is a finite number."""
    too_large = isinstance(value, int) and abs(value) >= 2**1000
    if isinstance(value, bool) or not isinstance(value, Real) or too_large or not math.isfinite(value):
        raise UserError(f"Parameter '{name}' is {value!r}: set it to a finite number.")
    return float(value)


def check_probability(name: str, value: Any) -> float:
    """`value` as a float, if it lies in [0, 1]."""
    number = check_number(name, value)
    require(0.0 <= number <= 1.0, f"Parameter '{name}' is {value!r}: set it to a probability between 0 and 1.")
    return number


def check_count(name: str, value: Any, least: int, most: int = 2**31 - 1) -> int:
    """`value` as an int, if it is a whole number of at least `least` and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise UserError(f"Parameter '{name}' is {value!r}: set it to a whole number of at least {least}.")
    require(int(value) <= most, f"Parameter '{name}' is {shorten(str(value), 40)}: set it to at most {most}.")
    return int(value)
