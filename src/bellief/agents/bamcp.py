"""Bayes-adaptive Monte-Carlo planning (Guez et al. 2012): a tree search over histories, with MDPs drawn at its root.

At every step so many simulations descend from the present state. Within the tree actions are chosen by upper confidence
bounds (UCT), beyond it by an epsilon-greedy policy whose Q values are learned from real steps, as in the paper; every
simulation adds one node and ends after `depth` steps.

A simulation follows one MDP drawn from the posterior. It is never written down: a row that is visited k times in a
simulation gives outcomes drawn from Polya's urn, the posterior's counts and those of this simulation, which have the
same joint distribution as k draws from a drawn row. That is lazy sampling without the rows.

Deviation: rewards are not known beforehand as in the paper; a pair pays its posterior mean reward.

>>> import jax
>>> from bellief.agents import bamcp
>>> from bellief.envs import make
>>> from bellief.types import Transition
>>> config = bamcp.Config(simulations=20, depth=3)
>>> key, spaces = jax.random.key(0), make("nchain").spaces()
>>> state = bamcp.init(key, config, spaces)
>>> state = bamcp.update(config, state, Transition(*map(jax.numpy.asarray, (0, 1, 0.0, 1, False))))
>>> state, info = bamcp.plan(key, config, spaces, state)
>>> type(state).__name__, type(info).__name__, type(bamcp.search(key, config, state, 0)).__name__
('State', 'Info', 'Tree')
>>> bamcp.act(key, config, state, jax.numpy.array(1)).item() in (0, 1)
True
>>> bamcp.policy(config, state).sum(1).tolist()
[1.0, 1.0, 1.0, 1.0, 1.0]
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from bellief.agents import rules
from bellief.beliefs import normal_gamma, tabular
from bellief.errors import UserError, require
from bellief.types import Spaces, Transition


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings.

    Args:
        simulations: of each step.
        depth: steps of a simulation.
        exploration: weight of the UCT bound, in units of the reward; the paper takes 3.
        epsilon: share of random actions beyond the tree.
        step_size: of the Q values that the others follow.
    """

    discount: float = 0.95
    simulations: int = 1000
    depth: int = 25
    exploration: float = 3.0
    epsilon: float = 0.5
    step_size: float = 0.1
    prior: tabular.Prior = tabular.SPARSE_PRIOR

    def __post_init__(self):
        require(0 < self.discount <= 1, f"discount must lie in (0, 1], not {self.discount}.")
        if self.simulations < 1 or self.depth < 1:
            raise UserError(f"simulations and depth must be at least 1, not {self.simulations} and {self.depth}.")
        if not (self.exploration >= 0 and 0 <= self.epsilon <= 1 and 0 < self.step_size <= 1):
            raise UserError(
                "exploration must be from 0, epsilon in [0, 1] and step_size in (0, 1], not "
                f"{self.exploration}, {self.epsilon} and {self.step_size}."
            )


class State(NamedTuple):
    """What has been learned, and Q values of real steps for simulations to follow beyond the tree."""

    belief: tabular.TabularBelief
    q_values: Float[Array, "S A"]


class Info(NamedTuple):
    """Q-learning's value of each state: a search covers only states that the agent can reach from where it is."""

    value_mean: Float[Array, "S"]


class Tree(NamedTuple):
    """Nodes are histories; the first is the present. `child` is the node after an action and an outcome, 0 for none."""

    visits: Int[Array, "N A"]
    values: Float[Array, "N A"]
    child: Int[Array, "N A O"]
    nodes: Int[Array, ""]


class _Path(NamedTuple):
    """One simulation: where it is, the node, action and outcome that get a new node (a node of -1: none), and of every
    step the node (-1 beyond the tree), pair, action, outcome and reward.
    """

    state: Int[Array, ""]
    node: Int[Array, ""]
    ended: Bool[Array, ""]
    grown: Int[Array, "3"]
    node_of: Int[Array, "D"]
    pair_of: Int[Array, "D"]
    action_of: Int[Array, "D"]
    outcome_of: Int[Array, "D"]
    reward_of: Float[Array, "D"]


