"""The tabular belief for very many states: observed outcomes one by one, all others in one cell "elsewhere".

Rows are Dirichlet as in `beliefs.tabular`, and a Dirichlet row with its unseen outcomes lumped together is exactly a
Dirichlet row again, so the probability of every observed outcome, and of "elsewhere", has the same law as in the
dense belief. Deviation: within "elsewhere" the probability is spread evenly over the unseen outcomes, which is its
mean, where the dense belief draws it; what a row that was never tried leads to is therefore one even mixture here.
Where the possible outcomes are given (`support`) there is no "elsewhere" and no deviation.

>>> import numpy as np
>>> from bellief.beliefs import sparse
>>> from bellief.beliefs.tabular import Prior
>>> belief = sparse.SparseBelief(  # from the first row, state 1 was seen twice and paid 1 and 3
...     first=np.array([0, 1, 1]), outcome=np.array([1]), counts=np.array([2]), unseen=np.array([2, 3]),
...     rewards=np.array([[2, 0], [2.0, 0.0], [2.0, 0.0]]), states=3
... )
>>> [part.tolist() for part in sparse.concentrations(Prior(dirichlet=0.5), belief)]
[[2.5], [1.0, 1.5]]
>>> sparse.mean(Prior(), belief).reward.round(3).tolist()
[1.333, 0.0]
>>> sparse.sample(np.random.default_rng(0), Prior(), belief).excess.shape
(2, 3)
>>> sparse.restrict(belief, np.array([1])).unseen.tolist()
[3]
>>> sparse.reward_parameters(Prior(), *belief.rewards)[1].tolist()
[3.0, 1.0]
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from bellief.beliefs.tabular import Prior
from bellief.mdp.sparse import SparseMDP


class SparseBelief(NamedTuple):
    """Sufficient statistics by row; the rows are state-action pairs, all of them or those that are needed.

    Row r has the cells `first[r]` to `first[r + 1]`, each an outcome (a next state, or `states` for the end) and its
    count, and `unseen[r]` further possible outcomes. `rewards` are number, mean and squared deviations.
    """

    first: Int[np.ndarray, "R1"]
    outcome: Int[np.ndarray, "C"]
    counts: Int[np.ndarray, "C"]
    unseen: Int[np.ndarray, "R"]
    rewards: Float[np.ndarray, "3 R"]
    states: int


def restrict(belief: SparseBelief, rows: Int[np.ndarray, "r"]) -> SparseBelief:
    """The belief about some rows only."""
    lengths = np.diff(belief.first)[rows]
    first = np.append(0, np.cumsum(lengths))
    cells = np.repeat(belief.first[rows] - first[:-1], lengths) + np.arange(first[-1])
    return belief._replace(
        first=first,
        outcome=belief.outcome[cells],
        counts=belief.counts[cells],
        unseen=belief.unseen[rows],
        rewards=belief.rewards[:, rows],
    )


def concentrations(prior: Prior, belief: SparseBelief) -> tuple[Float[np.ndarray, "C"], Float[np.ndarray, "R"]]:
    """Dirichlet parameters of the cells and of each row's "elsewhere"."""
    lengths = np.diff(belief.first)
    outcomes = np.maximum(lengths + belief.unseen, 1)
    each = prior.row_weight / outcomes if prior.sparse else np.full(len(outcomes), prior.dirichlet)
    return np.repeat(each, lengths) + belief.counts, each * belief.unseen


def reward_parameters(prior: Prior, count, mean, squares) -> tuple[np.ndarray, ...]:
    """NormalGamma posterior from number, mean and squared deviations of rewards: mean, strength, shape, rate."""
    strength = prior.reward_strength + count
    gap = mean - prior.reward_mean
    rate = prior.reward_rate + squares / 2 + prior.reward_strength * count * gap**2 / (2 * strength)
    return prior.reward_mean + gap * count / strength, strength, prior.reward_shape + count / 2, rate


def sample(generator: np.random.Generator, prior: Prior, belief: SparseBelief) -> SparseMDP:
    """One MDP from the posterior (its rewards are draws of the *mean* reward, as in the dense belief)."""
    cells, elsewhere = concentrations(prior, belief)
    mean, strength, shape, rate = reward_parameters(prior, *belief.rewards)
    precision = generator.standard_gamma(shape) / rate
    reward = mean + generator.standard_normal(len(mean)) / np.sqrt(strength * precision)
    return _as_mdp(belief, generator.standard_gamma(cells), generator.standard_gamma(elsewhere), reward)


def mean(prior: Prior, belief: SparseBelief) -> SparseMDP:
    """The mean MDP; the same as the dense belief's where rewards go by pair."""
    return _as_mdp(belief, *concentrations(prior, belief), reward_parameters(prior, *belief.rewards)[0])


def _as_mdp(belief: SparseBelief, cells: np.ndarray, elsewhere: np.ndarray, reward: np.ndarray) -> SparseMDP:
    """Normalise the weights of cells and "elsewhere" and write them as an MDP."""
    rows = np.repeat(np.arange(len(belief.unseen)), np.diff(belief.first))
    total = np.bincount(rows, cells, len(belief.unseen)) + elsewhere
    # With a tiny concentration all weights of an untried row may underflow; then its cells share evenly.
    lost = total == 0
    cells = np.where(lost[rows], 1.0, cells)
    total = np.where(lost, np.maximum(np.diff(belief.first), 1), total)
    spread = np.divide(elsewhere, belief.unseen * total, out=np.zeros_like(total), where=belief.unseen > 0)
    going_on = belief.outcome < belief.states
    first = np.append(0, np.cumsum(going_on))[belief.first]
    excess: Any = sparse.csr_matrix(
        ((cells / total[rows] - spread[rows])[going_on], belief.outcome[going_on], first),
        (len(total), belief.states),
    )
    return SparseMDP(excess, spread, reward)
