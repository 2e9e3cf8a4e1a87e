"""Bayesian Q-learning (Dearden, Friedman and Russell 1998): a NormalGamma belief about the return of every pair.

No model is learned: an observed reward and the belief about what follows it make one observation of a return. There is
nothing to plan; the agent learns at every step.

Deviation: the paper's prior [0, 1, 1, 1] has alpha = 1, where a return has no variance and the moment update is
infinite; alpha starts at 1.05. The paper says neither which update nor which selection it used; of the four pairs the
default did best on NChain and DoubleLoop, and costs least. The paper updates policies at steps 1, 3, 6, ...; `pace`
says whether this method, which learns from each step as it comes, acts on that at once.

>>> import jax
>>> from bellief.agents import bql
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = bql.Config(selection="sampling")
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = bql.init(key, config, spaces)
>>> state = bql.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = bql.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_sd.shape
('State', 'Info', (5,))
>>> bql.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> bql.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt32

from bellief.agents import pace, rules, stored_key, student
from bellief.beliefs.normal_gamma import Parameters
from bellief.errors import UserError, require, require_choice
from bellief.types import Spaces, Transition

UPDATE_RULES = ("moment", "mixture")
SELECTIONS = ("sampling", "vpi")
# There is nothing to plan, with however many states.
LIGHT_PLANS = 2**31

# Dearden's 1 + epsilon: at alpha = 1 a return has no variance.
LEAST_SHAPE = 1.05
# Rates are limited to this range for all rewards, so that every ratio of them is a float32.
LEAST_RATE, GREATEST_RATE = 1e-20, 1e30


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings.

    Args:
        update_rule: `moment` pretends that a return with the successor's mean and variance was observed; `mixture`
            averages the beliefs after each return that may follow, `return_samples` of them, and fits a NormalGamma to
            the average.
        selection: `sampling` draws the mean return of each action and takes the best draw; `vpi` takes the largest mean
            plus myopic value of perfect information.
        mean, strength, shape, rate: the NormalGamma prior of every return.
        pace: `every-step`, or `scheduled-policy`, which acts on the belief of the last plan.
    """

    update_rule: str = "moment"
    selection: str = "sampling"
    discount: float = 0.99
    return_samples: int = 50
    mean: float = 0.0
    strength: float = 1.0
    shape: float = LEAST_SHAPE
    rate: float = 1.0
    pace: str = pace.field(pace.EVERY_STEP)

    def __post_init__(self):
        pace.check("bql", self.pace, (pace.EVERY_STEP, pace.SCHEDULED_POLICY))
        require_choice(self.update_rule, UPDATE_RULES, "bql has no update_rule")
        require_choice(self.selection, SELECTIONS, "bql has no selection")
        require(0 <= self.discount <= 1, f"discount must lie in [0, 1], not {self.discount}.")
        require(self.return_samples >= 1, f"return_samples must be at least 1, not {self.return_samples}.")
        require(self.strength > 0, f"strength must be positive, not {self.strength}.")
        if not self.shape >= LEAST_SHAPE:
            raise UserError(f"shape must be at least {LEAST_SHAPE}, not {self.shape}: at 1 a return has no variance.")
        if not LEAST_RATE <= self.rate <= GREATEST_RATE:
            raise UserError(f"rate must lie between {LEAST_RATE:g} and {GREATEST_RATE:g}, not {self.rate}.")


class State(NamedTuple):
    """The belief about every pair's return, and raw key data for the mixture update, which draws; `acting` is the
    belief of the last plan, where that is what chooses actions.
    """

    returns: Parameters
    key_data: UInt32[Array, "2"]
    acting: Parameters | None = None


class Info(NamedTuple):
    """Mean return of each state's best action and the standard deviation of the belief about that mean."""

    value_mean: Float[Array, "S"]
    value_sd: Float[Array, "S"]


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """The prior."""
    prior = (config.mean, config.strength, config.shape, config.rate)
    table = (spaces.states, spaces.actions)
    returns = Parameters(*(jnp.full(table, value, float) for value in prior))
    acting = Parameters(*map(jnp.copy, returns)) if config.pace == pace.SCHEDULED_POLICY else None
    return State(returns, jax.random.key_data(key), acting)


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Nothing to plan; renews the belief that is acted on where `pace` puts that off, and returns diagnostics."""
    del key, spaces
    if config.pace == pace.SCHEDULED_POLICY:
        state = state._replace(acting=Parameters(*map(jnp.copy, state.returns)))
    best = jnp.argmax(state.returns.mean, axis=-1)
    mean, strength, shape, rate = (table[jnp.arange(best.shape[0]), best] for table in state.returns)
    return state, Info(mean, jnp.sqrt(rate / (strength * (shape - 1))))


def in_force(state: State) -> Parameters:
    """The belief that chooses actions."""
    return state.returns if state.acting is None else state.acting


def act(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Int[Array, ""]:
    """Q-value sampling or the largest mean plus value of perfect information; ties are broken at random."""
    row = _row(in_force(state), observation)
    if config.selection == "sampling":
        draws = student.sample(key, 2 * row.shape, row.mean.shape)
        return jnp.argmax(row.mean + scale(row) * draws)
    return rules.argmax(key, row.mean + value_of_perfect_information(row))


def update(config: Config, state: State, transition: Transition) -> State:
    """One observed reward, and what is believed of the return from the next state's best action."""
    key, draw_key = jax.random.split(stored_key.restore(state.key_data))
    pair = (transition.state, transition.action)
    belief = Parameters(*(table[pair] for table in state.returns))
    following = _row(state.returns, transition.next_state)
    following = Parameters(*(column[jnp.argmax(following.mean)] for column in following))
    if config.update_rule == "moment":
        goes_on = config.discount * (1 - transition.terminated.astype(belief.mean.dtype))
        mean = transition.reward + goes_on * following.mean
        belief = moment_update(belief, mean, goes_on**2 * return_variance(following))
    else:
        later = sample_returns(draw_key, following, config.return_samples)
        later = jnp.where(transition.terminated, 0, later)
        belief = mixture_update(belief, transition.reward + config.discount * later)
    belief = belief._replace(
        shape=jnp.maximum(belief.shape, LEAST_SHAPE), rate=jnp.clip(belief.rate, LEAST_RATE, GREATEST_RATE)
    )
    returns = Parameters(*(table.at[pair].set(value) for table, value in zip(state.returns, belief, strict=True)))
    return State(returns, jax.random.key_data(key), state.acting)


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """Greedy in the mean return; tied actions share the probability."""
    del config
    return rules.greedy(in_force(state).mean)


