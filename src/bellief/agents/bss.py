"""Bayesian sparse sampling (Wang, Lizotte, Bowling and Schuurmans 2005): a small tree of beliefs at every step.

A node of the tree is a state together with what the agent would believe there. Each action gets a few sampled next
states, each of these a few sampled rewards, and each child the belief updated by what was sampled. All children of an
action weigh the same and their weights sum to one. Below the last level stands the value under the root belief's mean
MDP, which is solved once a step.

With `gains="sampled"` the sampled rewards are also what the tree adds up, as published. With `gains="expected"` (ours)
a step is worth its expected reward under the node's belief and samples act through the child's belief alone: the same
expectation with less noise, and less exploration, for noise is most of what makes a shallow tree explore.

Growth `all` expands every action everywhere. Growth `thompson`, after Wang et al., expands every action at the root,
and in each node below it only one: a transition row and a mean reward are drawn for each action from the node's belief,
and the action that is best by one step ahead of the leaf values is followed. Deviation: they solve a sampled model in
each node, grow the tree one trajectory at a time and maximise over the actions that were tried; one action leaves
nothing to maximise over.

>>> import jax
>>> from bellief.agents import bss
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = bss.Config(depth=1, next_states=2, rewards=1)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = bss.init(key, config, spaces)
>>> state = bss.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = bss.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, info.value_mean.shape
('State', 'Info', (5,))
>>> bss.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> bss.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bellief.agents import rules, student
from bellief.beliefs import normal_gamma, tabular
from bellief.beliefs.gamma import sample_log_gamma
from bellief.errors import require, require_choice
from bellief.mdp import bellman
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.types import Spaces, Transition

GROWTHS = ("all", "thompson")
GAINS = ("sampled", "expected")

# Policy iteration from the last step's policy needs one or two rounds; the bound only guards against cycling.
MOST_ROUNDS = 100


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings; the defaults are the paper's: depth two, four next states, two rewards for each of these."""

    depth: int = 2
    next_states: int = 4
    rewards: int = 2
    growth: str = "all"
    gains: str = "sampled"
    discount: float = 0.99
    prior: tabular.Prior = tabular.PAPER_PRIOR

    def __post_init__(self):
        for name in ("depth", "next_states", "rewards"):
            require(getattr(self, name) >= 1, f"bss needs a {name} of at least 1, not {getattr(self, name)}.")
        require_choice(self.growth, GROWTHS, "bss has no growth")
        require_choice(self.gains, GAINS, "bss has no gains")
        require(0 < self.discount < 1, f"discount must lie between 0 and 1, not {self.discount}: leaf values need it.")


class State(NamedTuple):
    """What has been learned; optimal values and actions of its mean MDP, kept up to date by `update`."""

    belief: tabular.TabularBelief
    values: Float[Array, "S"]
    actions: Int[Array, "S"]


class Info(NamedTuple):
    """Optimal values of the mean MDP."""

    value_mean: Float[Array, "S"]


class Step(NamedTuple):
    """An imagined step on the way from the root to a node; `outcome` is the number of states where an episode ends."""

    state: Int[Array, ""]
    action: Int[Array, ""]
    reward: Float[Array, ""]
    outcome: Int[Array, ""]


class Root(NamedTuple):
    """What all nodes of a tree share: the root's belief and the leaf values, with a zero for the end of an episode."""

    concentration: Float[Array, "S A O"]
    rewards: normal_gamma.Parameters
    leaf_values: Float[Array, "outcomes"]


