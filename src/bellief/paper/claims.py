"""Claims: sentences of the paper as tests that can come out either way.

A test has two halves. `measure` takes the results and gives `Measured`: numbers with 95% bootstrap intervals over runs
(or data sets) and the size they were seen at. `rule` makes an `Outcome` of them. What was measured can be kept (see
`bellief.paper.summary`) and judged again without the runs. `judge` gives the verdict: a claim that is seen at less than
its least size, or whose interval lies on both sides of its margin, is too small to judge; one that depends on what the
paper leaves open is under-specified.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bellief.paper.computed_results import Missing, Results
from bellief.paper.quotes import QUOTES, Quote
from bellief.paper.tasks import Size
from bellief.plots.statistics import Estimate
from bellief.report.document import NOT_REPRODUCED, REPRODUCED, TOO_SMALL, UNDER_SPECIFIED

# "Similar" and "very small impact" mean less than this share of the best possible reward, "slightly" less than the
# second; the paper gives no numbers.
MARGIN, SLIGHT = 0.10, 0.25
HOLDS, FAILS, UNCLEAR, OPEN = "holds", "fails", "unclear", "open"


class Measured(NamedTuple):
    """Numbers with their intervals, by name, and the size they were seen at; `ours` is shown, and never judged."""

    estimates: Mapping[str, Estimate]
    size: Size
    ours: Estimate | None = None


class Outcome(NamedTuple):
    """What a rule found: `holds`, `fails`, `unclear` (the interval decides nothing) or `open` (the paper does not say
    enough), and the numbers in words.
    """

    state: str
    statistic: str
    note: str = ""


class Check(NamedTuple):
    """How a sentence is tested: what is measured, and when it holds.

    >>> from bellief.paper.claims import Measured, Outcome, Check
    >>> from bellief.paper.tasks import Size
    >>> from bellief.plots.statistics import Estimate
    >>> seen = Measured({"reward": Estimate(3.6, 3.5, 3.7)}, Size(9, 100))
    >>> test = Check(lambda results: seen, lambda found: Outcome("holds", str(found.estimates["reward"].value)))
    >>> test.rule(test.measure(None)).statistic
    '3.6'
    """

    measure: Callable[[Results], Measured]
    rule: Callable[[Measured], Outcome]


class Claim(NamedTuple):
    """What is tested (`sentence`, in our words), the sentence of the paper that it stands for (`quote`, by its name in
    `quotes`), the item it belongs to, and the least size at which it may be judged. `unprinted` is what the task lacks
    in the paper: with it a failure says nothing about the paper's own task, and is under-specified.

    >>> from bellief.paper.items import ITEMS
    >>> claim = ITEMS["fig:full_chain"].claims[1]
    >>> claim.key, claim.quoted.text
    ('fig:full_chain | NChain | BBI performs similarly to PSRL', 'BBI performs similarly to to MMBI and PSRL.')
    """

    item: str
    subject: str
    sentence: str
    least: Size
    test: Check
    quote: str
    unprinted: str = ""

    @property
    def key(self) -> str:
        """The claim's name in a summary."""
        return f"{self.item} | {self.subject} | {self.sentence}"

    @property
    def quoted(self) -> Quote:
        """The paper's sentence."""
        return QUOTES[self.quote]


class Judgement(NamedTuple):
    """A claim with its verdict."""

    claim: Claim
    verdict: str
    statistic: str
    size: Size | None
    note: str


def judge(claim: Claim, results: Results) -> Judgement:
    """The verdict on a claim, from results.

    >>> from bellief.paper.claims import Claim, Measured, Outcome, Check, judge
    >>> from bellief.paper.tasks import Size
    >>> test = Check(lambda results: Measured({}, Size(5, 100)), lambda found: Outcome("holds", "3.6"))
    >>> claim = Claim("fig:x", "NChain", "It learns", Size(9, 100), test, "similar")
    >>> judge(claim, None).verdict, judge(claim._replace(least=Size(5, 100)), None).verdict
    ('too small to judge', 'reproduced')
    """
    try:
        measured = claim.test.measure(results)
    except Missing as missing:
        return unmeasured(claim, str(missing))
    return judge_measured(claim, measured)


def unmeasured(claim: Claim, why: str) -> Judgement:
    """The verdict where nothing was measured."""
    return Judgement(claim, TOO_SMALL, "", None, f"not computed: {why}")


def judge_measured(claim: Claim, measured: Measured) -> Judgement:
    """The verdict on a claim, from what was measured."""
    outcome, size, least = claim.test.rule(measured), measured.size, claim.least
    note = outcome.note
    if measured.ours is not None:
        note = "; ".join(part for part in (note, f"ours: {plain(measured.ours)}") if part)
    if size.runs < least.runs or size.steps < least.steps:
        needed = f"needs at least {least.runs:,} runs of {least.steps:,} steps"
        return Judgement(claim, TOO_SMALL, outcome.statistic, size, needed)
    if outcome.state == UNCLEAR:
        why = note or "the interval lies on both sides of the margin; more runs would decide"
        return Judgement(claim, TOO_SMALL, outcome.statistic, size, why)
    if outcome.state == FAILS and claim.unprinted:
        why = "; ".join(part for part in (note, f"it fails here, and {claim.unprinted}") if part)
        return Judgement(claim, UNDER_SPECIFIED, outcome.statistic, size, why)
    verdict = {HOLDS: REPRODUCED, FAILS: NOT_REPRODUCED, OPEN: UNDER_SPECIFIED}[outcome.state]
    return Judgement(claim, verdict, outcome.statistic, size, note)


# Intervals


def within(estimate: Estimate, low: float, high: float) -> str:
    """Whether an interval lies inside, outside or across a range."""
    if low <= estimate.low and estimate.high <= high:
        return HOLDS
    return FAILS if estimate.low > high or estimate.high < low else UNCLEAR


def positive(estimate: Estimate) -> str:
    """Whether an interval lies above zero, not above it, or across."""
    return HOLDS if estimate.low > 0 else FAILS if estimate.high <= 0 else UNCLEAR


def worst(states: list[str]) -> str:
    """Of several parts that must all hold."""
    return FAILS if FAILS in states else UNCLEAR if UNCLEAR in states else HOLDS


def agreed(estimates: Sequence[Estimate], low: float, high: float) -> str:
    """Of several readings of one sentence: what all of them say about a range, `open` where they disagree: one holds
    and another fails, or one is decided, another is not, and their intervals are disjoint.
    """
    states = {within(one, low, high) for one in estimates}
    if len(states) == 1:
        return states.pop()
    apart = any(one.high < other.low for one in estimates for other in estimates)
    return OPEN if {HOLDS, FAILS} <= states or apart else UNCLEAR


def any_reading(states: Sequence[str]) -> str:
    """Of several readings of which the sentence means one: `open` where one holds and another fails, otherwise what the
    decided ones say; a failure needs all of them.
    """
    if HOLDS in states:
        return OPEN if FAILS in states else HOLDS
    return FAILS if set(states) == {FAILS} else UNCLEAR


def together(states: Sequence[str]) -> str:
    """Of several variants that the paper leaves open: what all of them say, `open` where they disagree or one of them
    is open itself.
    """
    found = set(states)
    if len(found) == 1:
        return found.pop()
    return OPEN if OPEN in found or {HOLDS, FAILS} <= found else UNCLEAR


def percent(estimate: Estimate) -> str:
    """A share with its interval."""
    value, low, high = (f"{100 * number:+.1f}" for number in estimate)
    return f"{value}% [{low}, {high}]"


def plain(estimate: Estimate) -> str:
    """A number with its interval."""
    return f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"
