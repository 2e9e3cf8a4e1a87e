"""Errors as one sentence and an exit code."""

import errno
import os

from bellief.errors import UserError, shorten

FAILED, MISTAKE, INTERRUPTED, TERMINATED = 1, 2, 130, 143

# Errors of the operating system that mean the user named the wrong place; the others (a full disk) just happen.
_WRONG_PLACE = {errno.EACCES, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EPERM}


# Whether --debug was given; the output of child processes is then shown.
debugging = False


class OptionError(Exception):
    """An option's value cannot be used; the message names the option.

    Not a `ValueError`, whose message typer would replace.
    """


class Terminated(BaseException):
    """SIGTERM was received: like an interrupt, but sent by a program."""


class Unfinished(Exception):
    """Work ended early; the sentence says how to resume it."""

    def __init__(self, sentence: str, code: int):
        super().__init__(sentence)
        self.code = code


def describe(error: BaseException) -> tuple[str, int]:
    """A sentence on one line for standard error, and the exit code."""
    sentence, code = _describe(error)
    return shorten(" ".join(sentence.split())), code


def _describe(error: BaseException) -> tuple[str, int]:
    if isinstance(error, UserError | OptionError):
        return str(error), MISTAKE
    if isinstance(error, Unfinished):
        return str(error), error.code
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return "Interrupted.", INTERRUPTED
    if isinstance(error, Terminated):
        return "Terminated.", TERMINATED
    # By attribute, because typer brings its own copy of click's exceptions in some versions and not in others.
    if hasattr(error, "format_message"):
        return _usage(error), MISTAKE
    # JAX reports it in several ways, none of them a MemoryError.
    if isinstance(error, MemoryError) or any(words in str(error) for words in ("RESOURCE_EXHAUSTED", "Out of memory")):
        return "There is not enough memory for this: ask for fewer states, MDPs, draws or runs.", FAILED
    if isinstance(error, OSError):
        place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "The output"
        reason = error.strerror or str(error) or type(error).__name__
        code = MISTAKE if error.errno in _WRONG_PLACE else FAILED
        return f"{place} cannot be read or written ({reason}); choose another place, or make room.", code
    what = f"{type(error).__name__}: {error}".removesuffix(": ").rstrip(".")
    return f"This is a bug in Bellief ({what}): please report it with what --debug shows.", FAILED


def _usage(error) -> str:
    """A mistake in the command line itself, in one line."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "bellief"
    option = getattr(error, "option_name", None)
    if hasattr(error, "possibilities"):
        near = f"did you mean {sorted(error.possibilities)[0]}?" if error.possibilities else f"see '{command} --help'."
        return f"'{command}' has no option {option}: {near}"
    message = error.format_message().strip().rstrip(".")
    return f"{message}; see '{command} --help'." if not message.endswith("?") else message
