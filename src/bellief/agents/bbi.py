"""Bayesian Backwards Induction (the paper's Algorithm 3) for tabular MDPs.

Two value beliefs: `gaussian` is the paper's; `joint` (ours) keeps each value with the MDP it came from, so that the
spread over value functions survives the induction and an action rule can use it. With a point psi_H and the `mean` rule
the joint belief makes BBI the backup of MMBI (multi-MDP backwards induction).

Between updates the agent follows the first-step rule pi_1 as a stationary policy: at t = 10^6 updates lie 1,414 steps
apart, far beyond the look-ahead.

>>> import jax
>>> from bellief.agents import bbi
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = bbi.Config(horizon=5, mdps=3, samples=4, utility_samples=2)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = bbi.init(key, config, spaces)
>>> state = bbi.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = jax.jit(bbi.plan, static_argnums=(1, 2))(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_sd.shape
('State', 'Info', (5,))
>>> bbi.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> bbi.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from bellief.agents import rules
from bellief.beliefs import tabular
from bellief.compiler import by_platform, with_kernel
from bellief.draws import split
from bellief.errors import UserError
from bellief.induction import method1
from bellief.mdp import bellman, utilities
from bellief.mdp.tabular import TabularMDP
from bellief.types import Spaces, Transition
from bellief.values import gaussian, joint

VALUES = ("gaussian", "joint")
# On a GPU the paper's induction for so many states is one kernel; for nine it would compile for 15 seconds and more.
SMALL = 8
# From so many states on a GPU backs samples up by a kernel: gathering the chosen rows first would take it longer.
LARGE = 128
# A kernel holds all samples of a few states at once.
MOST_SAMPLES = 64


# Acting looks something up and learning counts: runs step faster one after the other than side by side.
LIGHT_STEPS = True


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; the defaults are the paper's. `None` means: decided by the other settings, as documented here.

    Args:
        rule: `mean` (the paper), `thompson` (one draw: with `joint` of one MDP for the whole plan, which is posterior
            sampling; with `gaussian` of one sampled value at every step), `optimistic` or `cautious`.
        values: value belief; `gaussian` with the `mean` rule (the paper), `joint` with any other rule.
        samples: K; 50, or 20 from 100 states on (the paper's choice for LavaLake 10x10 and Maze).
        optimism, quantile: `optimistic` acts on mean + optimism * sd, or on a quantile where one is given.
        foresight: 10 for `optimistic`, infinite otherwise. The sampled MDPs show what the belief may come to think
            after so many more visits of each pair (`tabular.look_ahead`); infinitely many are the posterior itself.
        foresight_growth: the visits grow beyond `foresight` to so many times the average number that a pair will
            receive before the next update, so that no pair is given up for ever; zero lets them stay as they are.
        second_opinion: with `joint`, as many MDPs again are drawn under a prior whose rows weigh one observation, and
            each action gets the better of the two scores (see docs/acting.md). On for `optimistic`, off otherwise;
            also off where the prior itself weighs no more than that.
        draw_every: with `joint`, every so many updates follow one draw from the posterior instead of the rule; zero
            means never.
        tail: `cautious` acts on the mean of the worst `tail` of the distribution.
        final: psi_H; `zero`, or `own`: each sampled MDP's infinite-horizon values under the policy in force.
    """

    values: str | None = None
    rule: str = "mean"
    horizon: int = 100
    discount: float = 0.99
    mdps: int = 10
    samples: int | None = None
    utility_samples: int = 10
    utilities: str = "values"
    likelihood: str = "mixture"
    sigma_fraction: float = 0.01
    final: str = "zero"
    optimism: float = 2.0
    quantile: float | None = None
    tail: float = 0.25
    foresight: float | None = None
    foresight_growth: float = 0.0
    second_opinion: bool | None = None
    draw_every: int = 0
    prior: tabular.Prior = tabular.PAPER_PRIOR

    def __post_init__(self):
        if self.values not in (None, *VALUES):
            raise UserError(f"bbi has no value belief '{self.values}'; choose one of {', '.join(VALUES)}.")
        if self.rule not in rules.RULES:
            raise UserError(f"bbi has no action rule '{self.rule}'; choose one of {', '.join(rules.RULES)}.")
        if self.final not in ("zero", "own"):
            raise UserError(f"bbi knows no final value '{self.final}'; choose zero or own.")
        if not 0 < self.discount <= 1:
            raise UserError(f"discount must lie in (0, 1], not {self.discount}.")
        if self.horizon < 1 or self.mdps < 1:
            raise UserError(f"horizon and mdps must be at least 1, not {self.horizon} and {self.mdps}.")
        if self.draw_every < 0:
            raise UserError(f"draw_every must be zero or more, not {self.draw_every}.")
        if self.quantile is not None and not 0 < self.quantile < 1:
            raise UserError(f"quantile must lie between 0 and 1, not {self.quantile}.")
        if not 0 <= self.optimism < math.inf:
            raise UserError(f"optimism must be a finite number from 0, not {self.optimism}.")
        if self.foresight is not None and not self.foresight > 0:
            raise UserError(f"foresight must be positive, not {self.foresight}.")
        if not 0 <= self.foresight_growth < math.inf:
            raise UserError(f"foresight_growth must be a finite number from 0, not {self.foresight_growth}.")
        if self.second_opinion and self.value_belief() != "joint":
            raise UserError("second_opinion needs the joint value belief: leave it out, or set values=joint.")
        if not 0 < self.tail <= 1:
            raise UserError(f"tail must lie in (0, 1], not {self.tail}.")
        self.method1_settings(1)

    def least_foresight(self) -> float:
        """The foresight in force, before it grows."""
        if self.foresight is not None:
            return self.foresight
        return 10.0 if self.rule == "optimistic" else math.inf

    def value_belief(self) -> str:
        """The value belief in force."""
        if self.values is not None:
            return self.values
        return "gaussian" if self.rule == "mean" else "joint"

    def opinions(self, outcomes: int) -> tuple[tabular.Prior, ...]:
        """The priors under which MDPs are drawn, for pairs with so many possible outcomes."""
        light = dataclasses.replace(self.prior, sparse=True, row_weight=1.0)
        wanted = self.rule == "optimistic" if self.second_opinion is None else self.second_opinion
        heavier = self.prior.concentration(outcomes) > light.concentration(outcomes)
        return (self.prior, light) if wanted and heavier and self.value_belief() == "joint" else (self.prior,)

    def method1_settings(self, states: int) -> method1.Settings:
        """Settings of the induction for a problem with so many states."""
        samples = self.samples if self.samples is not None else (50 if states < 100 else 20)
        return method1.Settings(
            "gaussian", samples, self.utility_samples, self.utilities, self.likelihood, self.sigma_fraction
        )


