import itertools

import jax
import numpy as np
import pytest

from bellief.envs import make
from bellief.mdp import bellman
from bellief.mdp.tabular_mdp import TabularMDP

SEEDS = (0, 1, 2)


def deterministic(actions, count):
    return np.eye(count)[np.asarray(actions)]


def chain(transition, reward, start, termination=None):
    """A Markov chain as an MDP with one action."""
    transition = np.asarray(transition, float)
    termination = np.zeros(len(transition)) if termination is None else np.asarray(termination, float)
    return TabularMDP(
        transition[:, None], np.asarray(reward, float)[:, None], termination[:, None], np.asarray(start, float), 0.9
    )


def average(mdp):
    return bellman.long_run_average(mdp, np.ones((len(mdp.start), 1)))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("seed", SEEDS)
def test_exact_evaluation_solves_the_linear_system(oracle, seed):
    mdp, policy = oracle.random_mdp(seed, 5, 3, ends=0.3), oracle.random_policy(seed, 5, 3)
    np.testing.assert_allclose(bellman.evaluate_exact(mdp, policy), oracle.exact_values(mdp, policy), rtol=1e-10)


def test_exact_evaluation_in_single_precision(oracle):
    mdp, policy = oracle.random_mdp(3, 5, 3, discount=0.99), oracle.random_policy(3, 5, 3)
    single = jax.tree.map(lambda field: np.asarray(field, np.float32), mdp)
    values = bellman.evaluate_exact(single, policy.astype(np.float32))
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, oracle.exact_values(mdp, policy), rtol=1e-3)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("horizon", [0, 1, 7])
def test_finite_evaluation_against_a_loop(oracle, seed, horizon):
    mdp, policy = oracle.random_mdp(seed, 4, 2, ends=0.3), oracle.random_policy(seed, 4, 2)
    final = np.random.default_rng(seed).normal(size=4)
    transition, reward = oracle.chain_of(mdp, policy)
    from_zero, from_final = np.zeros(4), final
    for _ in range(horizon):
        from_zero = reward + mdp.discount * transition @ from_zero
        from_final = reward + mdp.discount * transition @ from_final
    np.testing.assert_allclose(bellman.evaluate_finite(mdp, policy, horizon), from_zero, atol=1e-12)
    np.testing.assert_allclose(bellman.evaluate_finite(mdp, policy, horizon, final), from_final, atol=1e-12)


