"""Logs that come with the package, by name: wherever a log is asked for, `example:clinic` is one.

>>> from bellief.logs import as_tally
>>> from bellief.logs.examples import EXAMPLES
>>> sorted(EXAMPLES)
['bus-engines', 'clinic', 'frozen-lake']
>>> as_tally("example:clinic").state_labels
('mild', 'moderate', 'recovered', 'severe')
"""

import difflib
import os
from importlib import resources
from typing import NamedTuple

from bellief.errors import UserError

PREFIX = "example:"


class Example(NamedTuple):
    """A log in the package: its file, what it is in a few words, where it is from, and a discount that suits it."""

    name: str
    file: str
    title: str
    about: str
    source: str
    discount: float


EXAMPLES = {
    example.name: example
    for example in (
        Example(
            "clinic",
            "clinic.csv",
            "A clinic's treatments",
            "Each month a patient is mild, moderate or severe, and the doctor waits, gives a pill or an infusion. "
            "Rewards are costs, as negative numbers; an episode ends when the patient has recovered.",
            "Made up by examples/clinic_log.py.",
            0.95,
        ),
        Example(
            "bus-engines",
            "bus_engines.csv.gz",
            "Bus engines: keep or replace",
            "104 buses, month by month: the miles on the engine, and whether it was kept or replaced. Rewards are "
            "running costs and the price of a new engine, as negative numbers.",
            "Real data of J. Rust (Econometrica, 1987), by way of OpenSourceEconomics (MIT licence).",
            0.99,
        ),
        Example(
            "frozen-lake",
            "frozen_lake.parquet",
            "Crossing a frozen lake",
            "A walker on slippery ice steps left, down, right or up; reaching the goal pays 1, a hole ends the walk.",
            "Recorded from Gymnasium's FrozenLake-v1.",
            0.95,
        ),
    )
}


def is_example(data: object) -> bool:
    """Whether this is the name of one of these logs."""
    return isinstance(data, str) and data.startswith(PREFIX)


def example_path(name: str) -> str:
    """The file behind `example:NAME`."""
    known = EXAMPLES.get(name.removeprefix(PREFIX))
    if known is None:
        near = difflib.get_close_matches(name.removeprefix(PREFIX), EXAMPLES, n=1)
        hint = f"did you mean '{PREFIX}{near[0]}'?" if near else f"choose one of {', '.join(EXAMPLES)}."
        raise UserError(f"There is no example log '{name}': {hint}")
    return os.fspath(resources.files("bellief.logs").joinpath("example_data", known.file))  # type: ignore[call-overload]
