"""The linear part of a policy's start value: its draws, and its law without drawing.

With d the expected discounted visits and V the values in the mean MDP, the start value of a sampled MDP is, to first
order, that of the mean MDP plus

    sum over rows of  d(state) * chance of the action * (reward + discount * row V - their means),

a sum of independent numbers, whose mean is zero and whose cumulants are known exactly (`evaluation.row_cumulants`).
Uncertain first states add one more row. The noise of a mean reward without a fourth moment is left out of the sum, and
so is all such noise where mean rewards are cut off at a range.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.evaluation import chains
from bellief.evaluation.problem import Part, Problem
from bellief.evaluation.row_cumulants import RowCumulants
from bellief.evaluation.sampled import Worlds


class Law(NamedTuple):
    """Standard deviation, skewness and excess kurtosis of some numbers with mean zero."""

    sd: Float[np.ndarray, "m"]
    skewness: Float[np.ndarray, "m"]
    excess: Float[np.ndarray, "m"]


class LinearTerms(NamedTuple):
    """The linear terms of `k` policies: what each row's reward counts, and values in the mean MDP; and the inverses of
    the policies' systems there, where these were computed.
    """

    part: Part
    weight: Float[np.ndarray, "k R"]
    values: Float[np.ndarray, "k S"]
    centre: Float[np.ndarray, "k"]
    inverses: list[Any]
    has_noise: np.ndarray
    discount: float
    shared: float

    @classmethod
    def of(cls, problem: Problem, policies: Float[np.ndarray, "k S A"], part: Part, guides: list) -> "LinearTerms":
        """For policies whose rows are those of the part; with the guides of the solver of their chains."""
        discount, shared = min(problem.discount, 1 - chains.BARELY), problem.shared_reward
        values, visits, inverses = [], [], []
        for policy, guide in zip(policies, guides, strict=True):
            if guide is None and problem.log.states <= chains.INVERSE_STATES:
                guide = problem.mean_mdp.guide(policy, problem.discount)
            inverses.append(guide.inverse)
            if guide.inverse is not None:
                values.append(problem.mean_mdp.values_less(policy, guide.inverse, shared))
                visits.append(problem.start @ guide.inverse)
            else:
                values.append(guide.solution - shared / (1 - discount))
                visits.append(problem.mean_mdp.visits(policy, problem.discount, problem.start, None))
        row, state = part.held.row, part.state
        weight = np.stack([one[state] * policy.ravel()[row] for one, policy in zip(visits, policies, strict=True)])
        found = np.stack(values)
        known = part.rewards.shape > 2 if problem.reward_range is None else np.zeros(len(row), bool)
        centre = (np.stack(visits) * found).sum(-1)
        return cls(part, weight, found, centre, inverses, known, discount, shared)

    def draws(self, worlds: Worlds) -> Float[np.ndarray, "n k"]:
        """The terms in a batch of MDPs, without the part of the first states."""
        number = len(worlds.reward)
        reward = worlds.reward
        if not self.has_noise.all():
            reward = np.where(self.has_noise, reward, worlds.paid)
        found = np.empty((number, len(self.values)))
        for place, values in enumerate(self.values):
            after = worlds.expected(np.broadcast_to(values, (number, len(values))))
            found[:, place] = (reward - self.shared + self.discount * after) @ self.weight[place] - self.centre[place]
        return found

    def law(self, problem: Problem, mixtures: Float[np.ndarray, "m k"]) -> Law:
        """The law of each mixture of the policies' terms."""
        second, third, fourth = (np.zeros(len(mixtures)) for _ in range(3))
        cumulants = RowCumulants(self.part, self.values, self.discount)
        noise, excess = (np.where(self.has_noise, field, 0.0) for field in cumulants.noise())
        for place, mixture in enumerate(mixtures):
            weight = mixture[:, None] * self.weight
            paid = weight.sum(0)
            found = cumulants.of(weight)
            second[place] = found[0].sum() + paid**2 @ noise
            third[place] = found[1].sum()
            fourth[place] = found[2].sum() + paid**4 @ excess
        if problem.start_count is not None:
            total = float(problem.start_count.sum())
            share = (problem.start_count / total)[None]
            for place, mixture in enumerate(mixtures):
                numbers = (mixture @ self.values)[None]
                numbers = numbers - (share * numbers).sum()
                more = dirichlet_cumulants(share, numbers, np.array([total]))
                for field, one in zip((second, third, fourth), more, strict=True):
                    field[place] += one[0]
        sd = np.sqrt(second)
        unit = np.where(sd > 0, sd, 1.0)
        return Law(sd, third / unit**3, fourth / unit**4)


def dirichlet_cumulants(
    mean: Float[np.ndarray, "r O"], numbers: Float[np.ndarray, "r O"], weight: Float[np.ndarray, "r"]
) -> tuple[Float[np.ndarray, "r"], Float[np.ndarray, "r"], Float[np.ndarray, "r"]]:
    """Second to fourth cumulant of the mean of centred numbers under Dirichlet rows."""
    mass = mean * numbers
    squares = numbers**2
    first, second, third = (mass * numbers).sum(-1), (mass * squares).sum(-1), (mass * squares * numbers).sum(-1)
    variance = first / (weight + 1)
    more = (weight + 1) * (weight + 2)
    fourth = (6 * third + 3 * weight * first**2) / (more * (weight + 3))
    return variance, 2 * second / more, fourth - 3 * variance**2
