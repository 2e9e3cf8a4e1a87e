"""Bayesian Backwards Induction over sampled MDPs, with a choice of action rules and value beliefs: agent `bbi-paper`,
whose defaults are the paper's.

Three value beliefs: `gaussian` is the paper's (`bbi_paper` is that algorithm alone) and `histogram` the one that it
offers for few states; `joint` (ours) keeps each value with the MDP it came from, so that the spread over value
functions survives the induction and an action rule can use it. With a point psi_H and the `mean` rule the joint belief
makes BBI the backup of MMBI (multi-MDP backwards induction).

>>> import jax
>>> from bellief.agents import bbi_sampled
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = bbi_sampled.Config(horizon=5, mdps=3, samples=4, utility_samples=2)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = bbi_sampled.init(key, config, spaces)
>>> state = bbi_sampled.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = jax.jit(bbi_sampled.plan, static_argnums=(1, 2))(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_sd.shape
('State', 'Info', (5,))
>>> bbi_sampled.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> bbi_sampled.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from bellief.agents import agenda, bbi_every_step, bbi_paper, rules, tabular_agent
from bellief.agents.bbi_paper import Info
from bellief.agents.tabular_agent import State, sample_mdps, update, value_span, zeros
from bellief.beliefs import tabular
from bellief.errors import UserError, require, require_choice
from bellief.files import OMIT_DEFAULT
from bellief.induction import method1
from bellief.mdp import bellman
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.types import Spaces
from bellief.values import joint

__all__ = ["Config", "Info", "State", "act", "init", "plan", "policy", "update", "value_span"]


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; the defaults are the paper's. `None` means: decided by the other settings, as documented here.

    Args:
        rule: `mean` (the paper), `thompson` (one draw: with `joint` of one MDP for the whole plan, which is posterior
            sampling; with `gaussian` of one sampled value at every step), `optimistic` or `cautious`.
        values: value belief; `gaussian` with the `mean` rule (the paper), `joint` with any other rule.
        samples: K; 50, or 20 from 100 states on (the paper's choice for LavaLake 10x10 and Maze).
        optimism, quantile: `optimistic` acts on mean + optimism * sd, or on a quantile where one is given.
        foresight: 10 for `optimistic`, infinite otherwise. The sampled MDPs show what the belief may become after so
            many more visits of each pair (`tabular.look_ahead`); infinitely many are the posterior itself.
        foresight_growth: the visits grow beyond `foresight` to so many times the average number that a pair will
            receive before the next update, so that no pair is abandoned; zero keeps them constant.
        second_opinion: with `joint`, as many MDPs again are drawn under a prior whose rows weigh one observation, and
            each action gets the better of the two scores (see docs/acting.md). On for `optimistic`, off otherwise;
            also off where the prior itself weighs no more than that.
        draw_every: with `joint`, every so many updates follow one draw from the posterior instead of the rule; zero
            means never.
        tail: `cautious` acts on the mean of the worst `tail` of the distribution.
        final: psi_H; `zero`, or `own`: each sampled MDP's infinite-horizon values under the current policy.
        lifetime: T, where the problem ends after so many steps and T is small. At step t a plan then looks ahead to the
            end, H = T - t, in place of `horizon`, and the agent follows pi_1, pi_2, ... one after the other.
        schedule: when to plan, see `bellief.agents.agenda`.
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
    schedule: str = agenda.triangular_by_default()
    lifetime: int | None = dataclasses.field(default=None, metadata={OMIT_DEFAULT: True})

    def __post_init__(self):
        values = (*method1.BELIEFS, "joint")
        require_choice(self.values, (None, *values), "bbi-paper has no value belief")
        require_choice(self.rule, rules.RULES, "bbi-paper has no action rule")
        require(self.final in ("zero", "own"), f"bbi-paper has no final value '{self.final}'; choose zero or own.")
        require(self.draw_every >= 0, f"draw_every must be zero or more, not {self.draw_every}.")
        if self.quantile is not None and not 0 < self.quantile < 1:
            raise UserError(f"quantile must lie between 0 and 1, not {self.quantile}.")
        require(0 <= self.optimism < math.inf, f"optimism must be a finite number from 0, not {self.optimism}.")
        if self.foresight is not None and not self.foresight > 0:
            raise UserError(f"foresight must be positive, not {self.foresight}.")
        if not 0 <= self.foresight_growth < math.inf:
            raise UserError(f"foresight_growth must be a finite number from 0, not {self.foresight_growth}.")
        if self.second_opinion and self.value_belief() != "joint":
            raise UserError("second_opinion needs the joint value belief: leave it out, or set values=joint.")
        require(0 < self.tail <= 1, f"tail must lie in (0, 1], not {self.tail}.")
        if self.lifetime is not None and (self.lifetime < 1 or self.final != "zero"):
            raise UserError("lifetime must be at least 1, and values after it are zero: leave final at zero.")
        agenda.check_schedule(self.schedule)
        self.paper()

    def paper(self) -> bbi_paper.Config:
        """The settings that Algorithm 3 has, checked."""
        chosen = {field.name: getattr(self, field.name) for field in dataclasses.fields(bbi_paper.Config)}
        return bbi_paper.Config(**chosen | {"horizon": self.lifetime or self.horizon})

    def method1_settings(self, states: int) -> method1.Settings:
        """Settings of Method 1 for a problem with so many states."""
        settings = self.paper().method1_settings(states)
        values = self.value_belief()
        return settings if values == "joint" else dataclasses.replace(settings, values=values)

    def least_foresight(self) -> float:
        """The foresight in use, before it grows."""
        if self.foresight is not None:
            return self.foresight
        return 10.0 if self.rule == "optimistic" else math.inf

    def value_belief(self) -> str:
        """The value belief in use."""
        if self.values is not None:
            return self.values
        return "gaussian" if self.rule == "mean" else "joint"

    def priors(self, outcomes: int) -> tuple[tabular.Prior, ...]:
        """The priors under which MDPs are drawn, for pairs with so many possible outcomes."""
        light = dataclasses.replace(self.prior, sparse=True, row_weight=1.0)
        wanted = self.rule == "optimistic" if self.second_opinion is None else self.second_opinion
        heavier = self.prior.concentration(outcomes) > light.concentration(outcomes)
        return (self.prior, light) if wanted and heavier and self.value_belief() == "joint" else (self.prior,)


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """No data; actions at random until the first plan, the same at every step of a lifetime."""
    state = tabular_agent.init(key, config, spaces)
    if config.lifetime is None:
        return state
    return state._replace(actions=jnp.broadcast_to(state.actions, (config.lifetime, spaces.states)))


def current_actions(config: Config, state: State) -> Int[Array, "S"]:
    """The action of each state at this step."""
    if config.lifetime is None:
        return state.actions
    return state.actions[bbi_every_step.row_for(config.lifetime, jnp.sum(state.belief.counts))]


def act(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Int[Array, ""]:
    """The planned action."""
    del key
    return current_actions(config, state)[observation]


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """The policy that the agent follows now."""
    now = state._replace(actions=current_actions(config, state))
    return tabular_agent.policy(config, now)


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Sample MDPs, run the induction from V_H back to V_1, keep the first step's actions, or all of a lifetime's."""
    mdp_key, induction_key = jax.random.split(key)
    follow_draw = _is_draw(config, state.belief)
    priors = config.priors(state.belief.counts.shape[-1])
    keys = jax.random.split(mdp_key, len(priors) * config.mdps).reshape(len(priors), config.mdps)
    drawn = [
        _draw(own_keys, config, prior, spaces, state.belief, follow_draw)
        for prior, own_keys in zip(priors, keys, strict=True)
    ]
    mdps = jax.tree.map(lambda *parts: jnp.concatenate(parts), *drawn)
    final = zeros(mdps)
    if config.final == "own":
        final = jax.vmap(bellman.evaluate_exact, in_axes=(0, None))(mdps, policy(config, state))
    if config.value_belief() == "joint":
        actions, info = induce_joint(induction_key, config, mdps, final, follow_draw)
        return State(state.belief, actions), info
    sigma = config.sigma_fraction * value_span(config.paper(), spaces, state.belief)
    steps = config.lifetime or config.horizon
    given = (config.method1_settings(spaces.states), steps, mdps, final, sigma, gaussian_score(config))
    if config.lifetime is None:
        actions, info = bbi_paper.induce(induction_key, *given)
    else:
        actions, _, info = bbi_every_step.induce(induction_key, *given)
    return State(state.belief, actions), info


