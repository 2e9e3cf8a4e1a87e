import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief.mdp import utilities
from bellief.mdp.tabular_mdp import TabularMDP

SAMPLES = 20_000
POLICY = np.array([[0.3, 0.7], [1.0, 0.0], [0.5, 0.5]], np.float32)
LATER = np.array([1.0, 20.0, 300.0], np.float32)
DISCOUNT = 0.5


@pytest.fixture(scope="module")
def mdp():
    termination = np.array([[0.0, 0.4], [0.2, 0.0], [1.0, 0.0]])
    rows = np.array([[[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0], [0, 1, 0]], [[0.2, 0.3, 0.5], [0, 0, 1]]])
    return TabularMDP(
        transition=jnp.asarray(rows * (1 - termination)[..., None], jnp.float32),
        reward=jnp.asarray([[1000.0, 2000.0], [3000.0, 4000.0], [5000.0, 6000.0]]),
        termination=jnp.asarray(termination, jnp.float32),
        start=jnp.full(3, 1 / 3),
        discount=jnp.asarray(DISCOUNT),
    )


@pytest.fixture(scope="module")
def law(mdp):
    """Every value that a utility of each state can take, with its probability, by enumeration."""
    table = []
    for state in range(3):
        outcomes = {}
        for action in range(2):
            chances = [*np.asarray(mdp.transition[state, action]), float(mdp.termination[state, action])]
            for chance, tail in zip(chances, [*LATER, 0.0], strict=True):
                value = float(mdp.reward[state, action]) + DISCOUNT * float(tail)
                outcomes[value] = outcomes.get(value, 0.0) + float(POLICY[state, action]) * chance
        table.append(outcomes)
    return table


@pytest.fixture(scope="module")
def draw(mdp):
    return jax.jit(lambda key: utilities.sampled(key, mdp, POLICY, jnp.tile(LATER, (SAMPLES, 1))))


@pytest.mark.usefixtures("double")
def test_expected_against_loops():
    generator = np.random.default_rng(0)
    transition, reward, later = generator.random((4, 4)), generator.normal(size=4), generator.normal(size=(3, 4))
    loops = [
        [reward[s] + 0.7 * sum(transition[s, t] * later[m, t] for t in range(4)) for s in range(4)] for m in range(3)
    ]
    np.testing.assert_allclose(utilities.expected(transition, reward, jnp.asarray(0.7), later), loops, rtol=1e-12)


def test_sampled_takes_every_possible_value_as_often_as_it_should(key, check, draw, law):
    samples = np.asarray(draw(key))
    for state, outcomes in enumerate(law):
        values, counts = np.unique(samples[:, state], return_counts=True)
        possible = {value for value, chance in outcomes.items() if chance > 0}
        assert set(values.tolist()) == possible
        seen = dict(zip(values.tolist(), counts, strict=True))
        check.frequencies([seen.get(value, 0) for value in outcomes], list(outcomes.values()))


def test_sampled_has_the_expected_mean(key, check, mdp, draw):
    transition, reward = np.einsum("sa,sat->st", POLICY, mdp.transition), (POLICY * mdp.reward).sum(1)
    expected = utilities.expected(jnp.asarray(transition), jnp.asarray(reward), mdp.discount, LATER[None])[0]
    check.mean(draw(key), expected)


def test_sampled_uses_the_tail_of_its_own_sample(key, mdp):
    # Sample m carries the tails m, so a utility minus its reward says which sample the tail came from.
    later = jnp.tile(jnp.arange(50.0)[:, None], (1, 3))
    certain = mdp._replace(
        reward=jnp.zeros((3, 2)), transition=jnp.full((3, 2, 3), 1 / 3), termination=jnp.zeros((3, 2))
    )
    np.testing.assert_allclose(utilities.sampled(key, certain, POLICY, later), DISCOUNT * later)


def test_after_an_end_there_is_nothing(key, mdp):
    ended = mdp._replace(transition=jnp.zeros((3, 2, 3)), termination=jnp.ones((3, 2)))
    only_first = jnp.asarray([[1.0, 0.0]] * 3)
    samples = utilities.sampled(key, ended, only_first, jnp.full((100, 3), 7.0))
    np.testing.assert_array_equal(samples, np.broadcast_to(mdp.reward[:, 0], (100, 3)))