class Noise(NamedTuple):
    """Random numbers of one level of the tree; nested calls of `vmap` take the leading axes off. None: none drawn."""

    outcomes: Float[Array, "*tree A n"]
    rewards: Float[Array, "*tree A n m 2"] | None
    actions: Key[Array, "*tree"] | None


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """The prior and the values of its mean MDP."""
    del key
    belief = tabular.init(spaces.states, spaces.actions, spaces.terminates)
    actions = jnp.zeros(spaces.states, jnp.int32)
    return State(belief, *solve(tabular.mean(config.prior, belief, config.discount), actions))


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Nothing to do: the agent plans at every step. Returns diagnostics."""
    del key, config, spaces
    return state, Info(state.values)


def act(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Int[Array, ""]:
    """The best action by a fresh tree; ties are broken at random."""
    tree_key, tie_key = jax.random.split(key)
    return rules.argmax(tie_key, action_values(tree_key, config, state, observation))


def update(config: Config, state: State, transition: Transition) -> State:
    """Account for one transition and solve the mean MDP again."""
    belief = tabular.update(state.belief, transition)
    return State(belief, *solve(tabular.mean(config.prior, belief, config.discount), state.actions))


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """The optimal policy of the mean MDP, which is what the trees tend to as the belief settles."""
    del config
    return jax.nn.one_hot(state.actions, state.belief.counts.shape[1], dtype=state.values.dtype)


def solve(mdp: TabularMDP, actions: Int[Array, "S"]) -> tuple[Float[Array, "S"], Int[Array, "S"]]:
    """Optimal values and actions by policy iteration from a policy that is likely to be optimal already.

    Ends when no action is better by more than rounding, so values are exact to rounding, which sweeps of value
    iteration would reach only after hundreds of rounds at this discount.
    """
    rows = jnp.arange(actions.shape[0])
    identity = jnp.eye(actions.shape[0], dtype=mdp.reward.dtype)
    rounding = 16 * jnp.finfo(mdp.reward.dtype).eps

    def unfinished(carry):
        _, _, changed, number = carry
        return changed & (number < MOST_ROUNDS)

    def improve(carry):
        actions, _, _, number = carry
        chain = identity - mdp.discount * mdp.transition[rows, actions]
        values = jnp.linalg.solve(chain, mdp.reward[rows, actions])
        q_values = bellman.action_values(mdp, values)
        better = jnp.max(q_values, axis=-1) > q_values[rows, actions] + rounding * jnp.max(jnp.abs(values))
        best = jnp.argmax(q_values, axis=-1).astype(actions.dtype)
        return jnp.where(better, best, actions), values, jnp.any(better), number + 1

    first = (actions, jnp.zeros_like(mdp.reward[:, 0]), jnp.array(True), jnp.array(0, jnp.int32))
    actions, values, _, _ = jax.lax.while_loop(unfinished, improve, first)
    return values, actions


def action_values(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Float[Array, "A"]:
    """Grow a tree from the observation and back its values up to the root's actions."""
    dtype = state.values.dtype
    states, actions, outcomes = state.belief.counts.shape
    root = Root(
        config.prior.concentration(outcomes) + state.belief.counts.astype(dtype),
        normal_gamma.posterior(tabular.reward_prior(config.prior, dtype), state.belief.rewards),
        jnp.pad(state.values, (0, outcomes - states)),
    )
    noise = draw_noise(key, config, actions, dtype)
    return _expand(config, root, (), observation, noise, jnp.arange(actions))


def draw_noise(key: Key[Array, ""], config: Config, actions: int, dtype: jnp.dtype) -> tuple[Noise, ...]:
    """All random numbers of a tree, a few large draws instead of many small ones."""
    noise = []
    tree: tuple[int, ...] = ()
    for level in range(config.depth):
        outcome_key, reward_key, action_key = jax.random.split(jax.random.fold_in(key, level), 3)
        thompson = config.growth == "thompson" and level > 0
        shape = (*tree, 1 if thompson else actions, config.next_states)
        # Rewards of the last level change only beliefs that are never looked at.
        rewarded = level + 1 < config.depth or config.gains == "sampled"
        noise.append(
            Noise(
                jax.random.uniform(outcome_key, shape, dtype),
                jax.random.uniform(reward_key, (*shape, config.rewards, 2), dtype) if rewarded else None,
                jax.random.split(action_key, tree) if thompson else None,
            )
        )
        tree = (*shape, config.rewards)
    return tuple(noise)