def _is_draw(config: Config, belief: tabular.TabularBelief) -> Bool[Array, ""]:
    """Whether this update follows one posterior draw. Update number i of the paper's schedule comes after about
    i^2 / 2 observations, from which the number follows without counting.
    """
    if config.draw_every == 0:
        return jnp.array(False)
    observed = jnp.sum(belief.rewards.count).astype(jnp.float32)
    number = jnp.round(jnp.sqrt(2 * observed)).astype(jnp.int32)
    return number % config.draw_every == config.draw_every - 1


def _draw(
    keys: Key[Array, "J"],
    config: Config,
    prior: tabular.Prior,
    spaces: Spaces,
    belief: tabular.TabularBelief,
    follow_draw: Bool[Array, ""],
) -> TabularMDP:
    """MDPs that show what the belief may become within the foresight."""
    mdps, least = sample_mdps(keys, prior, belief, spaces, config.discount), config.least_foresight()
    if math.isinf(least):
        return mdps
    # On the paper's schedule the next update after t steps is about sqrt(2 t) steps away.
    observed = belief.rewards.count
    average = jnp.sqrt(2 * jnp.sum(observed).astype(mdps.reward.dtype)) / observed.size
    visits = jnp.maximum(least, config.foresight_growth * average)
    # With this many visits ahead the draw is unchanged.
    visits = jnp.where(follow_draw, 1e30, visits)
    return jax.vmap(lambda mdp: tabular.look_ahead(prior, belief, mdp, visits))(mdps)