class State(NamedTuple):
    """What has been learned and the action chosen for each state."""

    belief: tabular.TabularBelief
    actions: Int[Array, "S"]


class Info(NamedTuple):
    """A look into one plan. Counts are over all induction steps; value mean and spread are those of the first step."""

    effective_sample_size: Float[Array, ""]
    resamples: Int[Array, ""]
    doublings: Int[Array, ""]
    value_mean: Float[Array, "S"]
    value_sd: Float[Array, "S"]


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """Nothing learned; actions at random until the first plan."""
    del config
    belief = tabular.init(spaces.states, spaces.actions, spaces.terminates)
    return State(belief, jax.random.randint(key, (spaces.states,), 0, spaces.actions))


def value_span(config: Config, spaces: Spaces, belief: tabular.TabularBelief) -> Float[Array, ""]:
    """Span of possible values, assuming the largest and the smallest reward for ever (the paper's V_span)."""
    steps = config.horizon if config.discount == 1 else 1 / (1 - config.discount)
    return tabular.reward_span(config.prior, belief, spaces) * steps


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Sample MDPs, run the induction from V_H back to V_1, keep the first-step actions."""
    mdp_key, induction_key = split(key)
    draws = _is_draw(config, state.belief)
    opinions = config.opinions(state.belief.counts.shape[-1])
    keys = split(mdp_key, len(opinions) * config.mdps).reshape(len(opinions), config.mdps)
    drawn = [
        jax.vmap(lambda one, prior=prior: _draw(one, config, prior, spaces, state.belief, draws))(own_keys)
        for prior, own_keys in zip(opinions, keys, strict=True)
    ]
    mdps = jax.tree.map(lambda *parts: jnp.concatenate(parts), *drawn)
    final = jnp.zeros(mdps.reward.shape[:2], mdps.reward.dtype)
    if config.final == "own":
        current = policy(config, State(state.belief, state.actions))
        final = jax.vmap(bellman.evaluate_exact, in_axes=(0, None))(mdps, current)
    if config.value_belief() == "gaussian":
        sigma = config.sigma_fraction * value_span(config, spaces, state.belief)
        actions, info = _gaussian_induction(induction_key, config, spaces, mdps, final, sigma)
    else:
        actions, info = _joint_induction(induction_key, config, spaces, mdps, final, draws)
    return State(state.belief, actions), info


def _is_draw(config: Config, belief: tabular.TabularBelief) -> Bool[Array, ""]:
    """Whether this update follows one posterior draw. Update number i of the paper's schedule comes after about
    i^2 / 2 observations, which tells the number without counting.
    """
    if config.draw_every == 0:
        return jnp.array(False)
    observed = jnp.sum(belief.rewards.count).astype(jnp.float32)
    number = jnp.round(jnp.sqrt(2 * observed)).astype(jnp.int32)
    return number % config.draw_every == config.draw_every - 1


def _draw(
    key: Key[Array, ""],
    config: Config,
    prior: tabular.Prior,
    spaces: Spaces,
    belief: tabular.TabularBelief,
    draws: Bool[Array, ""],
) -> TabularMDP:
    mdp = tabular.sample(key, prior, belief, config.discount, support=spaces.support)
    least = config.least_foresight()
    if math.isinf(least):
        return mdp
    # On the paper's schedule the next update after t steps is about sqrt(2 t) steps away.
    observed = belief.rewards.count
    average = jnp.sqrt(2 * jnp.sum(observed).astype(mdp.reward.dtype)) / observed.size
    visits = jnp.maximum(least, config.foresight_growth * average)
    # With this many visits ahead the draw stays what it is.
    visits = jnp.where(draws, 1e30, visits)
    return tabular.look_ahead(prior, belief, mdp, visits)


def _chain(mdps: TabularMDP, actions: Int[Array, "S"]) -> tuple[Float[Array, "J S S"], Float[Array, "J S"]]:
    rows = jnp.arange(actions.shape[0])
    return mdps.transition[:, rows, actions], mdps.reward[:, rows, actions]


def _back_up(mdps: TabularMDP, chain, actions: Int[Array, "S"], values) -> Float[Array, "J K S"]:
    """V_jk = B_j V_k; a GPU takes the chosen rows from all transitions while it multiplies."""
    discount = mdps.discount.reshape(-1)[0]

    def plain():
        return jax.vmap(lambda rows, reward: utilities.expected(rows, reward, discount, values))(*chain)

    def in_one_kernel():
        from bellief.mdp import chosen_kernel

        return chosen_kernel.back_up(mdps.transition, mdps.reward, actions, discount * values)

    return with_kernel(plain, in_one_kernel)


def _mean_q(mdps: TabularMDP, discount: float, values, weight) -> Float[Array, "S A"]:
    """The paper's equation for Q_i, summed over k before it meets the transitions: K times less work.

    Deviation: the print lacks the discount, gives V the index i, and divides by N_mu although the weights sum to one.
    """
    count = values.shape[0]
    mdp_mass = jnp.sum(weight, axis=1) / count
    mixed = weight @ values / count
    reward = jnp.einsum("j,jsa->sa", mdp_mass, mdps.reward)
    # Summed over j afterwards: contracting both at once would rearrange all transitions first.
    return reward + discount * jnp.sum(jnp.einsum("jsat,jt->jsa", mdps.transition, mixed), axis=0)


def _scores(key, config: Config, q_samples: Float[Array, "n S A"], mass: Float[Array, "n"]) -> Float[Array, "S A"]:
    if config.rule == "thompson":
        return rules.one_draw(key, q_samples, mass)
    if config.rule == "optimistic":
        return rules.optimistic(q_samples, mass, config.optimism, config.quantile)
    if config.rule == "cautious":
        return rules.cautious(q_samples, mass, config.tail)
    return rules.mean(q_samples, mass)


def _gaussian_induction(key, config: Config, spaces: Spaces, mdps: TabularMDP, final, sigma):
    """Algorithm 3 with Method 1 and the paper's Gaussian."""
    settings = config.method1_settings(spaces.states)
    large = spaces.states >= LARGE and settings.samples <= MOST_SAMPLES and final.dtype == jnp.float32

    def step(hasty, carry, given):
        progress, _ = carry
        (draw_key, rule_key, _, push_key), luck, lots = given
        values, weight, progress, diagnostics = method1.draw(draw_key, settings, progress, luck, hasty)
        if config.rule == "mean":
            scores = _mean_q(mdps, config.discount, values, weight)
        else:
            q_samples = mdps.reward[:, None] + config.discount * jnp.einsum("jsat,kt->jksa", mdps.transition, values)
            mass = (weight / settings.samples).reshape(-1)
            scores = _scores(rule_key, config, q_samples.reshape(-1, *q_samples.shape[2:]), mass)
        actions = rules.argmax_with(lots, scores)
        chosen = jax.nn.one_hot(actions, spaces.actions, dtype=final.dtype)
        chain = _chain(mdps, actions)
        samples = _back_up(mdps, chain, actions, values) if large else None
        progress = method1.push(push_key, settings, progress, mdps, chosen, chain, values, weight, samples)
        return (progress, actions), diagnostics

    start = method1.start(settings, final, sigma)
    keys = jax.vmap(lambda one: split(one, 4))(split(key, config.horizon))
    luck = method1.luck(keys[:, 0], settings, start)
    lots = rules.lots(keys[:, 2], mdps.reward.shape[1:], final.dtype)

    def plain(hasty=False, keys=keys):
        first = (start, jnp.zeros(spaces.states, jnp.int32))
        (progress, actions), seen = jax.lax.scan(functools.partial(step, hasty), first, (keys, luck, lots))
        diagnostics = method1.Diagnostics(
            jnp.mean(seen.effective_sample_size), jnp.sum(seen.resamples), jnp.sum(seen.doublings)
        )
        return actions, Info(*diagnostics, gaussian.mean(progress.belief), gaussian.sd(progress.belief))

    def hopeful():
        """A GPU waits for the host to hear in every step whether weights have to be cured, which is hardly ever so:
        better do without, and everything again if need be.
        """

        def again(found):
            # What does not change in a loop XLA computes before it, needed or not.
            data, _ = jax.lax.optimization_barrier((jax.random.key_data(keys), found[0]))
            return jnp.array(False), plain(keys=jax.random.wrap_key_data(data))

        actions, info = plain(hasty=True)
        return jax.lax.while_loop(lambda found: found[0], again, (info.resamples > 0, (actions, info)))[1]

    def in_one_kernel():
        from bellief.agents import bbi_kernel

        both = jax.vmap(lambda attempt: method1.luck(keys[:, 0], settings, start, attempt))(jnp.arange(2))
        done = bbi_kernel.induce(settings, config.discount, mdps, start, both, lots)
        return done.actions, Info(*done.diagnostics, done.mean, done.sd)

    known = (config.rule, settings.utilities, settings.likelihood) == ("mean", "values", "mixture")
    triangular = start.belief.factor.shape[0] == spaces.states
    if known and triangular and spaces.states <= SMALL and final.dtype == jnp.float32:
        return with_kernel(plain, in_one_kernel)
    return by_platform(plain, hopeful)


