"""The belief about mean rewards, and draws from it: by pair, or by pair and outcome.

By pair, rewards are NormalGamma: given the noise variance v of a pair, its mean is normal with variance v / strength.
By outcome, each outcome of a pair has a mean of its own, normal around the pair's with variance v / outcome_strength
(the same model as `beliefs.outcomes`). Given v and the row's probabilities, the pair's mean reward is then a normal
number again, so one draw a row is enough; `by_outcome` splits it into the outcomes' rewards where those are needed.
Where outcomes have a `level` and a `scale` (`evaluation.reward_levels`), all of this is about (reward - level) / scale;
an outcome of scale zero pays its level.

>>> import numpy as np
>>> from bellief.evaluation import rewards
>>> from bellief.priors import Prior
>>> seen = rewards.Moments(number=np.array([2.0]), mean=np.array([2.0]), squares=np.array([2.0]))
>>> belief = rewards.posterior(Prior(), seen)
>>> belief.location.round(3).tolist(), belief.strength.tolist(), belief.shape.tolist()
([1.333], [3.0], [2.0])
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.evaluation import noise, rows
from bellief.priors import Prior


class Moments(NamedTuple):
    """Number, mean and sum of squared deviations of the rewards of some pairs or cells."""

    number: Float[np.ndarray, "N"]
    mean: Float[np.ndarray, "N"]
    squares: Float[np.ndarray, "N"]


class Outcomes(NamedTuple):
    """Mean reward of a cell = location + share * the pair's mean + a deviation of variance v / strength.

    An outcome that was never seen has location 0, share 1 and the strength `unseen`.
    """

    location: Float[np.ndarray, "C"]
    share: Float[np.ndarray, "C"]
    strength: Float[np.ndarray, "C"]
    unseen: float


class Rewards(NamedTuple):
    """Posterior of the pairs' mean rewards: NormalGamma, and of their outcomes' where rewards depend on these."""

    location: Float[np.ndarray, "R"]
    strength: Float[np.ndarray, "R"]
    shape: Float[np.ndarray, "R"]
    rate: Float[np.ndarray, "R"]
    outcomes: Outcomes | None = None
    level: Float[np.ndarray, "O"] | None = None
    scale: Float[np.ndarray, "O"] | None = None


def posterior(prior: Prior, pairs: Moments, cells: Moments | None = None, first=None) -> Rewards:
    """The belief after some rewards. `cells` and the rows' `first` cells: for priors with rewards by outcome."""
    if prior.outcome_strength is None:
        strength = prior.reward_strength + pairs.number
        gap = pairs.mean - prior.reward_mean
        rate = prior.reward_rate + pairs.squares / 2 + prior.reward_strength * pairs.number * gap**2 / (2 * strength)
        location = prior.reward_mean + gap * pairs.number / strength
        return Rewards(location, strength, prior.reward_shape + pairs.number / 2, rate)
    assert cells is not None
    each = prior.outcome_strength
    strength = each + cells.number
    weight = each * cells.number / strength
    pair_strength = prior.reward_strength + rows.sums(weight, first)
    gap = cells.mean - prior.reward_mean
    pair_gap = rows.sums(weight * gap, first) / pair_strength
    apart = weight * (gap - np.repeat(pair_gap, np.diff(first))) ** 2 + cells.squares
    return Rewards(
        location=prior.reward_mean + pair_gap,
        strength=pair_strength,
        shape=prior.reward_shape + pairs.number / 2,
        rate=prior.reward_rate + (rows.sums(apart, first) + prior.reward_strength * pair_gap**2) / 2,
        outcomes=Outcomes(cells.mean * cells.number / strength, each / strength, strength, each),
    )


def restrict(belief: Rewards, pairs: Int[np.ndarray, "r"] | slice, cells: Int[np.ndarray, "c"] | slice) -> Rewards:
    """The belief about some pairs and their cells."""
    by_outcome = belief.outcomes
    if by_outcome is not None:
        location, share, strength = (field[cells] for field in by_outcome[:3])
        by_outcome = Outcomes(location, share, strength, by_outcome.unseen)
    location, strength, shape, rate = (field[pairs] for field in belief[:4])
    return Rewards(location, strength, shape, rate, by_outcome, belief.level, belief.scale)


def expand(belief: Rewards, place: Int[np.ndarray, "C"], cells: int) -> Rewards:
    """The same belief where each of its cells is at some place among more of them; the others were never seen."""
    seen = belief.outcomes
    if seen is None:
        return belief
    location, share, strength = np.zeros(cells), np.ones(cells), np.full(cells, seen.unseen)
    location[place], share[place], strength[place] = seen.location, seen.share, seen.strength
    return belief._replace(outcomes=Outcomes(location, share, strength, seen.unseen))


class _Projection(NamedTuple):
    """A pair's mean reward under its sampled row: centre, variance in units of v, and its weight on the pair's mean."""

    centre: Float[np.ndarray, "n R"]
    width: Float[np.ndarray, "n R"]
    pair_weight: Float[np.ndarray, "n R"]