@pytest.mark.usefixtures("double")
def test_backup_against_loops(oracle):
    mdp, policy = oracle.random_mdp(4, 4, 3, ends=0.5), oracle.random_policy(4, 4, 3)
    values = np.arange(4.0)
    transition, reward = oracle.chain_of(mdp, policy)
    np.testing.assert_allclose(bellman.backup(mdp, policy, values), reward + 0.9 * transition @ values, rtol=1e-12)
    quality = [
        [mdp.reward[s, a] + 0.9 * sum(mdp.transition[s, a, t] * values[t] for t in range(4)) for a in range(3)]
        for s in range(4)
    ]
    np.testing.assert_allclose(bellman.action_values(mdp, values), quality, rtol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("seed", SEEDS)
def test_iterations_find_the_best_of_all_policies(oracle, seed):
    mdp = oracle.random_mdp(seed, 4, 3, ends=0.3)
    policies = list(itertools.product(range(3), repeat=4))
    values = np.array([oracle.exact_values(mdp, deterministic(actions, 3)) for actions in policies])
    best = values.sum(1).argmax()
    assert (values[best] >= values.max(0) - 1e-9).all(), "one policy is best from every state"
    for solution in (bellman.value_iteration(mdp, tolerance=1e-13), bellman.policy_iteration(mdp)):
        np.testing.assert_allclose(solution.values, values[best], rtol=1e-10)
        np.testing.assert_array_equal(solution.actions, policies[best])


@pytest.mark.usefixtures("double")
def test_value_iteration_stops_where_it_is_told(oracle):
    mdp = oracle.random_mdp(5, 3, 2)
    assert bellman.value_iteration(mdp, tolerance=0.0, max_iterations=7).iterations == 7
    loose, tight = (bellman.value_iteration(mdp, tolerance=tolerance) for tolerance in (1e-2, 1e-8))
    assert loose.iterations < tight.iterations
    # A last change of at most the tolerance leaves an error of at most tolerance * discount / (1 - discount).
    np.testing.assert_allclose(loose.values, bellman.policy_iteration(mdp).values, atol=1e-2 * 0.9 / 0.1)
    assert np.abs(loose.values - tight.values).max() > 1e-4


def test_policy_iteration_does_not_cycle_between_equal_actions(oracle):
    mdp = oracle.random_mdp(6, 6, 2, discount=0.99)
    twice = mdp._replace(
        transition=np.concatenate([mdp.transition, mdp.transition], axis=1),
        reward=np.concatenate([mdp.reward, mdp.reward], axis=1),
        termination=np.concatenate([mdp.termination, mdp.termination], axis=1),
    )
    single = jax.tree.map(lambda field: np.asarray(field, np.float32), twice)
    solution = bellman.policy_iteration(single)
    assert solution.iterations < 20
    best = max((oracle.exact_values(mdp, deterministic(a, 2)) for a in itertools.product(range(2), repeat=6)), key=sum)
    np.testing.assert_allclose(solution.values, best, rtol=1e-3)


@pytest.mark.parametrize("solve", [bellman.value_iteration, bellman.policy_iteration])
def test_an_environment_is_solved_as_it_comes(solve):
    # `Environment.mdp` holds NumPy arrays in float64; single precision is what JAX uses unless told otherwise.
    mdp = make("nchain").mdp(0.9)
    np.testing.assert_array_equal(solve(mdp).actions, np.ones(5))


def best_values(oracle, mdp):
    """Values and actions of the best of all policies, by brute force."""
    states, actions = mdp.reward.shape
    policies = list(itertools.product(range(actions), repeat=states))
    values = np.array([oracle.exact_values(mdp, deterministic(choice, actions)) for choice in policies])
    best = values.sum(1).argmax()
    return values[best], policies[best]


@pytest.fixture(scope="module")
def modified():
    """Modified policy iteration, compiled once for all MDPs of one size; every argument but two is traced."""
    return jax.jit(bellman.modified_policy_iteration, static_argnames=("sweeps", "max_iterations"))


def slow_mdp(seed, ends, discount):
    """Almost deterministic rows, so that it takes many sweeps for values to spread; episodes end rarely."""
    generator = np.random.default_rng(seed)
    rows = generator.dirichlet(np.full(4, 0.1), (4, 3))
    termination = ends * generator.random((4, 3))
    return TabularMDP(
        rows * (1 - termination)[..., None], generator.normal(size=(4, 3)), termination, np.ones(4) / 4, discount
    )


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("ends", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("discount", [0.6, 0.99])
def test_modified_policy_iteration_keeps_to_its_tolerance(oracle, modified, ends, discount):
    """From any first guess, the values are as close to the best of all policies as was asked for."""
    for seed in range(3):
        mdp = slow_mdp(seed, ends, discount)
        values, actions = best_values(oracle, mdp)
        assert bellman.policy_iteration(mdp).actions.tolist() == list(actions)
        far = np.random.default_rng(seed).normal(0, 1000, 4)
        for first in (np.zeros(4), far, values + 500.0, -values):
            iterations = []
            for tolerance in (10.0, 1e-1, 1e-6):
                solution = modified(mdp, first, tolerance)
                # Bounds that are a shift of one another leave half of their distance to the middle.
                reach = tolerance if ends else tolerance / 2
                assert np.abs(solution.values - values).max() <= reach + 1e-9
                iterations.append(int(solution.iterations))
            assert iterations == sorted(iterations)
            np.testing.assert_array_equal(solution.actions, actions)


@pytest.mark.usefixtures("double")
def test_modified_policy_iteration_without_discount(oracle, modified):
    for seed in range(3):
        mdp = oracle.random_mdp(seed, 4, 3, ends=0.5, discount=1.0)
        values, actions = best_values(oracle, mdp)
        for first in (np.zeros(4), np.full(4, 100.0)):
            solution = modified(mdp, first, 1e-10)
            np.testing.assert_allclose(solution.values, values, rtol=1e-8)
            np.testing.assert_array_equal(solution.actions, actions)


@pytest.mark.usefixtures("double")
def test_modified_policy_iteration_from_the_solution(modified):
    mdp = slow_mdp(7, 0.05, 0.99)
    cold = modified(mdp, np.zeros(4), 1e-8)
    warm = modified(mdp, cold.values, 1e-6)
    assert int(warm.iterations) == 1 < int(cold.iterations)
    np.testing.assert_allclose(warm.values, cold.values, atol=1e-7)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("ends", [0.0, 0.5])
def test_modified_policy_iteration_returns_the_middle_of_its_bounds(modified, ends):
    """So loose a tolerance is met at once, by bounds from the largest and the smallest first change."""
    mdp = slow_mdp(6, ends, 0.8)
    first = np.array([3.0, -1.0, 0.5, 2.0])
    sweep = (mdp.reward + 0.8 * mdp.transition @ first).max(1)
    change = sweep - first
    middle = sweep if ends else sweep + 4 * (change.min() + change.max()) / 2
    solution = modified(mdp, first, 1e6)
    assert int(solution.iterations) == 1
    np.testing.assert_allclose(solution.values, middle, rtol=1e-12)


@pytest.mark.usefixtures("double")
def test_modified_policy_iteration_stops_where_it_is_told():
    mdp = slow_mdp(8, 0.0, 0.99)
    solution = bellman.modified_policy_iteration(mdp, tolerance=0.0, sweeps=2, max_iterations=3)
    assert int(solution.iterations) == 3


def test_modified_policy_iteration_in_single_precision():
    mdp = make("nchain").mdp(0.99)
    # Values reach 400, of which single precision keeps about five digits after the bounds' factor of 99.
    solution = bellman.modified_policy_iteration(mdp, tolerance=0.05)
    assert solution.values.dtype == np.float32
    assert int(solution.iterations) < 20
    policy = np.eye(2)[[1] * 5]
    exact = np.linalg.solve(np.eye(5) - 0.99 * np.einsum("sa,sat->st", policy, mdp.transition), mdp.reward[:, 1])
    np.testing.assert_array_equal(solution.actions, 1)
    np.testing.assert_allclose(solution.values, exact, atol=0.05)


@pytest.mark.usefixtures("double")
def test_backward_induction_against_recursion(oracle):
    mdp = oracle.random_mdp(7, 3, 3, ends=0.4)

    def quality(state, action, steps):
        later = sum(mdp.transition[state, action, after] * best(after, steps - 1)[0] for after in range(3))
        return mdp.reward[state, action] + mdp.discount * later

    def best(state, steps):
        if steps == 0:
            return 0.0, None
        return max((quality(state, action, steps), action) for action in range(3))

    values, actions = bellman.backward_induction(mdp, 4)
    for row, steps in enumerate((4, 3, 2, 1)):
        expected = [best(state, steps) for state in range(3)]
        np.testing.assert_allclose(values[row], [value for value, _ in expected], rtol=1e-12)
        np.testing.assert_array_equal(actions[row], [action for _, action in expected])


@pytest.mark.parametrize("seed", SEEDS)
def test_average_by_the_stationary_distribution(oracle, seed):
    mdp, policy = oracle.random_mdp(seed, 5, 2), oracle.random_policy(seed, 5, 2)
    transition, reward = oracle.chain_of(mdp, policy)
    eigenvalues, vectors = np.linalg.eig(transition.T)
    stationary = np.real(vectors[:, np.argmin(np.abs(eigenvalues - 1))])
    stationary /= stationary.sum()
    assert bellman.long_run_average(mdp, policy) == pytest.approx(stationary @ reward, rel=1e-9)


def test_average_of_a_periodic_chain():
    cycle = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert average(chain(cycle, [1.0, 2.0, 6.0], [1, 0, 0])) == pytest.approx(3.0, rel=1e-12)


def test_average_of_a_slowly_mixing_chain():
    leak = 1e-9
    slow = [[1 - leak, leak], [3 * leak, 1 - 3 * leak]]
    assert average(chain(slow, [0.0, 4.0], [1, 0])) == pytest.approx(1.0, rel=1e-6)


def test_average_depends_on_the_start_where_the_chain_splits():
    # State 1 absorbs and pays 1; states 2 and 3 alternate and pay 10 on average; state 0 leads to them 1 : 3.
    split = [[0.2, 0.2, 0.6, 0.0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
    reward = [100.0, 1.0, 5.0, 15.0]
    assert average(chain(split, reward, [0, 1, 0, 0])) == pytest.approx(1.0)
    assert average(chain(split, reward, [0, 0, 1, 0])) == pytest.approx(10.0)
    assert average(chain(split, reward, [1, 0, 0, 0])) == pytest.approx(0.25 * 1 + 0.75 * 10)
    assert average(chain(split, reward, [0.5, 0.5, 0, 0])) == pytest.approx(0.5 * 7.75 + 0.5)


def test_average_over_restarted_episodes(oracle):
    mdp, policy = oracle.random_mdp(8, 4, 2, ends=0.5), oracle.random_policy(8, 4, 2)
    transition, reward = oracle.chain_of(mdp, policy)
    # Renewal: expected reward of an episode divided by its expected length.
    visits = mdp.start @ np.linalg.inv(np.eye(4) - transition)
    assert bellman.long_run_average(mdp, policy) == pytest.approx(visits @ reward / visits.sum(), rel=1e-9)
