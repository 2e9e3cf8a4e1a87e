"""How a policy's start value answers to what the data say of each pair, to first order.

The start value moves with the probability of an outcome o of the pair (s, a) by discounted visits of s, times the
policy's probability of a, times what o brings: its reward and the discounted value that follows. A row's posterior is
Dirichlet, so the variance that this gives the value is known in closed form, and m more visits of the pair are
expected to remove m / (n0 + n + m) of it, n0 being the prior's weight and n the visits so far. The same holds for the
mean reward of the pair, with the reward prior's strength.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.evaluation import rows
from bellief.evaluation.problem import Problem

# Up to so many states the table of slopes by state and outcome is computed; beyond, visits and values are taken to be
# independent over draws.
TABLE_STATES = 3_000


class Moments(NamedTuple):
    """Averages over draws of the MDP: visits of states, values, and (up to `TABLE_STATES`) products of the two.

    `following[p, s, o]` is the average of policy p's visits of s times its value of o; ends are worth zero.
    """

    visits: Float[np.ndarray, "P S"]
    values: Float[np.ndarray, "P S"]
    following: Float[np.ndarray, "P S O"] | None


def moments(problem: Problem, values: Float[np.ndarray, "N P S"], visits: Float[np.ndarray, "N P S"]) -> Moments:
    """Averages over `N` draws; one may be the mean MDP."""
    states, policies = problem.log.states, values.shape[1]
    following = None
    if states <= TABLE_STATES:
        following = np.zeros((policies, states, problem.outcomes))
        for policy in range(policies):
            following[policy, :, :states] = visits[:, policy].T @ values[:, policy] / len(values)
    return Moments(visits.mean(0), values.mean(0), following)


def row_covariances(problem: Problem, found: Moments) -> Float[np.ndarray, "P P S A"]:
    """Covariance of the policies' start values due to each pair's row, for policies that surely take the pair."""
    held = problem.rows
    state = held.row // problem.log.actions
    owner = state[held.row_of_cell()]
    chance, rest = rows.mean(held)
    even, total = rest / held.outcomes, rows.sums(held.shape, held.first) + held.rest
    after, sums, products = _continuations(problem, found, owner)
    # Reward and continuation of a seen outcome, up to a constant of the pair, which has no covariance.
    slope = after + _rewards_of_cells(problem, found.visits, owner)
    mean = rows.sums(chance * slope, held.first) + even * (sums[:, state] + rows.sums(slope - after, held.first))
    pairs = slope[:, None] * slope[None]
    everywhere = products[..., state] + rows.sums(pairs - after[:, None] * after[None], held.first)
    second = rows.sums(chance * pairs, held.first) + even * everywhere
    covariance = (second - mean[:, None] * mean[None]) / (total + 1)
    return covariance.reshape(*covariance.shape[:2], problem.log.states, problem.log.actions)


def _continuations(problem: Problem, found: Moments, owner):
    """Discounted visits times what follows: of each cell, and summed (also in products) over all outcomes by state."""
    outcome, states, discount = problem.rows.outcome, problem.log.states, problem.discount
    if found.following is not None:
        following = discount * found.following
        products = np.einsum("pso,qso->pqs", following, following, optimize=True)
        return following[:, owner, outcome], following.sum(-1), products
    inside = outcome < states
    after = np.where(inside, found.visits[:, owner] * found.values[:, np.where(inside, outcome, 0)], 0.0)
    inner = found.values @ found.values.T
    products = np.einsum("ps,qs,pq->pqs", found.visits, found.visits, inner, optimize=True)
    return discount * after, discount * found.visits * found.values.sum(-1, keepdims=True), discount**2 * products


def _rewards_of_cells(problem: Problem, visits: Float[np.ndarray, "P S"], owner) -> Float[np.ndarray, "P C"]:
    """Visits times what a seen outcome pays beyond the pair's mean reward."""
    outcomes, cell_row = problem.rewards.outcomes, problem.rows.row_of_cell()
    if outcomes is None:
        return np.zeros((len(visits), len(cell_row)))
    return visits[:, owner] * (outcomes.location + (outcomes.share - 1) * problem.rewards.location[cell_row])


def reward_variances(problem: Problem, more: Float[np.ndarray, "R"] | float = 0.0) -> Float[np.ndarray, "R"]:
    """Posterior variance of each pair's mean reward after so many more visits; infinite where there is none.

    Given the noise rewards are normal, so what is left of a variance depends on counts only; those after more visits
    are taken at their expectation.
    """
    held, paid = problem.rows, problem.rewards
    noise = np.full(len(paid.rate), np.inf)
    np.divide(paid.rate, paid.shape - 1, out=noise, where=paid.shape > 1)
    more = np.broadcast_to(np.asarray(more, np.float64), noise.shape)
    if paid.outcomes is None:
        return noise / (paid.strength + more)
    chance, rest = rows.mean(held)
    cell_row = held.row_of_cell()
    even = rest / held.outcomes
    mass = chance + even[cell_row]
    unseen = held.outcomes - np.diff(held.first)
    each, prior = paid.outcomes.unseen, problem.prior.reward_strength
    count = paid.outcomes.strength - each + more[cell_row] * mass
    later, elsewhere = each + count, each + more * even
    pair = prior + rows.sums(each * count / later, held.first) + unseen * each * more * even / elsewhere
    weight = rows.sums(mass * each / later, held.first) + unseen * even * each / elsewhere
    width = rows.sums(mass**2 / later, held.first) + unseen * even**2 / elsewhere + weight**2 / pair
    return noise * width
