"""Variational deep Q-network (Tang and Agrawal 2018): a Gaussian belief about the weights of a Q-network.

The belief is factorised; a fresh draw of all weights chooses each action. Every step a batch from the replay buffer is
regressed on r + discount * max Q of a target network, by one Adam step on the negative evidence lower bound. States
enter one-hot, and there is nothing to plan.

Weights are drawn where they act: given its input, a layer's sums are independent Gaussians, so drawing the sums is
drawing a new set of weights for every input (the local reparameterisation of Kingma, Salimans and Welling 2015). An
action is chosen from one input, so its law is exactly that of a weight draw; in a batch each transition has its own
draw, of the network and of the target, as published, at the price of a second matrix product.

Deviations: a Gaussian prior over weights (the published one is flat, so that only the entropy is left of the
divergence); a replay buffer of 10^5 instead of 10^6 transitions, which is ample for the few thousand different
transitions of a tabular problem. It learns at every step, as published, although section 4.1 has each algorithm update
its policy at steps 1, 3, 6, 10, ... only; `pace` has the other readings of that sentence.

>>> import jax
>>> from bellief.agents import vdqn
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = vdqn.Config(width=4, hidden_layers=1, buffer=10, batch=2)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = vdqn.init(key, config, spaces)
>>> state = vdqn.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = vdqn.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_mean.shape
('State', 'Info', (5,))
>>> vdqn.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> vdqn.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt32

from bellief.agents import pace, rules, stored_key
from bellief.errors import UserError, require
from bellief.types import Spaces, Transition, default_precision

try:
    import optax
except ImportError as error:  # a machine that runs other agents need not have it
    raise UserError("Agent 'vdqn' needs optax, which is not installed: install bellief[nn].") from error


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; the defaults are those of Tang and Agrawal where the deviations above do not say otherwise.

    Args:
        hidden_layers, width: the network; no hidden layer makes it linear in the one-hot state.
        noise: standard deviation of an observed target about Q.
        warm_up: steps before learning begins.
        target_steps: environment steps between copies of the belief to the target network.
        reward_scale: rewards are multiplied by it. One, as published, even where returns reach hundreds and 10^-3 steps
            of Adam take long to get there.
        pace: `every-step`; `scheduled-policy` acts on the weights of the last plan; `scheduled-learning` makes one step
            of Adam when it plans, and none between plans.
    """

    hidden_layers: int = 2
    width: int = 100
    discount: float = 0.99
    noise: float = 0.1
    initial_sd: float = 0.017
    prior_sd: float = 1.0
    learning_rate: float = 1e-3
    batch: int = 64
    warm_up: int = 500
    buffer: int = 100_000
    target_steps: int = 100
    reward_scale: float = 1.0
    pace: str = pace.field(pace.EVERY_STEP)

    def __post_init__(self):
        pace.check("vdqn", self.pace, pace.PACES)
        require(self.hidden_layers >= 0, f"hidden_layers must be at least 0, not {self.hidden_layers}.")
        for name in ("width", "batch", "buffer", "target_steps"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, not {getattr(self, name)}.")
        require(self.warm_up >= 0, f"warm_up must be at least 0, not {self.warm_up}.")
        require(0 <= self.discount <= 1, f"discount must lie in [0, 1], not {self.discount}.")
        for name in ("noise", "initial_sd", "prior_sd", "learning_rate", "reward_scale"):
            require(getattr(self, name) > 0, f"{name} must be positive, not {getattr(self, name)}.")


class Layer(NamedTuple):
    """One number for each weight and bias of a layer."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"]


class Weights(NamedTuple):
    """The belief: mean and logarithm of the standard deviation of every weight, layer by layer."""

    mean: tuple[Layer, ...]
    log_sd: tuple[Layer, ...]


class State(NamedTuple):
    """Belief, target, optimiser, replay buffer (a ring that transition number n enters at n modulo its size); `acting`
    is the belief of the last plan, where that is what chooses actions.
    """

    weights: Weights
    target: Weights
    optimiser: Any
    replay: Transition
    steps: Int[Array, ""]
    loss: Float[Array, ""]
    key_data: UInt32[Array, "2"]
    acting: Weights | None = None


class Info(NamedTuple):
    """Loss of the last batch, and the values of each state's best action under the mean weights."""

    loss: Float[Array, ""]
    value_mean: Float[Array, "S"]


def _adam(config: Config) -> optax.GradientTransformation:
    return optax.adam(config.learning_rate)


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """Means uniform within one over the root of a layer's inputs, equal spreads, an empty buffer."""
    return begin(key, config, spaces.states, spaces.actions, jnp.zeros(config.buffer, jnp.int32))


def begin(key: Key[Array, ""], config: Config, size: int, actions: int, empty: Array) -> State:
    """An untrained network with so many inputs; `empty` is the buffer's column of states."""
    weight_key, own_key = jax.random.split(key)
    sizes = (size, *(config.width,) * config.hidden_layers, actions)
    mean = []
    for number, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        reach = 1 / math.sqrt(inputs)
        matrix_key, bias_key = jax.random.split(jax.random.fold_in(weight_key, number))
        mean.append(
            Layer(
                _between(matrix_key, (inputs, outputs), reach),
                _between(bias_key, (outputs,), reach),
            )
        )
    log_sd = jax.tree.map(lambda values: jnp.full_like(values, math.log(config.initial_sd)), tuple(mean))
    weights = Weights(tuple(mean), log_sd)
    numbers = jnp.zeros(config.buffer, jnp.int32)
    return State(
        weights=weights,
        # A copy, because donated buffers must not be shared.
        target=jax.tree.map(jnp.copy, weights),
        optimiser=_adam(config).init(weights),
        replay=Transition(empty, jnp.copy(numbers), numbers.astype(float), jnp.copy(empty), numbers.astype(bool)),
        steps=jnp.array(0, jnp.int32),
        loss=jnp.array(0, float),
        key_data=jax.random.key_data(own_key),
        acting=jax.tree.map(jnp.copy, weights) if config.pace == pace.SCHEDULED_POLICY else None,
    )


def _between(key: Key[Array, ""], shape: tuple[int, ...], reach: float) -> Float[Array, "*shape"]:
    """Uniform between -reach and reach, as `jax.random.uniform` has it."""
    dtype = default_precision()
    low, high = dtype.type(-reach), dtype.type(reach)
    return jnp.maximum(low, jax.random.uniform(key, shape, dtype) * (high - low) + low)


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Nothing to plan; what `pace` puts off is done, and diagnostics are returned."""
    del spaces
    state = catch_up(key, config, state)
    return state, Info(state.loss, jnp.max(_mean_values(in_force(state)), axis=-1))


def catch_up(key: Key[Array, ""], config: Config, state: State) -> State:
    """What `pace` leaves for the steps of the schedule: new weights to act on, or a step of Adam after the warm-up."""
    if config.pace == pace.SCHEDULED_POLICY:
        return state._replace(acting=jax.tree.map(jnp.copy, state.weights))
    if config.pace == pace.SCHEDULED_LEARNING:
        weights, optimiser, loss = _learn_after_warm_up(key, config, state, state.replay, state.steps)
        return state._replace(weights=weights, optimiser=optimiser, loss=loss)
    return state


def in_force(state: State) -> Weights:
    """The belief that chooses actions."""
    return state.weights if state.acting is None else state.acting


def act(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Int[Array, ""]:
    """The best action under a fresh draw of the weights."""
    del config
    return jnp.argmax(sample_values(key, in_force(state), observation[None])[0])


def update(config: Config, state: State, transition: Transition) -> State:
    """Remember the transition; after the warm-up a step of Adam, unless that is for plans; at times a new target."""
    place = state.steps % config.buffer
    scaled = transition._replace(reward=transition.reward * config.reward_scale)
    replay = Transition(
        *(values.at[place].set(value.astype(values.dtype)) for values, value in zip(state.replay, scaled, strict=True))
    )
    steps = state.steps + 1
    key, learn_key = jax.random.split(stored_key.restore(state.key_data))
    learned = (state.weights, state.optimiser, state.loss)
    if config.pace != pace.SCHEDULED_LEARNING:
        learned = _learn_after_warm_up(learn_key, config, state, replay, steps)
    weights, optimiser, loss = learned
    renew = steps % config.target_steps == 0
    target = jax.tree.map(lambda new, old: jnp.where(renew, new, old), weights, state.target)
    return State(weights, target, optimiser, replay, steps, loss, jax.random.key_data(key), state.acting)


def _learn_after_warm_up(
    key: Key[Array, ""], config: Config, state: State, replay: Transition, steps: Int[Array, ""]
) -> tuple[Weights, Any, Float[Array, ""]]:
    """Weights, optimiser and loss after one step of Adam, or as they were during the warm-up."""
    known = jnp.minimum(steps, config.buffer)
    # Only what changes goes through the condition: under vmap it becomes a choice between whole arrays.
    return jax.lax.cond(
        steps > config.warm_up,
        lambda now: learn(key, config, now[0], state.target, now[1], replay, known),
        lambda now: now,
        (state.weights, state.optimiser, state.loss),
    )


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """Greedy under the mean weights; tied actions share the probability."""
    del config
    return rules.greedy(_mean_values(in_force(state)))


def learn(
    key: Key[Array, ""],
    config: Config,
    weights: Weights,
    target: Weights,
    optimiser: Any,
    replay: Transition,
    known: Int[Array, ""],
) -> tuple[Weights, Any, Float[Array, ""]]:
    """One step of Adam on a batch from the first `known` places of the buffer, drawn with replacement."""
    batch_key, target_key, weight_key = jax.random.split(key, 3)
    chosen = jax.random.randint(batch_key, (config.batch,), 0, known)
    batch = Transition(*(values[chosen] for values in replay))
    goals = targets(target_key, config, target, batch)
    loss, gradient = jax.value_and_grad(negative_bound)(weights, weight_key, config, batch, goals, known)
    change, optimiser = _adam(config).update(gradient, optimiser)
    return optax.apply_updates(weights, change), optimiser, loss


def targets(key: Key[Array, ""], config: Config, target: Weights, batch: Transition) -> Float[Array, "n"]:
    """r + discount * max Q of the target network, with its own weight draw for each transition; r alone at an end."""
    later = jnp.max(sample_values(key, target, batch.next_state), axis=-1)
    return batch.reward + config.discount * jnp.where(batch.terminated, 0, later)


def negative_bound(
    weights: Weights,
    key: Key[Array, ""],
    config: Config,
    batch: Transition,
    goals: Float[Array, "n"],
    known: Int[Array, ""],
) -> Float[Array, ""]:
    """The negative evidence lower bound per observation, less a constant.

    Mean squared error over twice the noise variance, plus the divergence from the prior shared among `known`
    observations.
    """
    values = jnp.take_along_axis(sample_values(key, weights, batch.state), batch.action[:, None], axis=-1)[:, 0]
    error = jnp.mean((values - goals) ** 2) / (2 * config.noise**2)
    return error + divergence(weights, config.prior_sd) / known.astype(error.dtype)


def divergence(weights: Weights, prior_sd: float) -> Float[Array, ""]:
    """KL divergence of the belief from independent Gaussians around zero."""

    def of_array(mean, log_sd):
        log_ratio = log_sd - math.log(prior_sd)
        return jnp.sum((jnp.exp(2 * log_ratio) + (mean / prior_sd) ** 2 - 1) / 2 - log_ratio)

    return sum(jax.tree.leaves(jax.tree.map(of_array, weights.mean, weights.log_sd)), start=jnp.zeros(()))


def sample_values(
    key: Key[Array, ""], weights: Weights, states: Int[Array, "n"] | Float[Array, "n D"]
) -> Float[Array, "n A"]:
    """Q values of some states, each under its own draw of all weights."""
    signal = None
    for number, (mean, log_sd) in enumerate(zip(weights.mean, weights.log_sd, strict=True)):
        if signal is None and jnp.issubdtype(states.dtype, jnp.integer):
            # The product of a one-hot state and a matrix is a row of the matrix.
            centre, variance = mean.weight[states], jnp.exp(2 * log_sd.weight[states])
        else:
            inputs = states if signal is None else jax.nn.relu(signal)
            centre, variance = inputs @ mean.weight, inputs**2 @ jnp.exp(2 * log_sd.weight)
        spread = jnp.sqrt(variance + jnp.exp(2 * log_sd.bias))
        normal = jax.random.normal(jax.random.fold_in(key, number), centre.shape, centre.dtype)
        signal = centre + mean.bias + spread * normal
    assert signal is not None  # there is always a layer
    return signal


def _mean_values(weights: Weights) -> Float[Array, "S A"]:
    """Q values of every state under the mean weights."""
    first, *others = weights.mean
    signal = first.weight + first.bias
    for layer in others:
        signal = jax.nn.relu(signal) @ layer.weight + layer.bias
    return signal
