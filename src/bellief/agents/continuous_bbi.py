"""Bayesian Backwards Induction (the paper's Algorithm 3) for continuous states: fitted Q-iteration over sampled models.

`mode="paper"` is the print: s' itself regressed on the features, one Gaussian over the weights of Q, Method 1's
weights. `mode="own"`, the default, differs in what trials showed to matter: differences s' - s are regressed, the value
has finer features than the dynamics, values and rewards are clipped to what the rewards seen so far allow, the reward
of an end has a separate belief, and each model keeps its own Q (`values="joint"`).

The planner knows the environment's termination function where there is one; `ending="learned"` forgets it.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import memory as memories
from bellief.agents import rules
from bellief.agents.continuous_settings import Config, model_form, value_map
from bellief.beliefs import ending, linear
from bellief.errors import UserError
from bellief.induction import continuous, continuous_rollouts
from bellief.types import BoxSpaces, Transition
from bellief.values import linear_values

RESERVOIR, ENDS = 1000, 64


class State(NamedTuple):
    """What has been learned, and the plan: weights of Q under each model, and the box that features refer to."""

    belief: linear.LinearBelief
    memory: memories.Memory
    ends: ending.Ends
    weights: Float[Array, "J A F"]
    bounds: Float[Array, "2 D"]


class Info(NamedTuple):
    """A look into one plan: models that share a value sample, mean and spread of values where they were fitted."""

    effective_sample_size: Float[Array, ""]
    value_mean: Float[Array, "N"]
    value_sd: Float[Array, "N"]


def init(key: Key[Array, ""], config: Config, spaces: BoxSpaces) -> State:
    """Nothing learned; weights at random, so that actions are arbitrary until the first plan."""
    memory_key, weight_key = jax.random.split(key)
    prior = config.prior or (linear.PAPER_PRIOR if config.mode == "paper" else linear.OWN_PRIOR)
    rows = config.mdps if config.value_belief() == "joint" else 1
    shape = (rows, spaces.actions, value_map(config, spaces.dimension).size(spaces.dimension))
    memory = memories.init(memory_key, RESERVOIR, spaces.dimension)
    return State(
        linear.init(prior, model_form(config, spaces.dimension), spaces),
        memory,
        ending.init(ENDS, spaces.dimension),
        1e-3 * jax.random.normal(weight_key, shape, float),
        memories.bounds(memory, spaces),
    )


def end_probability(
    config: Config, spaces: BoxSpaces, state: State, bounds: Float[Array, "2 D"]
) -> Callable[[Float[Array, "D"]], Float[Array, ""]]:
    """The chance that a state ends the episode: known, learned, or none."""
    if config.ending == "known" and spaces.termination is None:
        raise UserError("ending=known needs an environment that tells when episodes end; leave it out to learn it.")
    if spaces.termination is not None and config.ending != "learned":
        told = spaces.termination
        return lambda point: told(point).astype(point.dtype)
    if not spaces.terminates:
        return lambda point: jnp.zeros((), point.dtype)
    boundary = ending.fit(state.ends, state.memory.states, memories.known(state.memory), bounds)
    return lambda point: ending.probability(boundary, point)


def draw_states(
    key: Key[Array, ""], config: Config, spaces: BoxSpaces, memory: memories.Memory, bounds, ends
) -> Float[Array, "N D"]:
    """States from q, the mixture of what was visited, where episodes begin, and the box.

    A state of the box that would end the episode is moved towards one that was visited until it does not.
    """
    total = config.history + config.start + config.support
    begun = round(config.states * config.start / total)
    spread = round(config.states * config.support / total)
    visited = config.states - begun - spread
    keys = jax.random.split(key, 5)
    low, high = bounds
    first = jnp.broadcast_to((low + high) / 2, (config.states, spaces.dimension))
    start_low = first[0] if spaces.start_low is None else jnp.asarray(spaces.start_low, low.dtype)
    start_high = first[0] if spaces.start_high is None else jnp.asarray(spaces.start_high, low.dtype)
    starts = jax.random.uniform(keys[0], first.shape, low.dtype, start_low, start_high)
    history = memories.draw(keys[1], memory, config.states, starts)
    if spaces.start_low is None:
        starts = memories.draw(keys[2], memory, config.states, starts)
    box = jax.random.uniform(keys[3], first.shape, low.dtype, low, high)
    shares = jnp.array([1.0, 0.7, 0.4, 0.0], low.dtype)
    path = history[:, None] + shares[:, None] * (box - history)[:, None]
    alive = jax.vmap(jax.vmap(ends))(path) < 0.5
    inside = jnp.take_along_axis(path, jnp.argmax(alive.at[:, -1].set(True), axis=1)[:, None, None], axis=1)[:, 0]
    mixed = jnp.concatenate([history[:visited], starts[:begun], inside[:spread]])
    # In no order, because value samples and utilities look at some of the states only.
    return jax.random.permutation(keys[4], mixed)


class Prepared(NamedTuple):
    """What one induction needs: the box, the states' design, the models' look ahead, the range of rewards, and the
    utilities of formulas that roll the models out.
    """

    bounds: Float[Array, "2 D"]
    design: linear_values.Design
    ahead: continuous.LookAhead
    limits: continuous.RewardRange | None
    span: continuous.RewardRange
    rollouts: continuous_rollouts.Utilities | None


def prepare(key: Key[Array, ""], config: Config, spaces: BoxSpaces, state: State) -> Prepared:
    """Draw models and states, and let every model look ahead from every state."""
    model_key, state_key, noise_key = jax.random.split(key, 3)
    form, features = model_form(config, spaces.dimension), value_map(config, spaces.dimension)
    bounds = memories.bounds(state.memory, spaces)
    ends = end_probability(config, spaces, state, bounds)
    models = jax.vmap(lambda one: linear.sample(one, state.belief))(jax.random.split(model_key, config.mdps))
    states = draw_states(state_key, config, spaces, state.memory, bounds, ends)
    normals = jax.random.normal(noise_key, states.shape, states.dtype)
    following = continuous.next_states(form, models, states, normals)
    ahead = continuous.look_ahead(form, models, states, following, ends, features, bounds)
    design = linear_values.make_design(jax.vmap(lambda one: features(one, bounds))(states), config.ridge)
    span = memories.reward_range(state.memory, spaces)
    if not config.own(config.split_rewards):
        ahead = ahead._replace(end_reward=None)
    limits = span if config.own(config.clip) else None
    rollouts = None
    if config.utilities != "values":
        split = config.own(config.split_rewards)
        world = continuous_rollouts.World(form, ends, features, bounds, config.discount, split, limits)
        near = states[: min(config.utility_states, config.states)]
        rollouts = continuous_rollouts.utilities(config.utilities, world, models, near, config.utility_samples)
    ahead = ahead if limits is None else continuous.limit_rewards(ahead, limits)
    return Prepared(bounds, design, ahead, limits, span, rollouts)


def plan(key: Key[Array, ""], config: Config, spaces: BoxSpaces, state: State) -> tuple[State, Info]:
    """Sample models, run the induction from V_H back to V_1, keep the weights of Q."""
    prepare_key, induction_key = jax.random.split(key)
    bounds, design, ahead, limits, span, rollouts = prepare(prepare_key, config, spaces, state)
    if config.value_belief() == "gaussian":
        sigma = config.sigma_fraction * _value_span(config, spaces, span)
        belief, diagnostics = continuous.by_gaussian(
            induction_key,
            design,
            ahead,
            continuous.greedy,
            config.horizon,
            config.discount,
            limits,
            sigma,
            config.samples,
            config.utility_samples,
            min(config.utility_states, config.states),
            rollouts=rollouts,
        )
        weights, size = belief.mean[None], jnp.mean(diagnostics.effective_sample_size)
        best = jnp.argmax(belief.mean @ design.features.T, axis=0)
        spread = jax.vmap(lambda one, action: linear_values.sd(belief, one)[action])(design.features, best)
    else:
        final = None
        if config.final == "previous":
            final = jnp.broadcast_to(jnp.mean(state.weights, axis=0), state.weights.shape)
        follow = _follow(config)
        weights = continuous.by_joint(design, ahead, follow, config.horizon, config.discount, limits, final)
        size, spread = jnp.ones((), weights.dtype), None
    columns = design.features.T
    values = jnp.sum((weights @ columns) * _follow(config)(columns, weights), axis=1)
    deviation = jnp.std(values, axis=0) if spread is None else spread
    info = Info(size, jnp.mean(values, axis=0), deviation)
    return State(state.belief, state.memory, state.ends, weights, bounds), info


def _value_span(config: Config, spaces: BoxSpaces, span: continuous.RewardRange) -> Float[Array, ""]:
    """The paper's V_span, or what values can really span given the rewards of steps and of ends."""
    steps = config.horizon if config.discount == 1 else 1 / (1 - config.discount)
    low, high = jnp.minimum(span.step[0], span.end[0]), jnp.maximum(span.step[1], span.end[1])
    widest = jnp.maximum(high - low, 1e-3)
    if config.span == "possible":
        return jnp.maximum((span.step[1] - span.step[0]) * steps + jnp.max(jnp.abs(span.end)), 1e-3)
    if spaces.reward_low is not None and spaces.reward_high is not None:
        widest = jnp.asarray(spaces.reward_high - spaces.reward_low, widest.dtype)
    return widest * steps


