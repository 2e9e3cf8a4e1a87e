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
    total, spread = rows.sums(held.shape, held.first) + held.rest, np.repeat(rest, np.diff(held.first))
    spread = spread * held.base_mass()
    after, around, products = _continuations(problem, found, owner)
    # Reward and continuation of a seen outcome, up to a constant of the pair, which has no covariance.
    slope = after + _rewards_of_cells(problem, found.visits, owner)
    mean = rows.sums(chance * slope + spread * (slope - after), held.first) + rest * around[:, state]
    pairs = slope[:, None] * slope[None]
    second = rows.sums(chance * pairs + spread * (pairs - after[:, None] * after[None]), held.first)
    second += rest * products[..., state]
    covariance = (second - mean[:, None] * mean[None]) / (total + 1)
    return covariance.reshape(*covariance.shape[:2], problem.log.states, problem.log.actions)


def _continuations(problem: Problem, found: Moments, owner):
    """Discounted visits times what follows an unseen outcome, its level included: for each cell's outcome, and the
    mean (also of products) under the base measure of each state.
    """
    outcome, states, discount, base = problem.rows.outcome, problem.log.states, problem.discount, problem.rows.base
    level = np.zeros(problem.outcomes) if problem.rewards.level is None else problem.rewards.level
    if found.following is not None:
        following = discount * found.following + found.visits[..., None] * level
        products = following[:, None] * following[None]
        if base is None:
            return following[:, owner, outcome], following.mean(-1), products.mean(-1)
        return following[:, owner, outcome], base.mean_by_state(following), base.mean_by_state(products)
    paid = discount * np.pad(found.values, ((0, 0), (0, problem.outcomes - states))) + level
    products = paid[:, None] * paid[None]
    if base is None:
        around, products = paid.mean(-1, keepdims=True), products.mean(-1, keepdims=True)
    else:
        around, products = base.mean_over(paid), base.mean_over(products)
    both = found.visits[:, None] * found.visits[None]
    return found.visits[:, owner] * paid[:, outcome], found.visits * around, both * products


def _rewards_of_cells(problem: Problem, visits: Float[np.ndarray, "P S"], owner) -> Float[np.ndarray, "P C"]:
    """Visits times what a seen outcome pays beyond what it would pay unseen."""
    paid, cell_row = problem.rewards, problem.rows.row_of_cell()
    if paid.outcomes is None:
        return np.zeros((len(visits), len(cell_row)))
    scale = 1.0 if paid.scale is None else paid.scale[problem.rows.outcome]
    beyond = paid.outcomes.location + (paid.outcomes.share - 1) * paid.location[cell_row]
    return visits[:, owner] * scale * beyond


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
    cell_row, states = held.row_of_cell(), problem.log.states
    spread = rest[cell_row] * held.base_mass()
    mass, scale, other_scale = chance + spread, np.ones(len(cell_row)), np.ones(len(held.row))
    unseen = held.outcomes - np.diff(held.first)
    if held.base is not None:
        # What the state showed under other actions, taken to be alike.
        unseen = np.maximum(np.bincount(held.base.place_state, minlength=states).repeat(problem.log.actions), 1)
    if held.base is not None and paid.scale is not None:
        scale, other_scale = paid.scale[held.outcome], held.base.mean_over(paid.scale).repeat(problem.log.actions)
    even = np.maximum(rest - rows.sums(spread, held.first), 0) / np.maximum(unseen, 1)
    each, prior = paid.outcomes.unseen, problem.prior.reward_strength
    count = paid.outcomes.strength - each + more[cell_row] * mass
    later, elsewhere = each + count, each + more * even
    pair = prior + rows.sums(each * count / later, held.first) + unseen * each * more * even / elsewhere
    paying, other = mass * scale, even * other_scale
    weight = rows.sums(paying * each / later, held.first) + unseen * other * each / elsewhere
    width = rows.sums(paying**2 / later, held.first) + unseen * other**2 / elsewhere + weight**2 / pair
    return noise * width
