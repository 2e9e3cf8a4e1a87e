"""BAMCP, BEB and RLSVI against cases worked out by hand, or by enumeration."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import UserError
from bellief.agents import bamcp, beb, rlsvi
from bellief.beliefs.tabular import Prior
from bellief.types import Spaces, Transition

SPACES = Spaces(2, 2, False, None, None)


def after(agent, config, steps, spaces=SPACES):
    state = agent.init(jax.random.key(0), config, spaces)
    for step in steps:
        state = agent.update(config, state, Transition(*map(jnp.asarray, step)))
    return state


# Rewards all but known, and only in state 1.
KNOWN = Prior(dirichlet=0.5, reward_strength=1e-6)
STEPS = [
    (0, 0, 0.0, 0, False),
    (0, 0, 0.0, 0, False),
    (1, 0, 1.0, 0, False),
    (1, 1, 1.0, 0, False),
    (0, 1, 0.0, 0, False),
]


def bayes_adaptive(counts, state, depth, discount):
    """Exact values of the actions in a belief tree: every outcome updates the counts."""
    values = []
    for action in range(2):
        alpha = counts[state, action]
        total = float(state == 1)
        if depth > 1:
            for following in range(2):
                learned = counts.copy()
                learned[state, action, following] += 1
                best = max(bayes_adaptive(learned, following, depth - 1, discount))
                total += discount * alpha[following] / alpha.sum() * best
        values.append(total)
    return values


def test_bamcp_finds_the_bayes_adaptive_values():
    config = bamcp.Config(discount=0.9, simulations=20_000, depth=4, exploration=1.0, prior=KNOWN)
    state = after(bamcp, config, STEPS)
    counts = 0.5 + np.asarray(state.belief.counts, dtype=float)
    exact = np.array(bayes_adaptive(counts, 0, 4, 0.9))
    tree = jax.jit(functools.partial(bamcp.search, config=config, observation=0))(jax.random.key(1), state=state)
    best = int(exact.argmax())
    # UCT approaches the optimum from below, because it goes on exploring: within 3% after 20,000 simulations.
    assert float(tree.values[0, best]) == pytest.approx(exact[best], rel=0.03)
    assert int(jnp.argmax(tree.values[0])) == best
    assert int(tree.visits[0].sum()) == 20_000


def test_bamcp_nodes_are_histories():
    config = bamcp.Config(simulations=50, depth=2, prior=KNOWN)
    tree = bamcp.search(jax.random.key(0), config, after(bamcp, config, STEPS), 0)
    children = np.asarray(tree.child[:-1])
    used = children[children > 0]
    assert len(set(used.tolist())) == len(used) == int(tree.nodes) - 1  # every node has one parent
    # Depth two: the root and its four possible children, and what these saw in their second step has no step after it.
    assert children[0].min() > 0
    visits = np.asarray(tree.visits)
    np.testing.assert_array_equal(visits[children[0].ravel()].sum(), 50 - 4)


def test_beb_by_hand():
    """One state that ends the episode: values are reward and bonus."""
    spaces = Spaces(1, 2, True, None, None)
    prior = Prior(dirichlet=0.5, reward_strength=1e-6)
    config = beb.Config(bonus=4.0, prior=prior, tolerance=1e-6, discount=0.5)
    end = [(0, 0, 1.0, 0, True)] * 2 + [(0, 1, 0.5, 0, True)] * 6
    state, info = beb.plan(jax.random.key(0), config, spaces, after(beb, config, end, spaces))
    # Action 0: 1 + 4 / (1 + 1 + 2) = 2, and it goes on with 0.5 / 3; action 1: 0.5 + 4 / (1 + 1 + 6) = 1.
    assert state.actions.tolist() == [0]
    assert float(info.value_mean[0]) == pytest.approx(2 / (1 - 0.5 * 0.5 / 3), rel=1e-3)


def test_rlsvi_by_hand():
    spaces = Spaces(2, 1, True, None, None)
    config = rlsvi.Config(noise=0.2, prior_sd=0.4, horizon=50, discount=0.5)  # a ridge of a quarter
    steps = [(0, 0, 1.0, 1, False)] * 3 + [(1, 0, 2.0, 1, True)]
    plan = jax.jit(jax.vmap(lambda key, state: rlsvi.plan(key, config, spaces, state)[1].value_mean, in_axes=(0, None)))
    drawn = np.asarray(
        plan(jax.random.split(jax.random.key(0), 4000), after(rlsvi, config, steps, spaces)), dtype=float
    )
    # State 1: 2 / 1.25, sd 0.2 / sqrt(1.25). State 0: (1 + its half) * 3 / 3.25, sd from both.
    second, spread = 2 / 1.25, 0.2 / np.sqrt(1.25)
    first = (1 + 0.5 * second) * 3 / 3.25
    total = np.sqrt(0.2**2 / 3.25 + (0.5 * 3 / 3.25 * spread) ** 2)
    error = 5 / np.sqrt(4000)
    assert abs(drawn[:, 1].mean() - second) < error * spread
    assert abs(drawn[:, 0].mean() - first) < error * total
    np.testing.assert_allclose(drawn.std(0), [total, spread], rtol=5 / np.sqrt(8000))


@pytest.mark.parametrize(
    ("agent", "settings"),
    [
        (bamcp, {"simulations": 0}),
        (bamcp, {"epsilon": 2.0}),
        (beb, {"bonus": -1.0}),
        (rlsvi, {"noise": 0.0}),
        (rlsvi, {"horizon": 0}),
    ],
)
def test_wrong_settings_are_told(agent, settings):
    with pytest.raises(UserError):
        agent.Config(**settings)