def score(
    key: Key[Array, ""], config: Config, q_samples: Float[Array, "n S A"], mass: Float[Array, "n"]
) -> Float[Array, "S A"]:
    """Scores of every state and action under the configured rule."""
    scores = rules.RULES[config.rule](key, q_samples, mass, config)
    if jnp.shape(scores) != q_samples.shape[1:]:
        raise UserError(
            f"The action rule '{config.rule}' returns scores of shape {jnp.shape(scores)}; "
            f"wanted is one for each state and action, {q_samples.shape[1:]}."
        )
    return scores


def gaussian_score(config: Config) -> bbi_paper.Score:
    """The configured rule on the distribution of Q_jk = r_j + discount P_j V_k with mass w_jk / K."""
    if config.rule == "mean":
        return bbi_paper.mean_q

    def by_rule(key, mdps, values, weight):
        q_samples = mdps.reward[:, None] + config.discount * jnp.einsum("jsat,kt->jksa", mdps.transition, values)
        mass = (weight / len(values)).reshape(-1)
        return score(key, config, q_samples.reshape(-1, *q_samples.shape[2:]), mass)

    return by_rule


def induce_joint(
    key: Key[Array, ""], config: Config, mdps: TabularMDP, final: Float[Array, "J S"], follow_draw: Bool[Array, ""]
) -> tuple[Int[Array, "*T S"], Info]:
    """Algorithm 3 with the joint belief. psi_H is a point for each MDP, and stays one: Q_j is known exactly."""
    horizon = config.lifetime or config.horizon
    rule_key, tie_key = jax.random.split(key)
    even = jnp.full(config.mdps, 1 / config.mdps, final.dtype)
    states = jnp.arange(final.shape[1])

    def step(carry, ties):
        belief, _ = carry
        q_values = mdps.reward + config.discount * jnp.einsum("jsat,jt->jsa", mdps.transition, belief.mean)
        # Thompson's draw is of one MDP for the whole plan, so its key is the same at every step.
        # One action for all MDPs; the priors differ only in the score that they give it.
        by_prior = q_values.reshape(-1, config.mdps, *q_values.shape[1:])
        scores = jnp.max(jax.vmap(lambda q_samples: score(rule_key, config, q_samples, even))(by_prior), axis=0)
        scores = jnp.where(follow_draw, q_values[0], scores)
        actions = rules.argmax_with(ties, scores)
        return (joint.point(q_values[:, states, actions]), actions), actions if config.lifetime else None

    first = (joint.point(final), jnp.zeros(len(states), jnp.int32))
    ties = rules.tie_breakers(jax.random.split(tie_key, horizon), mdps.reward.shape[1:], final.dtype)
    (belief, actions), every = jax.lax.scan(step, first, ties)
    # What is reported is the belief under the agent's own prior, not the second opinion.
    belief = joint.point(belief.mean[: config.mdps])
    one, none = jnp.ones((), final.dtype), jnp.array(0, jnp.int32)  # every value sample belongs to one MDP
    info = Info(one, none, none, joint.mean(belief), joint.sd(belief))
    return (actions if config.lifetime is None else every), info
