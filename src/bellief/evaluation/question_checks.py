"""Checks of arguments and sizes before anything is computed."""

import math
import os

from bellief.errors import UserError, notify_once
from bellief.processors import cores

# Arrays of a transition table's size that are alive at once while MDPs are drawn and solved.
COPIES = 4

# Random numbers that a batch of MDPs takes. Of large MDPs a batch has a few draws, because keys are computed once for
# all of them, as long as these take at most the largest number.
BATCH_NUMBERS, FEWEST, LARGEST_BATCH = 1_000_000, 4, 12_000_000

# Bytes for each of them while MDPs are drawn and solved, as measured.
NUMBER_BYTES = 40

# Memory that is announced before it is taken.
MUCH_MEMORY = 1e9

# Steps that count less than this part of the first one change no value in double precision.
NEGLIGIBLE = 2.0**-60

# A step of small chains takes about 50 microseconds, so that this many take a minute.
LONGEST_HORIZON = 1_000_000


def check_choice(kind: str, name: str, choices: tuple[str, ...]) -> None:
    """`name` must be one of the choices."""
    if name not in choices:
        raise UserError(f"There is no {kind} '{name}'; choose one of {', '.join(choices)}.")


def check_numbers(discount: float, level: float, seed: int, **counts: int | None) -> None:
    """Discount, level and seed must lie in their ranges; counts that are given must be positive."""
    if not 0 < discount <= 1:
        raise UserError(f"discount must lie in (0, 1], not {discount}.")
    if not 0 < level < 1:
        raise UserError(f"level must lie between 0 and 1, not {level}.")
    if not 0 <= seed < 2**32:
        raise UserError(f"seed must lie between 0 and {2**32 - 1}, not {seed}.")
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UserError(f"{name} must be at least 1, not {count}.")


def check_accuracy(accuracy: float | None) -> None:
    """An accuracy is a share of the interval's width."""
    if accuracy is not None and not 1e-4 <= accuracy <= 0.5:
        raise UserError(f"accuracy must lie between 0.0001 and 0.5, not {accuracy}.")


def steps_that_count(discount: float, horizon: int) -> int:
    """The horizon without the steps that discounting makes negligible; refused where too many are left to compute.

    >>> steps_that_count(0.5, 1_000_000_000)
    60
    """
    if discount < 1:
        horizon = min(horizon, math.ceil(math.log(NEGLIGIBLE) / math.log(discount)))
    if horizon > LONGEST_HORIZON:
        advice = "or leave it out" if discount < 1 else "or give a discount below 1"
        raise UserError(
            f"With discount {discount:g} a horizon has {horizon} steps that count, which would take too long: ask for "
            f"at most {LONGEST_HORIZON}, {advice}."
        )
    return horizon


def check_steps(lookahead: int) -> int:
    """The steps of an induction, refused where they take too long."""
    if lookahead > LONGEST_HORIZON:
        raise UserError(
            f"An induction of {lookahead} steps would take too long: give a lookahead of at most {LONGEST_HORIZON}, a "
            "smaller discount, or another method."
        )
    return lookahead


def check_memory(states: int, actions: int, *, tables: int) -> None:
    """`tables` transition tables of this size, held at once, must fit into the machine's memory.

    Refused before the machine starts to swap. The usual cause is an identifier used as the number of a state.
    """
    needed = 8 * states * states * actions * (tables + COPIES)
    available = _physical_memory()
    if needed > available:
        raise UserError(
            f"{states} states and {actions} actions need about {needed / 1e9:.3g} GB of memory and this machine has "
            f"{available / 1e9:.3g}: number states and actions 0, 1, 2, ... without gaps, or ask for fewer MDPs."
        )


def batch_draws(numbers: int) -> int:
    """Draws of a batch, where a draw takes so many random numbers; 1 however many these are."""
    return max(BATCH_NUMBERS // numbers, min(FEWEST, LARGEST_BATCH // numbers), 1)


def check_draws(states: int, actions: int, cells: int, draws: int) -> None:
    """The draws of all states' values, the rows and the observed outcomes must fit into the machine's memory.

    What takes much of it is announced.
    """
    numbers = cells + 3 * states * actions + 1
    batches = min(cores() * batch_draws(numbers), draws)
    # Draws are held about three times while they are sorted and written.
    needed = 8 * (3 * states * draws + 40 * states * actions + 40 * cells) + NUMBER_BYTES * numbers * batches
    available = _physical_memory()
    if needed > available:
        raise UserError(
            f"{draws} draws of {states} states' values with {actions} actions need about {needed / 1e9:.3g} GB of "
            f"memory and this machine has {available / 1e9:.3g}: ask for fewer draws."
        )
    if needed > MUCH_MEMORY:
        notify_once(f"{draws} draws of {states} states' values take about {needed / 1e9:.2g} GB of memory.")


def _physical_memory() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not known on every system
        return math.inf