def init(key: Key[Array, ""], config: Config, spaces: Spaces) -> State:
    """Nothing learned."""
    del key, config
    belief = tabular.init(spaces.states, spaces.actions, spaces.terminates)
    return State(belief, jnp.zeros((spaces.states, spaces.actions), belief.rewards.mean.dtype))


def plan_steps(steps: int) -> list[int]:
    """Nothing is planned beforehand; a search is made at every step."""
    return [1] if steps else []


def plan(key: Key[Array, ""], config: Config, spaces: Spaces, state: State) -> tuple[State, Info]:
    """Nothing to plan: the search needs to know where the agent is."""
    del key, config, spaces
    return state, Info(jnp.max(state.q_values, axis=-1))


def search(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""] | int) -> Tree:
    """The tree after all simulations from `observation`; its first row is what to choose by."""
    counts = state.belief.counts
    _, actions, outcomes = counts.shape
    nodes, dtype = config.simulations + 2, state.q_values.dtype
    tree = Tree(
        jnp.zeros((nodes, actions), jnp.int32),
        jnp.zeros((nodes, actions), dtype),
        jnp.zeros((nodes, actions, outcomes), jnp.int32),
        jnp.array(1, jnp.int32),
    )
    parameters = normal_gamma.posterior(tabular.reward_prior(config.prior, dtype), state.belief.rewards)
    rewards = normal_gamma.mean(parameters)

    def simulate(number, tree):
        uniforms = jax.random.uniform(jax.random.fold_in(key, number), (config.depth, 4), dtype)
        path = _descend(config, state, rewards, tree, jnp.asarray(observation, jnp.int32), uniforms)
        return _back_up(config, _grow(tree, path.grown), path)

    return jax.lax.fori_loop(0, config.simulations, simulate, tree)


def _descend(config: Config, state: State, rewards, tree: Tree, observation, uniforms) -> _Path:
    counts = state.belief.counts
    states, actions, outcomes = counts.shape
    prior = config.prior.concentration(outcomes)
    nowhere = jnp.full(config.depth, -1, jnp.int32)

    def step(depth, path: _Path) -> _Path:
        uniform = uniforms[depth]
        inside = path.node >= 0
        action = jnp.where(
            inside,
            _tree_action(config, tree, path.node, uniform[0]),
            _rollout_action(config, state, path.state, uniform),
        )
        pair = path.state * actions + action
        # Polya's urn: what was observed, and what this simulation has drawn from the same pair.
        same = (path.pair_of == pair) & (jnp.arange(config.depth) < depth)
        weights = prior + counts[path.state, action].astype(uniforms.dtype)
        weights = weights.at[path.outcome_of].add(same.astype(uniforms.dtype))
        reached = jnp.cumsum(weights)
        outcome = jnp.minimum(jnp.sum(reached <= uniform[2] * reached[-1]), outcomes - 1).astype(jnp.int32)
        ends = outcome >= states
        child = tree.child[path.node, action, outcome]
        # The first step out of the tree makes a node of the history it reaches; from there on, there is no node.
        grows = inside & ~path.ended & (child == 0)
        alive = ~path.ended
        return _Path(
            jnp.where(ends, path.state, outcome % states),
            jnp.where(inside & (child > 0), child, -1),
            path.ended | ends,
            jnp.where(grows, jnp.stack([path.node, action, outcome]), path.grown),
            path.node_of.at[depth].set(jnp.where(alive, path.node, -1)),
            path.pair_of.at[depth].set(jnp.where(alive, pair, -1)),
            path.action_of.at[depth].set(action),
            path.outcome_of.at[depth].set(outcome),
            path.reward_of.at[depth].set(jnp.where(alive, rewards[path.state, action], 0)),
        )

    zero = jnp.zeros(config.depth, jnp.int32)
    first = _Path(
        observation,
        jnp.array(0, jnp.int32),
        jnp.array(False),
        jnp.array([-1, 0, 0], jnp.int32),
        nowhere,
        nowhere,
        zero,
        zero,
        jnp.zeros(config.depth, uniforms.dtype),
    )
    return jax.lax.fori_loop(0, config.depth, step, first)


