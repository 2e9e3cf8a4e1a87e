"""The one sampler of MDPs: against NumPy's own Dirichlet draws and JAX's dense belief, in threads and in pieces."""

import concurrent.futures
import multiprocessing

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from bellief.decisions import compare, improve
from bellief.errors import Notice, UserError
from bellief.evaluation import chains, evaluate, question_checks
from bellief.evaluation.dense_belief import belief_from, draw_mdps
from bellief.evaluation.problem import prepare
from bellief.evaluation.sampled import SampledMDPs
from bellief.logs import Transitions
from bellief.mdp import bellman
from evaluation.conftest import random_log


def random_transitions(states, actions, steps, seed, ends=0.05):
    generator = np.random.default_rng(seed)
    state, after = generator.integers(0, states, (2, steps))
    after = (state + after % 3) % states
    action = generator.integers(0, actions, steps)
    reward = generator.normal(after, 1.0)
    return Transitions.from_arrays(state, action, reward, after, generator.random(steps) < ends, states=states,
                                   actions=actions)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_draws_agree_in_law_with_the_dense_belief(check, seed):
    """Twenty logs, values of all states, against the JAX belief that evaluation had before."""
    data = random_transitions(6, 3, 25 + 10 * seed, seed)
    problem = prepare(data, 0.9, prior=("logged-0.1", "sparse", "paper")[seed % 3])
    policy = np.random.default_rng(seed).dirichlet(np.ones(3), 6)
    ours = SampledMDPs(problem, seed, 4000).values(policy[None])[:, 0]
    with jax.enable_x64(True):
        belief = belief_from(problem.log, problem.prior, problem.terminates)
        mdps = draw_mdps(jax.random.key(seed), 4000, belief, 0.9, problem.prior, 8)
        theirs = np.asarray(jax.vmap(bellman.evaluate_exact, in_axes=(0, None))(mdps, policy))
    for state in range(6):
        check.same_laws(ours[:, state], theirs[:, state])


@pytest.mark.parametrize("prior", ["logged", "paper"])
def test_a_question_does_not_change_the_mdps(prior):
    """More draws, other policies beside it, other batches: the values of a policy stay, bit for bit or nearly."""
    problem = prepare(random_transitions(8, 3, 60, 1), 0.95, prior=prior)
    policies = np.random.default_rng(0).dirichlet(np.ones(3), (2, 8))
    policies[1] = np.eye(3)[0]
    both = SampledMDPs(problem, 4, 50).values(policies)
    few = SampledMDPs(problem, 4, 7).values(policies[:1])
    np.testing.assert_allclose(few[:, 0], both[:7, 0], rtol=1e-12)
    explored = SampledMDPs(problem, 4, 7).explore(policies[0])
    np.testing.assert_allclose(explored.values, few[:, 0], rtol=1e-12)
    expected = (policies[0] * explored.action_values).sum(-1)
    np.testing.assert_allclose(expected, explored.values, rtol=1e-9)
    values, visits = SampledMDPs(problem, 4, 7).values_and_visits(policies[0])
    np.testing.assert_allclose(values, few[:, 0], rtol=1e-12)
    np.testing.assert_allclose(visits, explored.visits, rtol=1e-9)


def test_many_states_give_what_few_would(monkeypatch):
    """The sparse way and the tables are two ways to the same numbers."""
    problem = prepare(random_transitions(40, 2, 300, 3), 0.97)
    policy = np.full((1, 40, 2), 0.5)
    tables = SampledMDPs(problem, 0, 30).values(policy)
    near = 1e-6 * np.abs(tables).max()  # residuals are small beside all rewards together
    monkeypatch.setattr(chains, "DENSE_STATES", 10)
    monkeypatch.setattr(question_checks, "BATCH_NUMBERS", 3_000)
    np.testing.assert_allclose(SampledMDPs(problem, 0, 30).values(policy), tables, rtol=0, atol=near)
    monkeypatch.setattr(chains, "INVERSE_STATES", 10)
    np.testing.assert_allclose(SampledMDPs(problem, 0, 30).values(policy), tables, rtol=0, atol=near)