def _follow(config: Config) -> continuous.Follow:
    if config.rule == "mean":
        return continuous.greedy

    def follow(columns, weights):
        if columns.ndim == 2:
            return continuous.best_action(_scores(config, columns, weights))
        return jax.lax.map(lambda own: continuous.best_action(_scores(config, own, weights)), columns)

    return follow


def _scores(config: Config, columns: Float[Array, "F n"], weights: Float[Array, "J A F"]) -> Float[Array, "A n"]:
    """What an action rule makes of the models' Q values. Thompson's model is the first: all are alike beforehand."""
    if config.rule == "thompson":
        return weights[0] @ columns
    if config.rule == "mean":
        return jnp.mean(weights, axis=0) @ columns
    q_values = weights @ columns
    even = jnp.full(weights.shape[0], 1 / weights.shape[0], weights.dtype)
    if config.rule == "optimistic":
        return rules.optimistic(q_values, even, config.optimism, None)
    return rules.cautious(q_values, even, config.tail)


def action_scores(config: Config, state: State, observation: Float[Array, "D"]) -> Float[Array, "A"]:
    """What the plan makes of each action in a state; the largest is taken."""
    features = value_map(config, observation.shape[0])(observation, state.bounds)
    return _scores(config, features[:, None], state.weights)[:, 0]


def act(key: Key[Array, ""], config: Config, state: State, observation: Float[Array, "D"]) -> Int[Array, ""]:
    """The best action under the plan; ties are broken at random."""
    return rules.argmax(key, action_scores(config, state, observation)[None])[0]


def update(config: Config, state: State, transition: Transition) -> State:
    """Account for one transition; the plan stays as it is until the next update."""
    form = model_form(config, transition.state.shape[-1])
    return state._replace(
        belief=linear.update(form, state.belief, transition, config.own(config.split_rewards)),
        memory=memories.update(state.memory, transition),
        ends=ending.update(state.ends, transition.next_state, transition.terminated),
    )


def policy(config: Config, state: State, observation: Float[Array, "D"]) -> Float[Array, "A"]:
    """Action probabilities in a state under the plan."""
    scores = action_scores(config, state, observation)
    return rules.greedy(scores)