def _project(belief: Rewards, held: rows.Rows, drawn: rows.Drawn) -> _Projection:
    outcomes = belief.outcomes
    assert outcomes is not None
    cell, atom = drawn.cell_share, drawn.atom_share
    level: Any = 0.0
    if belief.scale is not None:
        cell, atom = cell * belief.scale[held.outcome], atom * belief.scale[drawn.atom_outcome]
        level = _levels(belief, held, drawn)
    pair_weight = rows.sums(cell * outcomes.share, held.first)
    width = rows.sums(cell**2 / outcomes.strength, held.first)
    pair_weight += drawn.atom_sums(atom, len(held.row))
    width += drawn.atom_sums(atom**2, len(held.row)) / outcomes.unseen
    centre = level + rows.sums(cell * outcomes.location, held.first) + pair_weight * belief.location
    return _Projection(centre, width + pair_weight**2 / belief.strength, pair_weight)


def _levels(belief: Rewards, held: rows.Rows, drawn: rows.Drawn) -> Float[np.ndarray, "n R"]:
    """What each row pays where outcomes pay their levels."""
    assert belief.level is not None
    level = rows.sums(drawn.cell_share * belief.level[held.outcome], held.first)
    return level + drawn.atom_sums(drawn.atom_share * belief.level[drawn.atom_outcome], len(held.row))


def sample(
    belief: Rewards, held: rows.Rows, drawn: rows.Drawn, seed: int, draws: Int[np.ndarray, "n"]
) -> tuple[Float[np.ndarray, "n R"], Float[np.ndarray, "n R"]]:
    """Mean reward of each row in each draw, and what it is expected to be given the row's probabilities."""
    if belief.scale is not None and not belief.scale.any():  # outcomes pay exactly their levels: nothing to draw
        level = _levels(belief, held, drawn)
        return level, level
    variance = _variance(belief, held, seed, draws)
    deviation = noise.normal(noise.keys(seed, noise.REWARD, held.row), draws)
    if belief.outcomes is None:
        reward = belief.location + deviation * np.sqrt(variance / belief.strength)
        return reward, np.broadcast_to(belief.location, reward.shape)
    projected = _project(belief, held, drawn)
    return projected.centre + deviation * np.sqrt(projected.width * variance), projected.centre


def _noise(belief: Rewards, held: rows.Rows, drawn: rows.Drawn) -> Float[np.ndarray, "n R"] | float:
    """What a single reward varies by given its outcome, in units of v."""
    if belief.outcomes is None or belief.scale is None:
        return 1.0
    cell, atom = belief.scale[held.outcome], belief.scale[drawn.atom_outcome]
    found = rows.sums(drawn.cell_share * cell * cell, held.first)
    return found + drawn.atom_sums(drawn.atom_share * atom * atom, len(held.row))


def _variance(belief: Rewards, held: rows.Rows, seed: int, draws) -> Float[np.ndarray, "n R"]:
    return belief.rate / noise.gamma(belief.shape, noise.keys(seed, noise.VARIANCE, held.row), draws)


def by_outcome(
    belief: Rewards, held: rows.Rows, drawn: rows.Drawn, seed: int, draws: Int[np.ndarray, "n"]
) -> tuple[Float[np.ndarray, "n C"], Float[np.ndarray, "E"], Float[np.ndarray, "n R"]]:
    """Mean rewards of the cells and of the atoms, which average to what `sample` draws, and the noise variances.

    Outcomes' rewards are drawn on their own first and then shifted, each by its covariance with the row's mean reward,
    to where that one is (Matheron's rule): their law given the row's mean reward.
    """
    reward, _ = sample(belief, held, drawn, seed, draws)
    variance = _variance(belief, held, seed, draws)
    noise_variance = variance * _noise(belief, held, drawn)
    cell_row = held.row_of_cell()
    outcomes = belief.outcomes
    at = drawn.atom_draw, drawn.atom_row
    if outcomes is None:
        return reward[:, cell_row], reward[at], noise_variance
    sd = np.sqrt(variance)
    pair = belief.location + sd * noise.normal(noise.keys(seed, noise.OUTCOME, held.row), draws) / np.sqrt(
        belief.strength
    )
    cell_key = noise.keys(seed, noise.OUTCOME, held.row[cell_row], held.outcome)
    cell = outcomes.location + outcomes.share * pair[:, cell_row]
    cell += sd[:, cell_row] / np.sqrt(outcomes.strength) * noise.normal(cell_key, draws)
    atom_key = noise.keys(seed, noise.OUTCOME, held.row[drawn.atom_row], drawn.atom_outcome)
    atom = pair[at] + sd[at] / np.sqrt(outcomes.unseen) * noise.normal_at(atom_key, draws[drawn.atom_draw])
    cell_scale, atom_scale = 1.0, 1.0
    if belief.scale is not None and belief.level is not None:
        cell_scale, atom_scale = belief.scale[held.outcome], belief.scale[drawn.atom_outcome]
        cell = belief.level[held.outcome] + cell_scale * cell
        atom = belief.level[drawn.atom_outcome] + atom_scale * atom
    projected = _project(belief, held, drawn)
    found = rows.sums(drawn.cell_share * cell, held.first)
    found += drawn.atom_sums(drawn.atom_share * atom, len(held.row))
    shift = np.divide(reward - found, projected.width, out=np.zeros_like(reward), where=projected.width > 0)
    shared = projected.pair_weight / belief.strength
    cell_own, atom_own = drawn.cell_share * cell_scale / outcomes.strength, drawn.atom_share * atom_scale
    cell += shift[:, cell_row] * cell_scale * (cell_own + outcomes.share * shared[:, cell_row])
    atom += shift[at] * atom_scale * (atom_own / outcomes.unseen + shared[at])
    return cell, atom, noise_variance