@pytest.mark.parametrize("prior", ["paper", "sparse", "logged-0.1"])
@pytest.mark.parametrize("ends", [0.0, 0.2])
@pytest.mark.parametrize("horizon", [None, 3])
def test_the_mean_mdp_is_that_of_the_dense_belief(prior, ends, horizon):
    from bellief.beliefs import outcomes, tabular

    log = random_log(6, ends)
    data = Transitions.from_arrays(**{name: column[:12] for name, column in log.items()}, states=5, actions=3)
    wide = np.random.default_rng(0).dirichlet(np.ones(3), 5)
    problem = prepare(data, 0.9, prior=prior, horizon=horizon)
    with jax.enable_x64(True):
        belief = belief_from(problem.log, problem.prior, problem.terminates)
        if prior == "logged-0.1":
            mdp = outcomes.mean(problem.prior.concentration(problem.outcomes), belief, 0.9)
        else:
            mdp = tabular.mean(problem.prior, belief, 0.9)
        exact = bellman.evaluate_exact(mdp, wide) if horizon is None else bellman.evaluate_finite(mdp, wide, horizon)
    found = evaluate(data, wide, 0.9, method="mean-mdp", prior=prior, horizon=horizon)
    np.testing.assert_allclose(found.samples[0], exact, rtol=1e-9)


def test_support_makes_the_other_states_impossible(check):
    """A ring in which one can only stay or go on: two outcomes a row."""
    generator = np.random.default_rng(2)
    states = 6
    state = generator.integers(0, states, 120)
    after = (state + (generator.random(120) < 0.5)) % states
    reward = generator.normal(state, 0.1)
    data = Transitions.from_arrays(state, [0] * 120, reward, after)
    ring = pd.DataFrame({"state": list(range(states)) * 2, "next_state": [*range(states), *range(1, states), 0]})
    matrix = sparse.csr_matrix(np.eye(states) + np.roll(np.eye(states), 1, axis=1))
    by_table, by_matrix = (
        evaluate(data, "uniform", 0.9, draws=2000, prior="paper", support=form) for form in (ring, matrix)
    )
    np.testing.assert_allclose(by_table.samples, by_matrix.samples)
    counts = np.zeros((states, 2))
    np.add.at(counts, (state, (after != state).astype(int)), 1)
    draws = np.random.default_rng(9).beta(counts[:, 0] + 0.5, counts[:, 1] + 0.5, size=(4000, states))
    chain = draws[..., None] * np.eye(states) + (1 - draws[..., None]) * np.roll(np.eye(states), 1, axis=1)
    visits = counts.sum(-1)
    mean = np.bincount(state, reward) / (visits + 1)
    squares = np.bincount(state, reward**2)
    rate = 1 + (squares - (visits + 1) * mean**2) / 2
    shape = 1 + visits / 2
    noise = np.random.default_rng(3)
    drawn = mean + noise.standard_normal((4000, states)) / np.sqrt(
        (visits + 1) * noise.standard_gamma(shape, (4000, states)) / rate
    )
    values = np.linalg.solve(np.eye(states) - 0.9 * chain, drawn[..., None])[..., 0]
    for state in range(states):
        check.same_laws(by_table.samples[:, state], values[:, state])
    with pytest.raises(UserError, match=r"leads to 1, which the support leaves out"):
        evaluate(data, "uniform", 0.9, support=ring[ring.state == ring.next_state])
    with pytest.raises(UserError, match=r"row 1 has next_state '9'"):
        evaluate(data, "uniform", 0.9, support=pd.DataFrame({"state": [0], "next_state": [9]}))


def test_many_states():
    states = 2500
    state = np.arange(states)
    data = Transitions.from_arrays(state, [0] * states, np.ones(states), (state + 1) % states)
    result = evaluate(data, "uniform", 0.9, draws=5)
    # Rewards were seen once each, so single states are uncertain; the average over 2,500 of them is not.
    assert result.samples.mean() == pytest.approx(10, rel=0.05)


def test_draws_beyond_memory_are_refused(monkeypatch):
    data = random_transitions(50, 2, 200, 0)
    monkeypatch.setattr("bellief.evaluation.question_checks._physical_memory", lambda: 10_000_000)
    with pytest.raises(UserError, match=r"1000000 draws of 50 states' values .* GB of memory"):
        evaluate(data, "uniform", 0.9, draws=1_000_000)


def test_much_memory_is_announced(monkeypatch):
    data = random_transitions(50, 2, 200, 0)
    monkeypatch.setattr(question_checks, "MUCH_MEMORY", 1e5)
    with pytest.warns(Notice, match=r"30 draws of 50 states' values take about 0.0\d+ GB of memory"):
        evaluate(data, "uniform", 0.9, draws=30)


def test_batches_of_large_mdps_are_bounded():
    assert [question_checks.batch_draws(numbers) for numbers in (1_000, 2_000_000, 5_000_000, 10**8)] == [1000, 4, 2, 1]


def test_identifiers_for_indices_are_told():
    with pytest.raises(UserError, match=r"2 of 500001 states"):
        evaluate(Transitions.from_arrays([0], [0], [1.0], [500_000]))