def _joint_induction(key, config: Config, spaces: Spaces, mdps: TabularMDP, final, draws):
    """Algorithm 3 with the joint belief. psi_H is a point for each MDP, and stays one: Q_j is known exactly."""
    rule_key, tie_key = split(key)
    even = jnp.full(config.mdps, 1 / config.mdps, final.dtype)

    def step(carry, lots):
        belief, _ = carry
        q_values = mdps.reward + config.discount * jnp.einsum("jsat,jt->jsa", mdps.transition, belief.mean)
        # Thompson's draw is of one MDP for the whole plan, so its key is the same at every step.
        # One action for all MDPs; the opinions differ only in the score that they give it.
        opinions = q_values.reshape(-1, config.mdps, *q_values.shape[1:])
        scores = jnp.max(jax.vmap(lambda q_samples: _scores(rule_key, config, q_samples, even))(opinions), axis=0)
        scores = jnp.where(draws, q_values[0], scores)
        actions = rules.argmax_with(lots, scores)
        rows = jnp.arange(spaces.states)
        return (joint.point(q_values[:, rows, actions]), actions), None

    first = (joint.point(final), jnp.zeros(spaces.states, jnp.int32))
    lots = rules.lots(split(tie_key, config.horizon), mdps.reward.shape[1:], final.dtype)
    (belief, actions), _ = jax.lax.scan(step, first, lots)
    # What is reported is the agent's own belief, not the second opinion.
    belief = joint.point(belief.mean[: config.mdps])
    info = Info(
        # Every value sample belongs to one MDP.
        effective_sample_size=jnp.ones((), final.dtype),
        resamples=jnp.array(0, jnp.int32),
        doublings=jnp.array(0, jnp.int32),
        value_mean=joint.mean(belief),
        value_sd=joint.sd(belief),
    )
    return actions, info


def act(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Int[Array, ""]:
    """The planned action."""
    del key, config
    return state.actions[observation]


def update(config: Config, state: State, transition: Transition) -> State:
    """Account for one transition; the plan stays as it is until the next update."""
    del config
    return State(tabular.update(state.belief, transition), state.actions)


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """The stationary policy that the agent follows now."""
    del config
    actions = state.belief.counts.shape[1]
    return jax.nn.one_hot(state.actions, actions, dtype=state.belief.rewards.mean.dtype)
