"""Our contestants. A function returns seconds for one run where it computed several, by way of `Shared`."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import textbook

import bellief
from bellief import fast
from bellief.agents import bbi_paper, bbi_sampled, psrl_paper
from bellief.beliefs import dirichlet, tabular
from bellief.experiments import compiled_environments, compiled_steps
from bellief.fast import random_keys
from bellief.mdp import bellman
from bellief.mdp.tabular_mdp import TabularMDP


class Shared(NamedTuple):
    """A contestant that computes `runs` runs at once: its time is divided by that."""

    function: object
    runs: int


def sizes(states):
    """Actions and value samples as in the paper's problems of about that size."""
    return (2 if states < 35 else 4), (50 if states < 100 else 20)


def sampled_mdps(states, actions, mdps, runs, seed=0):
    rng = np.random.default_rng(seed)
    shape = (runs, mdps, states, actions)
    rows = rng.standard_gamma(0.5, (*shape, states)).astype(np.float32)
    return TabularMDP(
        jnp.asarray(rows / rows.sum(-1, keepdims=True)),
        jnp.asarray(rng.normal(size=shape), jnp.float32),
        jnp.zeros(shape, jnp.float32),
        jnp.full((runs, mdps, states), 1 / states, jnp.float32),
        jnp.full((runs, mdps), 0.99, jnp.float32),
    )


def induction(states, runs, mdps=10, samples=None, **settings):
    """One BBI update of each of `runs` runs, without drawing the MDPs: the compiled function and its arguments."""
    actions, usual = sizes(states)
    config = bbi_sampled.Config(mdps=mdps, samples=samples or usual, **settings)
    made = sampled_mdps(states, actions, mdps, runs)

    @jax.jit
    @jax.vmap
    def update(key, own):
        final = jnp.zeros((mdps, states), jnp.float32)
        settings = config.method1_settings(states)
        with fast.enabled():
            given = (key, settings, config.horizon, own, final, jnp.float32(10.0), bbi_sampled.gaussian_score(config))
            return bbi_paper.induce(*given)

    def call(seed):
        with jax.default_matmul_precision("highest"):
            return update(jax.random.split(random_keys.key(seed), runs), made)

    call.lower = lambda: update.lower(jax.random.split(jax.random.key(0), runs), made)
    return call


def products(states, mdps=10, horizon=100):
    """The matrix products that an update cannot do without, in the fastest order found, and nothing else: the floor."""
    actions, samples = sizes(states)
    made = sampled_mdps(states, actions, mdps, 1)
    transition = made.transition[0]

    @jax.jit
    def floor(mixed, values, actions):
        def step(_, carry):
            mixed, values, total = carry
            q_values = jnp.sum(jnp.einsum("jsat,jt->jsa", transition, mixed), axis=0)
            rows = transition[:, jnp.arange(states), actions]
            pushed = jnp.einsum("jst,kt->jsk", rows, values)
            return mixed + 1e-3 * pushed[..., 0], values + 1e-3 * pushed[0].T, total + q_values

        return jax.lax.fori_loop(0, horizon, step, (mixed, values, jnp.zeros((states, actions_count))))

    actions_count = actions
    arguments = (jnp.ones((mdps, states)), jnp.ones((samples, states)), jnp.zeros(states, jnp.int32))
    return lambda seed: floor(*arguments)


def posterior(states, mdps=1000):
    """Values of one policy in 1,000 posterior draws of its rows and rewards."""
    counts = jnp.asarray(textbook.sparse_counts(states, 1, np.random.default_rng(0)))
    number = counts.sum(-1)
    rewards = tabular.normal_gamma.Statistics(number, jnp.full_like(number, 0.5, jnp.float32), number * 0.25)
    belief = tabular.TabularBelief(counts, rewards)
    policy = jnp.ones((states, 1))

    @jax.jit
    def values(key):
        def one(own):
            mdp = tabular.sample(own, tabular.PAPER_PRIOR, belief, 0.99, support=3)
            return bellman.evaluate_exact(mdp, policy)

        # A hundred at a time stay in the cache.
        return jax.lax.map(one, jax.random.split(key, mdps), batch_size=min(100, mdps))

    return lambda seed: values(jax.random.key(seed))


def draw_rows(mdps=10, states=264, actions=4):
    counts = jnp.asarray(textbook.sparse_counts(states, actions, np.random.default_rng(0)))

    @jax.jit
    def many(keys):
        with fast.enabled():
            return jax.vmap(lambda key: dirichlet.sample(key, 0.5, counts, jnp.float32, 3))(keys)

    return lambda seed: many(jax.random.split(random_keys.key(seed), mdps))


def stepping(steps, runs=50):
    """Steps of the compiled loop with the beliefs' updates, under the first random policy."""
    environment = bellief.make("nchain")
    tables = compiled_environments.make_tables(environment.outcomes)
    program = compiled_steps.program(psrl_paper, psrl_paper.Config(), environment.spaces())
    keys = jax.vmap(lambda run: compiled_steps.run_keys(0, "nchain", "psrl", run))(np.arange(runs))

    def call(seed):
        begun = compiled_steps.begin(keys, tables, program=program)
        return compiled_steps.advance(
            keys, tables, np.int32(0), np.int32(steps // runs), np.float32(1e-3), begun, program=program
        )

    return call


@functools.cache
def logged(transitions, states=100, actions=2):
    state, action, reward, after = textbook.log(transitions, states, actions)
    return bellief.Transitions.from_arrays(state, action, reward, after, states=states, actions=actions)


def offline(transitions):
    data, policy = logged(transitions), np.full((100, 2), 0.5)
    return lambda seed: (
        bellief.evaluate(data, policy, 0.99, prior="paper", method="monte-carlo", mdps=1000, seed=seed).samples
    )


def run(agent, steps, runs):
    return lambda seed: bellief.run("nchain", agent, steps, runs, seed, device="cpu").total


AGENTS = {"psrl": "psrl-paper", "mmbi": "mmbi"}


def contestants(workload, size):
    """Functions of a seed, or `Shared` ones, by name."""
    if workload in AGENTS:
        return {
            "Bellief, one run": lambda seed: bellief.run("nchain", AGENTS[workload], size, 1, seed).total,
            "Bellief, per run of 50": Shared(run(AGENTS[workload], size, 50), 50),
        }
    if workload == "bbi update":
        runs = 10 if size < 100 else 1
        made = {
            "Bellief": Shared(induction(size, runs), runs),
            "Bellief, no weights": Shared(induction(size, runs, likelihood="mean-field"), runs),
        }
        return made | ({"floor": products(size)} if size == 264 else {})
    if workload == "posterior":
        return {"Bellief": posterior(size)}
    if workload == "dirichlet":
        return {"Bellief": draw_rows()}
    if workload == "stepping":
        return {"Bellief, with beliefs": stepping(size)}
    if workload == "offline":
        return {"Bellief": offline(size)}
    if workload == "full_chain quick":
        return {"Bellief": run("bbi-paper", size, 50)}
    return {}