def test_the_option_belief_says_that_it_is_gone(data):
    for ask in (
        lambda: evaluate(data, draws=5, belief="dense"),
        lambda: compare(data, ["uniform", "behaviour"], draws=5, simulations=0, belief="sparse"),
        lambda: improve(data, draws=5, mdps=5, belief="auto"),
    ):
        with pytest.warns(FutureWarning, match="The option belief has no effect any more"):
            ask()
    with pytest.raises(UserError, match="no belief 'huge'"):
        evaluate(data, belief="huge")


def _answer(seed, states):
    data = random_transitions(states, 2, 12 * states, seed)
    return evaluate(data, "uniform", 0.95, draws=40, seed=seed).start_samples


@pytest.mark.parametrize(
    ("states", "times"),
    [(25, 3), (50, 2), (200, 1), *(pytest.param(states, 20, marks=pytest.mark.slow) for states in (25, 50, 200))],
)
def test_threads(states, times):
    """Eight threads with logs of their own get what they would get alone; a hang fails by the time limit."""
    alone = [_answer(seed, states) for seed in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(times):
            answers = list(pool.map(_answer, range(8), [states] * 8, timeout=600))
            for one, other in zip(answers, alone, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_processes(method):
    alone = [_answer(seed, 50) for seed in range(2)]
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        answers = list(pool.map(_answer, range(2), [50] * 2, timeout=120))
    for one, other in zip(answers, alone, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("horizon", [None, 7])
def test_an_offset_of_all_rewards_changes_nothing_else(horizon):
    """Rewards around 10^9 under a discount of 0.999999: values of 10^15, whose differences must survive."""
    generator = np.random.default_rng(1)
    state, after, action = generator.integers(0, 4, 400), generator.integers(0, 4, 400), generator.integers(0, 2, 400)
    reward = generator.normal(state, 1.0)
    plain, offset = (
        evaluate(Transitions.from_arrays(state, action, reward + shift, after), discount=0.999999, horizon=horizon)
        for shift in (0.0, 1e9)
    )
    np.testing.assert_allclose(offset.sd, plain.sd, rtol=1e-3)
    ours, theirs = offset.start_summary(), plain.start_summary()
    np.testing.assert_allclose(ours["sd"], theirs["sd"], rtol=1e-3)
    length = 1 / (1 - 0.999999) if horizon is None else sum(0.999999**step for step in range(horizon))
    gap = offset.samples - 1e9 * length - plain.samples
    assert np.abs(gap).max() < 1e-2 * plain.sd.min()


@pytest.mark.parametrize("method", ["moments", "bootstrap", "monte-carlo", "mean-mdp"])
@pytest.mark.parametrize("discount", [0.9, 0.999999])
def test_an_offset_changes_nothing_else_for_other_methods(method, discount):
    generator = np.random.default_rng(2)
    state, after, action = generator.integers(0, 4, 400), generator.integers(0, 4, 400), generator.integers(0, 2, 400)
    reward = generator.integers(0, 16, 400) / 8  # exact, with the offset too
    plain, offset = (
        evaluate(Transitions.from_arrays(state, action, reward + shift, after), discount=discount, method=method)
        for shift in (0.0, 1e9)
    )
    np.testing.assert_allclose(offset.sd, plain.sd, rtol=1e-3)
    ours, theirs = offset.start_summary(), plain.start_summary()
    np.testing.assert_allclose(ours["sd"], theirs["sd"], rtol=1e-3)
    # Within a hundredth of what the log leaves open; 1e15 itself has eighths.
    gap = ours["mean"] - 1e9 / (1 - discount) - theirs["mean"]
    assert abs(gap) < (1e-2 * theirs["sd"] if theirs["sd"] else 1e-3 * theirs["mean"])


@pytest.mark.parametrize("size", [1e-200, 1e-71, 1e66, 1e99])
@pytest.mark.parametrize("method", ["joint", "bootstrap"])
def test_rewards_whose_powers_are_no_numbers_are_refused(size, method):
    with pytest.raises(UserError, match="multiply all rewards" if size < 1 else "divide all rewards"):
        evaluate(Transitions.from_arrays([0, 1], [0, 0], [size, 0.5 * size], [1, 0]), method=method)


@pytest.mark.parametrize("size", [1e-70, 1e-30, 1e12, 1e65])
@pytest.mark.parametrize("method", ["joint", "moments", "bootstrap"])
def test_values_scale_with_rewards(size, method):
    rewards = np.array([1.0, 0.0, 0.5, 0.0, 0.75])
    one, other = (
        evaluate(Transitions.from_arrays([0, 1] * 2 + [0], [0] * 5, unit * rewards, [1, 0] * 2 + [1]), method=method)
        for unit in (1.0, size)
    )
    for name, value in one.start_summary().items():
        assert other.start_summary()[name] == pytest.approx(size * value, rel=1e-6)