def _expand(
    config: Config,
    root: Root,
    path: tuple[Step, ...],
    state: Int[Array, ""],
    noise: tuple[Noise, ...],
    actions: Int[Array, "a"],
) -> Float[Array, "a"]:
    """Values of some actions in a node."""

    def one_action(action, noise):
        weights, belief = _node_belief(root, path, state, action)
        outcomes = _sample_outcomes(weights, noise[0].outcomes)
        rewards = None if noise[0].rewards is None else _sample_rewards(belief, noise[0].rewards)
        gain = belief.mean if rewards is None or config.gains == "expected" else jnp.mean(rewards)
        if len(noise) == 1:
            return gain + config.discount * jnp.mean(root.leaf_values[outcomes])

        def one_child(outcome, reward, noise):
            return _node_value(config, root, (*path, Step(state, action, reward, outcome)), outcome, noise)

        children = jax.vmap(jax.vmap(one_child, in_axes=(None, 0, 0)))(outcomes, rewards, noise[1:])
        return gain + config.discount * jnp.mean(children)

    # The node's own key, where it has one, was used to choose the actions.
    noise = (noise[0]._replace(actions=None), *noise[1:])
    return jax.vmap(one_action)(actions, noise)


def _node_value(
    config: Config, root: Root, path: tuple[Step, ...], outcome: Int[Array, ""], noise: tuple[Noise, ...]
) -> Float[Array, ""]:
    """Value of a node below the root: of its best action or of the one Thompson sampling follows; zero after an end."""
    states, number, _ = root.concentration.shape
    state = jnp.minimum(outcome, states - 1)
    actions = jnp.arange(number)
    if noise[0].actions is not None:
        actions = _thompson_action(noise[0].actions, config, root, path, state)[None]
    value = jnp.max(_expand(config, root, path, state, noise, actions))
    return jnp.where(outcome < states, value, 0)


def _node_belief(
    root: Root, path: tuple[Step, ...], state: Int[Array, ""], action: Int[Array, ""]
) -> tuple[Float[Array, "O"], normal_gamma.Parameters]:
    """A node's belief about one pair: the root's, updated by those imagined steps on the path that took this pair.

    So no node stores a belief, however many there are.
    """
    weights = root.concentration[state, action]
    mean, strength, shape, rate = (table[state, action] for table in root.rewards)
    for step in path:
        same = ((step.state == state) & (step.action == action)).astype(weights.dtype)
        weights = weights.at[step.outcome].add(same)
        gap = same * (step.reward - mean)
        share = 1 / (strength + 1)
        rate = rate + strength * share * gap**2 / 2
        mean, strength, shape = mean + gap * share, strength + same, shape + same / 2
    return weights, normal_gamma.Parameters(mean, strength, shape, rate)


def _sample_outcomes(weights: Float[Array, "O"], uniforms: Float[Array, "n"]) -> Int[Array, "n"]:
    """Draws in proportion to the weights. Rounding cannot choose one past the last."""
    cumulative = jnp.cumsum(weights)
    chosen = jnp.sum(uniforms[:, None] * cumulative[-1] >= cumulative, axis=-1)
    return jnp.minimum(chosen, weights.shape[0] - 1)


def _sample_rewards(belief: normal_gamma.Parameters, uniforms: Float[Array, "*dims 2"]) -> Float[Array, "*dims"]:
    """Single rewards from their predictive distribution, a Student one with 2 alpha degrees of freedom."""
    spread = jnp.sqrt(belief.rate * (belief.strength + 1) / (belief.strength * belief.shape))
    return belief.mean + spread * student.from_uniforms(2 * belief.shape, uniforms)


def _thompson_action(
    key: Key[Array, ""], config: Config, root: Root, path: tuple[Step, ...], state: Int[Array, ""]
) -> Int[Array, ""]:
    """The best action of one draw from the node's belief, one step ahead of the leaf values."""
    row_key, reward_key = jax.random.split(key)
    actions = jnp.arange(root.concentration.shape[1])
    weights, beliefs = jax.vmap(lambda action: _node_belief(root, path, state, action))(actions)
    rows = jax.nn.softmax(sample_log_gamma(row_key, weights), axis=-1)
    reward, _ = normal_gamma.sample(reward_key, beliefs)
    return jnp.argmax(reward + config.discount * rows @ root.leaf_values)
