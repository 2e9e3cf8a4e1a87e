"""Epistemic and aleatoric variance of a return: what more data would remove, and what they cannot."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bellief.evaluation import chains, rewards
from bellief.evaluation.problem import prepare
from bellief.evaluation.question import Question
from bellief.evaluation.question_checks import check_numbers
from bellief.evaluation.rows import sums
from bellief.evaluation.sampled import SampledMDPs, Worlds, by_state
from bellief.logs.labels import Labels
from bellief.priors import Prior


class VarianceSplit(NamedTuple):
    """Variance of the discounted return from each state, and from the start, in its two parts.

    `epistemic`: the variance over MDPs of the return's mean, the value. `aleatoric`: the mean over MDPs of the return's
    variance within the MDP. They add up to the variance of a return under the posterior. NaN where a variance does not
    exist (a reward never observed under a heavy-tailed prior); zero in states in which episodes only end.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0] * 40, [0.0, 2.0] * 20, [0] * 40)
    >>> split = bellief.variance_split(data, discount=0.5, draws=50)
    >>> type(split).__name__, bool((split.total == split.epistemic + split.aleatoric).all())
    ('VarianceSplit', True)
    """

    epistemic: Float[np.ndarray, "S"]
    aleatoric: Float[np.ndarray, "S"]
    start_epistemic: float
    start_aleatoric: float
    state_labels: Labels = None
    ends: Bool[np.ndarray, "S"] | None = None

    @property
    def total(self) -> Float[np.ndarray, "S"]:
        """Variance of the return from each state."""
        return self.epistemic + self.aleatoric

    @property
    def share(self) -> Float[np.ndarray, "S"]:
        """Part of each state's variance that more data could remove."""
        return self.epistemic / np.where(self.total > 0, self.total, 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, null where there is no variance."""

        def number(value):
            return float(value) if np.isfinite(value) else None

        names = self.state_labels or range(len(self.epistemic))
        ends = np.zeros(len(self.epistemic), bool) if self.ends is None else self.ends
        return {
            "start": {"epistemic": number(self.start_epistemic), "aleatoric": number(self.start_aleatoric)},
            "per_state": [
                {"state": state, "epistemic": number(one), "aleatoric": number(other)}
                for state, one, other, ended in zip(names, self.epistemic, self.aleatoric, ends, strict=True)
                if not ended
            ],
        }


def variance_split(
    data: Any,
    policy: Any = "uniform",
    discount: float = 0.99,
    *,
    prior: str | Prior = "logged",
    reward_scale: float | str | None = None,
    start: Any = None,
    terminates: bool | None = None,
    draws: int = 500,
    seed: int = 0,
    support: Any = None,
    reward_range: tuple[float, float] | None = None,
) -> VarianceSplit:
    """How much of a return's variance comes from not knowing the MDP, and how much from chance within it.

    The arguments are those of `evaluate`; the return is that of an infinite horizon. For the start both parts include
    the chance of the first state only as far as it changes the return's variance: the split is of the return averaged
    over first states within an MDP, so differences between first states count as chance.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0] * 40, [0.0, 2.0] * 20, [0] * 40)
    >>> split = bellief.variance_split(data, discount=0.5, draws=50)
    >>> split.start_aleatoric > split.start_epistemic  # forty rewards determine their mean well; their noise remains
    True
    """
    check_numbers(discount, 0.5, seed, draws=draws)
    ready = prepare(
        data, discount, prior=prior, reward_scale=reward_scale, start=start, terminates=terminates, support=support,
        reward_range=reward_range, draws=2 * draws,
    )  # fmt: skip
    question = Question(ready, policy)
    values, variances = _values_and_variances(SampledMDPs(ready, seed, draws), question.policy)
    exists = question.sd_exists(sampled=True)
    values, variances = (np.where(ready.only_ends, 0.0, found) for found in (values, variances))
    first = ready.start
    means = values @ first
    within = variances @ first + values**2 @ first - means**2
    known = bool(exists[first > 0].all())
    return VarianceSplit(
        epistemic=np.where(exists, values.var(0, ddof=1), np.nan),
        aleatoric=np.where(exists, variances.mean(0), np.nan),
        start_epistemic=float(means.var(ddof=1)) if known else float("nan"),
        start_aleatoric=float(within.mean()) if known else float("nan"),
        state_labels=ready.log.state_labels,
        ends=ready.only_ends,
    )


def _values_and_variances(
    mdps: SampledMDPs, policy: Float[np.ndarray, "S A"]
) -> tuple[Float[np.ndarray, "N S"], Float[np.ndarray, "N S"]]:
    """Mean and variance of the discounted return from each state of every sampled MDP (Sobel 1982).

    The second moment M of the return R = r + discount R' satisfies a Bellman equation of its own,
    M(s) = E[r^2 + 2 discount r V(s') + discount^2 M(s')].
    """
    discount, states = mdps.problem.discount, mdps.states
    found = np.empty((2, mdps.count, states))
    used = policy.ravel() > 0
    weight = policy.ravel()[used]
    guides = [mdps.guide(policy, factor) for factor in (discount, discount**2)]
    for draws, worlds in mdps.batches(used):
        batch = worlds.chain(weight, states)
        index = np.arange(draws.start, draws.stop)
        paid = _rewards(worlds, mdps.seed, index, mdps.problem.reward_range)
        if mdps.problem.reward_range is not None:
            batch = batch._replace(reward=by_state(_row_sums(worlds, *paid[:2]) * weight, worlds.part.state, states))
        values = mdps.chain_values(batch, None, guides[0])
        squares = _reward_moments(worlds, paid, discount, values)
        second = batch._replace(reward=by_state(squares * weight, worlds.part.state, states))
        moment = chains.values(second, discount**2, None, guides[1])
        found[0, draws], found[1, draws] = values, np.maximum(moment - values**2, 0)
    return found[0], found[1]


def _rewards(worlds: Worlds, seed: int, draws, limits: tuple[float, float] | None):
    """Mean rewards of cells and of atoms, and the noise variance of each row, as far as the limits allow."""
    cell, atom, noise = rewards.by_outcome(worlds.part.rewards, worlds.part.held, worlds.drawn, seed, draws)
    if limits is None:
        return cell, atom, noise
    low, high = limits
    cell, atom = np.clip(cell, low, high), np.clip(atom, low, high)
    # A reward of mean m between the limits varies by at most (m - low) (high - m).
    most = _row_sums(worlds, (cell - low) * (high - cell), (atom - low) * (high - atom))
    return cell, atom, np.minimum(noise, most)


def _row_sums(worlds: Worlds, cell, atom) -> Float[np.ndarray, "n R"]:
    """Expectation over each row's outcomes of a number that cells and atoms have."""
    held, drawn = worlds.part.held, worlds.drawn
    return sums(drawn.cell_share * cell, held.first) + drawn.atom_sums(drawn.atom_share * atom, len(held.row))


def _reward_moments(worlds: Worlds, paid, discount: float, values) -> Float[np.ndarray, "n R"]:
    """E[r^2 + 2 discount r V(s')] of each row; reward and next state may be dependent."""
    held, drawn = worlds.part.held, worlds.drawn
    cell, atom, noise = paid
    padded = np.pad(values, ((0, 0), (0, held.outcomes - values.shape[1])))
    cell_moment = cell**2 + 2 * discount * cell * padded[:, held.outcome]
    atom_moment = atom**2 + 2 * discount * atom * padded[drawn.atom_draw, drawn.atom_outcome]
    return _row_sums(worlds, cell_moment, atom_moment) + noise
