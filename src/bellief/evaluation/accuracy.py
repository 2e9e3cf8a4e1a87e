"""Draws of start values together with their linear terms, as many as asked for or as an accuracy needs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.evaluation.linear_term import LinearTerms
from bellief.evaluation.posterior import Errors
from bellief.evaluation.problem import Problem
from bellief.evaluation.question_checks import check_draws
from bellief.evaluation.sampled import SampledMDPs, Worlds
from bellief.evaluation.start_law import ClosedForm, StartLaw, start_law
from bellief.evaluation.value_moments import start_moments

# Draws to begin with where an accuracy is asked for; the most that are made; by how much they grow at once at most.
FIRST_DRAWS, MOST_DRAWS, FASTEST = 250, 1_000_000, 8

# The closed form is used where it takes no more products than this times the random numbers of the draws: a quarter of
# the time of the draws at most, as measured.
CLOSED_PRODUCTS = 300


class StartDraws:
    """Values of some policies in sampled MDPs, and what improves the estimate of their start values.

    MDP n is that of `SampledMDPs`. Linear terms go with an infinite horizon; with another one there are only values.
    """

    def __init__(
        self, problem: Problem, policies: Float[np.ndarray, "k S A"], seed: int, horizon: int | None, helped: bool
    ):
        self.problem, self.policies, self.seed, self.horizon = problem, policies, seed, horizon
        self.part = problem.part((policies > 0).any(0).ravel())
        guides = SampledMDPs(problem, seed, 1)
        self.guides = [None if horizon is not None else guides.guide(policy) for policy in policies]
        self.terms = None
        if helped and horizon is None:
            self.terms = LinearTerms.of(problem, policies, self.part, self.guides)
        self.values = np.empty((0, len(policies), problem.log.states))
        self.linear = np.empty((0, len(policies)))
        self.closed: dict[int, ClosedForm | None] = {}

    def extend(self, count: int) -> None:
        """Draw until there are so many."""
        begin, states = len(self.values), self.problem.log.states
        mdps = SampledMDPs(self.problem, self.seed, count - begin, begin)
        values = np.empty((count - begin, *self.values.shape[1:]))
        linear = np.zeros((count - begin, len(self.policies)))
        weights = [policy.ravel()[self.part.held.row] for policy in self.policies]

        def fill(draws: slice, worlds: Worlds) -> None:
            here = slice(draws.start - begin, draws.stop - begin)
            for number, (weight, guide) in enumerate(zip(weights, self.guides, strict=True)):
                values[here, number] = mdps.chain_values(worlds.chain(weight, states), self.horizon, guide)
            if self.terms is not None:
                linear[here] = self.terms.draws(worlds)

        mdps.for_each(self.part, fill)
        self.values = values if begin == 0 else np.concatenate([self.values, values])
        self.linear = linear if begin == 0 else np.concatenate([self.linear, linear])

    def start(self) -> tuple[Float[np.ndarray, "N k"], Float[np.ndarray, "N k"]]:
        """Start values and their linear terms."""
        problem = self.problem
        if self.terms is None or problem.start_count is None:
            return problem.start_values(self.values, self.seed), self.linear
        # First states are drawn with the same numbers for both.
        mean = np.broadcast_to(self.terms.values, self.values.shape)
        both = problem.start_values(np.stack([self.values, mean], 1), self.seed)
        return both[:, 0], self.linear + both[:, 1] - self.terms.values @ problem.start

    def laws(
        self, start: Float[np.ndarray, "N k"], linear: Float[np.ndarray, "N k"], mixtures: Float[np.ndarray, "m k"]
    ) -> list[StartLaw | None]:
        """The law of each mixture of the policies' start values; None where draws alone do as well."""
        if self.terms is None:
            return [None] * len(mixtures)
        found, shape = [], self.terms.law(self.problem, mixtures)
        for place, mixture in enumerate(mixtures):
            sd, skewness, excess = (float(field[place]) for field in shape)
            found.append(start_law(start @ mixture, linear @ mixture, sd, skewness, excess, self._closed(mixture)))
        return found

    def _closed(self, mixture: Float[np.ndarray, "k"]) -> ClosedForm | None:
        """The closed form of a policy's start value, where there is one; differences of policies have none."""
        place = int(np.argmax(mixture))
        if not (mixture == np.eye(len(mixture))[place]).all():
            return None
        products = len(self.part.held.row) * self.problem.log.states**2
        if products > CLOSED_PRODUCTS * len(self.values) * self.part.numbers:
            return None
        if place not in self.closed:
            inverse = None if self.terms is None else self.terms.inverses[place]
            found = None
            # Mean rewards that are cut off at a range have other moments.
            if inverse is not None and self.problem.reward_range is None:
                found = start_moments(self.problem, self.policies[place], inverse)
            self.closed[place] = None if found is None else found.closed_form()
        return self.closed[place]


class Enough(NamedTuple):
    """What a question about draws is answered with: the answer, and the errors that count."""

    answer: Any
    errors: list[Errors | None]


def until(
    drawn: StartDraws, draws: int, accuracy: float | None, summarise: Callable[[], Enough]
) -> tuple[Any, str | None]:
    """Draw `draws` times or, given an accuracy, until the ends' errors are that share of the width; and a warning."""
    log = drawn.problem.log
    count = draws if accuracy is None else FIRST_DRAWS
    while True:
        drawn.extend(count)
        found = summarise()
        if accuracy is None:
            return found.answer, None
        worst = max((one.share_of_width for one in found.errors if one is not None), default=0.0)
        if worst <= accuracy:
            return found.answer, None
        if count >= MOST_DRAWS:
            return found.answer, (
                f"With {count:,} draws the ends of the interval are known to {worst:.2%} of its width, not to the "
                f"{accuracy:.2%} that was asked for."
            )
        wanted = int(count * min(FASTEST, max(1.3, 1.1 * (worst / accuracy) ** 2)))
        count = min(wanted, MOST_DRAWS)
        check_draws(log.states, log.actions, len(log.cell_count), count * len(drawn.policies))
