"""The error class that stands for a mistake of the caller, not of Bellief, and notices."""

import warnings
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake that the user can correct: one sentence that says what, where and what to do.

    The command line prints the sentence and exits with code 2; in Python it is an ordinary `ValueError`.

    >>> import bellief
    >>> bellief.make("nchian")
    Traceback (most recent call last):
        ...
    bellief.errors.UserError: There is no environment called 'nchian': did you mean 'nchain'?
    >>> issubclass(bellief.UserError, ValueError)
    True
    """

    def __init__(self, message: object = "") -> None:
        # Texts from elsewhere (a cell, another library's complaint) may bring line breaks, and be of any length.
        super().__init__(" ".join(shorten(str(message)).splitlines()))


def require(condition: object, sentence: str) -> None:
    """`UserError` with the sentence unless the condition holds.

    >>> from bellief.errors import require
    >>> require(0 < 0.5 < 1, "discount must lie between 0 and 1, not 0.5.")
    """
    if not condition:
        raise UserError(sentence)


def require_choice(value: object, choices: Iterable[str | None], what: str) -> None:
    """`UserError` unless the value is one of the choices; `what` begins the sentence.

    >>> from bellief.errors import require_choice
    >>> require_choice("mean", ("mean", "thompson"), "There is no rule")
    >>> require_choice("median", ("mean", "thompson"), "There is no rule")
    Traceback (most recent call last):
        ...
    bellief.errors.UserError: There is no rule 'median'; choose one of mean, thompson.
    """
    choices = tuple(choices)
    named = ", ".join(str(choice) for choice in choices if choice is not None)
    require(value in choices, f"{what} '{value}'; choose one of {named}.")


class Notice(FutureWarning):
    """Something means another thing than in an earlier version, or takes much memory.

    Said once in a process; on stderr by the command line.

    >>> import warnings
    >>> from bellief.errors import Notice, notify_once
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     notify_once("A name has changed."), notify_once("A name has changed.")
    (None, None)
    >>> [(one.category is Notice, str(one.message)) for one in seen]
    [(True, 'A name has changed.')]
    """


_notified: set[str] = set()


def notify_once(text: str) -> None:
    """Warn with a `Notice`, unless this process has said the same before."""
    if text not in _notified:
        _notified.add(text)
        warnings.warn(text, Notice, stacklevel=3)


# Characters of the longest message; a label or a file can be far longer.
LONGEST = 2000


def shorten(text: str, longest: int = LONGEST) -> str:
    """A text with its middle left out where it is too long.

    >>> from bellief.errors import shorten
    >>> shorten("abcdefghijklmnopqrstuvwxyz", 12)
    'abcd ... xyz'
    """
    if len(text) <= longest:
        return text
    kept = longest - 5
    return f"{text[: kept - kept // 2]} ... {text[len(text) - kept // 2 :]}"
