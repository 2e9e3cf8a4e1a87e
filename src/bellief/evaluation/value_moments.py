"""Closed forms for the mean, the variance and the skewness of values: an expansion around the mean MDP.

With the chain P and rewards R of a policy at their posterior means, G = (I - discount P)^-1 and V = G R. Let dP and dR
be the deviations of a sampled MDP and u = dR + discount dP V. Its values are

    V + G u + discount G dP G u + discount^2 G dP G dP G u + ...

Rows of different states are independent, so that expectations of products are sums over pairs of factors that belong to
one row. `second_order` keeps everything that falls like 1 / visits^2 in the mean, the variance and the third cumulant
(docs/accuracy.md derives the terms, after Mannor et al. 2007). The law of a row enters through its first three moments
(`evaluation.row_tables`).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.errors import UserError
from bellief.evaluation import chains, noise, skewed_law
from bellief.evaluation.problem import Part, Problem
from bellief.evaluation.row_tables import row_tables
from bellief.evaluation.start_law import ClosedForm

# The expansion is said to be rough where its next terms, by their estimate, move the mean by more than this part of a
# standard deviation, or the standard deviation by more than this part.
ROUGH_MEAN, ROUGH_SD = 0.02, 0.05


# What the random numbers of matched draws are for, after the purposes of `evaluation.noise`.
MATCHED = 100


class ValueMoments(NamedTuple):
    """Mean, variance and third cumulant of `k` numbers, each the value averaged over some states.

    `plain_mean` and `plain_variance` are what the expansion begins with: the mean MDP and the linear term, which is
    `visits` times independent numbers of the standard deviation `state_sd`.
    """

    mean: Float[np.ndarray, "k"]
    variance: Float[np.ndarray, "k"]
    third: Float[np.ndarray, "k"]
    plain_mean: Float[np.ndarray, "k"]
    plain_variance: Float[np.ndarray, "k"]
    visits: Float[np.ndarray, "k S"]
    state_sd: Float[np.ndarray, "S"]

    @property
    def sd(self) -> Float[np.ndarray, "k"]:
        """Standard deviations."""
        return np.sqrt(self.variance)

    @property
    def skewness(self) -> Float[np.ndarray, "k"]:
        """Third cumulants in units of the standard deviation."""
        return _ratio(self.third, self.sd**3)

    def error(self) -> tuple[Float[np.ndarray, "k"], Float[np.ndarray, "k"]]:
        """Estimates of what lies beyond: in the mean, in standard deviations, and in the sd, as a part of it.

        Terms of the expansion fall by about the factor by which the first correction changes the variance.
        """
        change = np.abs(_ratio(self.variance - self.plain_variance, self.plain_variance))
        return np.abs(_ratio(self.mean - self.plain_mean, self.sd)) * change, change**2

    def closed_form(self) -> ClosedForm:
        """The last of the numbers: the start value."""
        mean_error, sd_error = self.error()
        return ClosedForm(*(float(field[-1]) for field in (self.mean, self.sd, self.skewness, mean_error, sd_error)))


def matched_draws(moments: ValueMoments, seed: int, count: int) -> Float[np.ndarray, "N k"]:
    """Draws of a matched family: shifted gamma margins, and the dependence of the linear term.

    In every column the draws are the middles of equally likely parts of its law, in random order, so that their means
    and standard deviations are those of the closed form.
    """
    states = moments.visits.shape[1]
    normal = noise.normal(noise.keys(seed, MATCHED, np.arange(states)), np.arange(count))
    order = np.argsort(np.argsort((normal * moments.state_sd) @ moments.visits.T, axis=0), axis=0)
    points = skewed_law.points(moments.skewness, count)
    factor = np.sqrt((count - 1) / count)  # summaries divide by one less than there are draws
    return moments.mean + factor * moments.sd * np.take_along_axis(points, order, 0)


def roughness(moments: ValueMoments) -> str | None:
    """A warning where the error estimate of the expansion is large."""
    mean, sd = (float(field[-1]) for field in moments.error())
    if mean <= ROUGH_MEAN and sd <= ROUGH_SD:
        return None
    return (
        f"The closed form is rough here: by its own estimate the mean is off by about {mean:.2g} standard deviations "
        f"and the standard deviation by {sd:.0%}; choose joint."
    )


class _Aggregate:
    """Sums over the rows of each state, weighed by the policy's chances; see `second_order` for their use."""

    def __init__(self, states: int):
        self.variance, self.third, self.trace = np.zeros(states), np.zeros(states), np.zeros(states)
        self.with_values, self.with_square = np.zeros((states, states)), np.zeros((states, states))
        self.with_own = np.zeros((states, states))


def second_order(problem: Problem, policy: Float[np.ndarray, "S A"]) -> ValueMoments:
    """Moments of every state's value, and last of the start value; for an infinite horizon."""
    states = problem.log.states
    if states > chains.INVERSE_STATES:
        raise UserError(
            f"moments inverts a table of all states, of which there are {states} and may be {chains.INVERSE_STATES}: "
            "choose joint."
        )
    inverse = problem.mean_mdp.guide(policy, problem.discount).inverse
    assert inverse is not None
    found = _moments(problem, policy, inverse, np.vstack([inverse, problem.start @ inverse]))
    if found is None:
        raise UserError(
            "The posterior has no variance (the reward of a pair that was never tried is heavy-tailed), and moments "
            "needs one: choose joint."
        )
    return found