def _row(returns: Parameters, state: Int[Array, ""]) -> Parameters:
    return Parameters(*(table[state] for table in returns))


def scale(belief: Parameters) -> Float[Array, "*rows"]:
    """Scale of the Student distribution (2 alpha degrees of freedom) that the mean return has."""
    return jnp.sqrt(belief.rate / (belief.strength * belief.shape))


def value_of_perfect_information(row: Parameters) -> Float[Array, "A"]:
    """Expected gain from knowing an action's mean return exactly (section 3.2).

    The best action gains where it proves worse than the second best, each other one where it proves better than the
    best.
    """
    if row.mean.shape[-1] == 1:
        return jnp.zeros_like(row.mean)
    (first, second), (best, _) = jax.lax.top_k(row.mean, 2)
    spread = scale(row)
    is_best = jnp.arange(row.mean.shape[0]) == best
    # The distribution is symmetric: E[(second - X)+] is the excess of the mirrored variable.
    distance = jnp.where(is_best, row.mean - second, first - row.mean)
    return spread * student.expected_excess(2 * row.shape, distance / spread)


def return_variance(belief: Parameters) -> Float[Array, "*rows"]:
    """Variance of a single return: E[R^2] - E[R]^2 = (lambda + 1) / lambda * beta / (alpha - 1)."""
    return (belief.strength + 1) / belief.strength * belief.rate / (belief.shape - 1)


def sample_returns(key: Key[Array, ""], belief: Parameters, count: int) -> Float[Array, "n"]:
    """Single returns from their predictive distribution, a Student one with 2 alpha degrees of freedom."""
    spread = jnp.sqrt((belief.strength + 1) / belief.strength * belief.rate / belief.shape)
    return belief.mean + spread * student.sample(key, 2 * belief.shape, (count,))


def observe(belief: Parameters, value: Float[Array, "*dims"]) -> Parameters:
    """The conjugate update by one observed return."""
    gap = value - belief.mean
    share = 1 / (belief.strength + 1)
    return Parameters(
        mean=belief.mean + gap * share,
        strength=belief.strength + 1,
        shape=belief.shape + 0.5,
        rate=belief.rate + belief.strength * share * gap**2 / 2,
    )


def moment_update(belief: Parameters, mean: Float[Array, ""], variance: Float[Array, ""]) -> Parameters:
    """Update by one return of which only M1 = E[R] and M2 = E[R^2] are known (section 4.1).

    M2 enters as the variance M2 - M1^2, which is computed without subtracting large squares.
    """
    updated = observe(belief, mean)
    return updated._replace(rate=updated.rate + variance / 2)


def mixture_update(belief: Parameters, returns: Float[Array, "n"]) -> Parameters:
    """The NormalGamma nearest, in relative entropy, to the even mixture of the beliefs after each return (section 4.2).

    It has the mixture's E[tau], E[tau mu], E[tau mu^2] and E[log tau]. All are formed from differences, because float32
    holds none of them to the digits by which they differ. With equal returns it is `observe`.
    """
    each = observe(belief, returns)
    log_rate = jnp.log(each.rate)
    least = jnp.min(log_rate)
    # E[tau | return] up to the factor shape / smallest rate.
    precision = jnp.exp(least - log_rate)
    mass = precision / jnp.sum(precision)
    mean = belief.mean + jnp.sum(mass * (each.mean - belief.mean))
    mean_precision = each.shape * jnp.mean(precision) * jnp.exp(-least)
    spread = mean_precision * jnp.sum(mass * (each.mean - mean) ** 2)
    jensen = jnp.log(jnp.mean(precision)) + jnp.mean(log_rate - least)
    shape = inverse_log_gap(log_gap(each.shape) + jnp.maximum(jensen, 0))
    return Parameters(mean, 1 / (1 / each.strength + spread), shape, shape / mean_precision)


def log_gap(value: Float[Array, "*dims"]) -> Float[Array, "*dims"]:
    """log x - digamma(x), to full relative precision: it is of the size 1 / (2 x), its two parts are not."""
    shifted = jnp.where(value < 8, value + 8, value)
    inverse = 1 / shifted**2
    series = 0.5 / shifted + inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse / 240)))
    steps = sum(1 / (value + number) for number in range(8)) - jnp.log1p(8 / value)
    return series + jnp.where(value < 8, steps, 0)


def inverse_log_gap(gap: Float[Array, "*dims"]) -> Float[Array, "*dims"]:
    """The x with log x - digamma(x) = gap, by Newton's method in 1 / x, where the function is almost a line.

    The start, from the expansion of the function, is right to two per cent.
    """
    inverse = 12 * gap / (3 - gap + jnp.sqrt((gap - 3) ** 2 + 24 * gap))
    for _ in range(3):
        value, slope = jax.jvp(lambda one: log_gap(1 / one), (inverse,), (jnp.ones_like(inverse),))
        inverse = inverse - (value - gap) / slope
    return 1 / inverse