def _tree_action(config: Config, tree: Tree, node, uniform) -> Int[Array, ""]:
    """The largest upper confidence bound; an action never tried comes first, of several a random one."""
    visits = tree.visits[node].astype(uniform.dtype)
    bound = jnp.sqrt(jnp.log(jnp.maximum(jnp.sum(visits), 1)) / jnp.maximum(visits, 1))
    scores = tree.values[node] + config.exploration * bound
    untried = visits == 0
    turn = (jnp.arange(visits.shape[0]) + jnp.floor(uniform * visits.shape[0])) % visits.shape[0]
    return jnp.where(jnp.any(untried), jnp.argmax(jnp.where(untried, turn, -1)), jnp.argmax(scores)).astype(jnp.int32)


def _rollout_action(config: Config, state: State, where, uniform) -> Int[Array, ""]:
    actions = state.q_values.shape[1]
    random = jnp.minimum((uniform[1] * actions).astype(jnp.int32), actions - 1)
    return jnp.where(uniform[3] < config.epsilon, random, jnp.argmax(state.q_values[where]).astype(jnp.int32))


def _grow(tree: Tree, grown: Int[Array, "3"]) -> Tree:
    """The tree with one more node, if the simulation needs one."""
    node, action, outcome = grown
    grows = node >= 0
    # Without a new node the last entry of the table, which no node uses, is written to.
    place = jnp.where(grows, node, tree.visits.shape[0] - 1)
    number = jnp.where(grows, tree.nodes, 0)
    return tree._replace(
        child=tree.child.at[place, action, outcome].set(number), nodes=tree.nodes + grows.astype(jnp.int32)
    )


def _back_up(config: Config, tree: Tree, path: _Path) -> Tree:
    """Every node on the path moves its chosen action's value towards what followed."""

    def step(number, carry):
        tree, following = carry
        depth = config.depth - 1 - number
        node, action = path.node_of[depth], path.action_of[depth]
        earned = path.reward_of[depth] + config.discount * following
        counted = (node >= 0).astype(jnp.int32)
        visits = tree.visits.at[node, action].add(counted)
        share = counted / jnp.maximum(visits[node, action], 1).astype(earned.dtype)
        values = tree.values.at[node, action].add(share * (earned - tree.values[node, action]))
        return tree._replace(visits=visits, values=values), earned

    nothing = jnp.zeros((), path.reward_of.dtype)
    return jax.lax.fori_loop(0, config.depth, step, (tree, nothing))[0]


def act(key: Key[Array, ""], config: Config, state: State, observation: Int[Array, ""]) -> Int[Array, ""]:
    """The action of the largest value at the root of a fresh tree."""
    tree = search(key, config, state, observation)
    scores = jnp.where(tree.visits[0] > 0, tree.values[0], -jnp.inf)
    return rules.argmax(jax.random.fold_in(key, config.simulations), scores[None])[0]


def update(config: Config, state: State, transition: Transition) -> State:
    """Account for one transition, and move the Q values that simulations follow beyond the tree."""
    pair = (transition.state, transition.action)
    best = jnp.max(state.q_values[transition.next_state])
    target = transition.reward + config.discount * jnp.where(transition.terminated, 0, best)
    moved = state.q_values.at[pair].add(config.step_size * (target - state.q_values[pair]))
    return State(tabular.update(state.belief, transition), moved)


def policy(config: Config, state: State) -> Float[Array, "S A"]:
    """Greedy in the learned Q values: what the agent would do takes a search in every state."""
    del config
    return rules.greedy(state.q_values)
