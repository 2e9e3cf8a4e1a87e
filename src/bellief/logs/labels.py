"""Names of states and actions: how a cell becomes one, how they are ordered, and how they are found again."""

import numbers
import re
from collections.abc import Iterable, Sequence
from typing import Any

from bellief.errors import UserError

Labels = tuple[str, ...] | None

LONGEST_SHOWN, MOST_SHOWN = 40, 12

# Characters of the longest name of a state or an action; they are printed whole.
LONGEST_LABEL = 1000


def label_text(cell: Any) -> str | None:
    """The label in a cell; None where it holds none (empty, missing, a date, a list, 1.5)."""
    if isinstance(cell, str):
        return cell.strip() or None
    if isinstance(cell, numbers.Integral):  # NumPy's whole numbers and truth values too
        return str(cell)
    # A column of whole numbers with a gap in it arrives as floats.
    if isinstance(cell, numbers.Real) and not isinstance(cell, numbers.Rational) and float(cell).is_integer():
        return str(int(float(cell)))
    return None


def natural_order(labels: Sequence[str]) -> list[str]:
    """Sorted so that s2 comes before s10."""
    return sorted(labels, key=lambda label: ([_part(part) for part in re.split(r"(\d+)", label)], label))


def _part(text: str) -> tuple[int, int, str]:
    # isdecimal: a superscript two is a digit but not a number; very long runs of digits are compared as text.
    is_number = text.isdecimal() and len(text) < 1000
    return (0, int(text), "") if is_number else (1, 0, text)


def name_of(index: int, labels: Labels) -> str:
    """What to call a state or action in a message or a table."""
    return str(index) if labels is None else labels[index]


def find(kind: str, value: Any, size: int, labels: Labels, what: str | None = None) -> int:
    """Index of a state or action that a user named by its label or, where there are none, by its number.

    `what` is the name of the option or argument, where it is not the kind.
    """
    if labels is not None:
        text = label_text(value)
        if text in labels:
            return labels.index(text)
        few = ", ".join(shown(label) for label in labels[:8]) + (", ..." if size > 8 else "")
        raise UserError(f"There is no {kind} '{shown(value)}' in the data; the {kind}s are {few}.")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0 <= number < size or number != int(number):
        raise UserError(f"{what or kind} must be one of the {kind}s 0 to {size - 1}, not {shown(value)}.")
    return int(number)


def shown(cell: Any) -> str:
    """A cell as a message shows it: on one line, and not the whole of a long one."""
    # Cut first: a cell may be as large as memory.
    text = " ".join(str(cell)[: 4 * LONGEST_SHOWN].split())
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


def few(names: Iterable[Any]) -> str:
    """Names as a message lists them: the first ones, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return (", ".join(shown(name) for name in names[:MOST_SHOWN]) or "none") + more