def start_moments(
    problem: Problem, policy: Float[np.ndarray, "S A"], inverse: Float[np.ndarray, "S S"]
) -> ValueMoments | None:
    """The same of the start value alone, given the inverse of the mean chain's system; None without a variance."""
    return _moments(problem, policy, inverse, (problem.start @ inverse)[None])


def _moments(problem: Problem, policy, inverse, visits: Float[np.ndarray, "k S"]) -> ValueMoments | None:
    """Moments of numbers that count each state's own terms as often as the state is visited: the start value is the
    last of them, those before are the values of all states or none.
    """
    states, discount = problem.log.states, min(problem.discount, 1 - chains.BARELY)
    shared = problem.shared_reward
    # Without what all rewards share, which may be so large that it would round away how values differ.
    values = problem.mean_mdp.values_less(policy, inverse, shared)
    part = problem.part(policy.ravel() > 0)
    found = _Aggregate(states)
    _add_linear(part, policy, values, discount, found)
    if not np.isfinite(found.variance).all():
        return None
    state_variance = inverse**2 @ found.variance
    _add_quadratic(part, policy, inverse, state_variance, discount, found)
    cross = found.with_values @ inverse
    shift = inverse @ np.diag(cross)
    # What each state adds to the variance of a number that is the sum over states of `visits` times the state's terms.
    own = found.variance + 2 * found.with_values @ shift + 2 * (found.with_square * inverse.T).sum(-1) + found.trace
    spread = inverse @ (visits * found.variance).T
    plain = visits**2 @ found.variance
    correction = visits**2 @ (own - found.variance)
    correction += 3 * ((visits @ (cross * cross.T)) * visits).sum(-1)
    correction += 2 * ((visits @ found.with_own) * spread.T).sum(-1)
    third = visits**3 @ found.third + 6 * ((visits**2 @ found.with_values) * spread.T).sum(-1)
    alone = len(visits) == 1
    base, moved = (np.append(one[:0] if alone else one, problem.start @ one) for one in (values, shift))
    if problem.start_count is not None:
        first, more, skew = _start_terms(problem, values, shift, spread[:, -1], state_variance, plain[-1])
        plain[-1] += first
        correction[-1] += more
        third[-1] += skew
    # A negative correction is taken as a divisor: the same to this order, and never below zero.
    share = _ratio(correction, plain)
    variance = plain * np.where(share >= 0, 1 + share, 1 / (1 - np.minimum(share, 0)))
    base = base + shared / (1 - discount)
    return ValueMoments(base + moved, variance, third, base, plain, visits, np.sqrt(found.variance))


def _add_linear(part: Part, policy, values, discount: float, found: _Aggregate) -> None:
    """What needs the values of the mean MDP: own variances, third cumulants, and covariances with other outcomes."""
    states = len(values)
    for table in row_tables(part):
        chance = policy.ravel()[part.held.row[table.rows]]
        state, weight = part.state[table.rows], table.weight
        after = table.pay + discount * np.pad(values, (0, table.mean.shape[1] - states))
        apart = table.centred(after)
        mass = table.mean * apart
        square = (mass * apart).sum(-1)
        skew = 2 / ((weight + 1) * (weight + 2))
        np.add.at(found.variance, state, chance**2 * (square / (weight + 1) + table.noise))
        np.add.at(found.third, state, chance**3 * skew * (mass * apart**2).sum(-1))
        _add_rows(found.with_values, state, (discount * chance**2 / (weight + 1))[:, None] * mass[:, :states])
        mass = table.mean * (apart**2 - square[:, None])
        _add_rows(found.with_square, state, (discount * chance**3 * skew)[:, None] * mass[:, :states])


def _add_quadratic(part: Part, policy, inverse, spread, discount: float, found: _Aggregate) -> None:
    """What needs expected visits after each row, all states at once; `spread` are the variances of the states' values,
    to first order.
    """
    states = len(inverse)
    alone = len(part.held.row) == states  # one action a state: the rows are those of the chain
    for table in row_tables(part):
        chance, state = policy.ravel()[part.held.row[table.rows]], part.state[table.rows]
        mean = table.mean[:, :states]
        if alone:
            after = inverse[state] / discount
            after[np.arange(len(state)), state] -= 1 / discount
        else:
            after = mean @ inverse
        factor = discount**2 * chance**2 / (table.weight + 1)
        np.add.at(found.trace, state, factor * (mean @ spread - after**2 @ found.variance))
        own = inverse.T[state] - after[np.arange(len(state)), state][:, None]
        _add_rows(found.with_own, state, factor[:, None] * mean * own)


def _add_rows(table: np.ndarray, state: np.ndarray, added: np.ndarray) -> None:
    """Add rows to those of their states, which ascend."""
    first = np.flatnonzero(np.diff(state, prepend=-1))
    table[state[first]] += np.add.reduceat(added, first, axis=0)


def _start_terms(problem: Problem, values, shift, spread, state_variance, from_start: float):
    """What uncertain first states add: to the linear variance, to its correction and to the third cumulant."""
    assert problem.start_count is not None
    weight = float(problem.start_count.sum())
    share = problem.start_count / weight
    apart = values - share @ values
    first = float(share @ apart**2)
    more = 2 * float(share @ (apart * shift)) + float(share @ state_variance) - from_start
    skew = 2 * float(share @ apart**3) / (weight + 2) + 6 * float(share @ (apart * spread))
    return first / (weight + 1), more / (weight + 1), skew / (weight + 1)


def _ratio(over: np.ndarray, under: np.ndarray) -> np.ndarray:
    return np.divide(over, under, out=np.zeros_like(over), where=under > 0)
