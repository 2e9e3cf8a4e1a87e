"""The sparse belief against the dense one, and iterative against direct solutions."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse as matrices
from scipy import stats

from bellief.beliefs import sparse as belief
from bellief.errors import UserError
from bellief.mdp import sparse as mdp
from bellief.offline import Transitions, compare, evaluate, improve
from bellief.evaluation.problem import prepare
from offline.conftest import ACTIONS, DRAWS, STATES, random_log


@pytest.mark.parametrize("prior", ["paper", "sparse"])
@pytest.mark.parametrize("ends", [0.0, 0.2])
@pytest.mark.parametrize("horizon", [None, 3])
def test_the_mean_mdp_is_that_of_the_dense_belief(policy, prior, ends, horizon):
    log = random_log(6, ends)
    data = Transitions.from_arrays(**{name: column[:12] for name, column in log.items()}, states=5, actions=3)
    wide = np.random.default_rng(0).dirichlet(np.ones(3), 5)
    dense, sparse = (
        evaluate(data, wide, 0.9, method="mean-mdp", prior=prior, horizon=horizon, belief=kind)
        for kind in ("dense", "sparse")
    )
    np.testing.assert_allclose(sparse.samples, dense.samples, rtol=1e-6)


def test_draws_of_cells_are_beta(check):
    """Each listed outcome, and what is left for all others, has the dense row's marginal law."""
    counts = np.array([5, 2])
    row = belief.SparseBelief(
        np.array([0, 2]), np.array([3, 7]), counts, np.array([98]), np.array([[7.0], [0.4], [1.0]]), 100
    )
    prior = prepare(Transitions.from_arrays([0], [0], [0.0], [0]), 0.9, prior="paper").prior
    generator = np.random.default_rng(0)
    draws = [belief.sample(generator, prior, row) for _ in range(3000)]
    total = counts.sum() + 0.5 * 100
    first = np.array([one.excess[0, 3] + one.spread[0] for one in draws])
    check.same_law(first, stats.beta(5.5, total - 5.5))
    check.same_law(98 * np.array([one.spread[0] for one in draws]), stats.beta(49, total - 49))
    for one in draws[:5]:
        assert one.excess.sum() + 100 * one.spread[0] == pytest.approx(1)
    # NormalGamma posterior mean reward: Student t.
    strength, shape = 8.0, 1 + 3.5
    rate = 1 + 0.5 + 7 * 0.4**2 / (2 * 8)
    scale = np.sqrt(rate / (shape * strength))
    check.same_law(np.array([one.reward[0] for one in draws]), stats.t(2 * shape, 0.4 * 7 / 8, scale))


def test_with_everything_seen_both_beliefs_agree(check, data, policy):
    """Where every outcome was observed nothing is elsewhere, and the two beliefs are one."""
    dense, sparse = (
        evaluate(data, policy, 0.9, draws=DRAWS if kind == "dense" else 600, belief=kind).samples
        for kind in ("dense", "sparse")
    )
    assert len(data.statistics().cell_count) == STATES * STATES * ACTIONS
    for state in range(STATES):
        check.same_laws(dense[:, state], sparse[:, state])


def test_support_makes_the_other_states_impossible(check):
    """A ring in which one can only stay or go on: the same as the dense belief would say with two outcomes a row."""
    generator = np.random.default_rng(2)
    states = 6
    state = generator.integers(0, states, 120)
    after = (state + (generator.random(120) < 0.5)) % states
    reward = generator.normal(state, 0.1)
    data = Transitions.from_arrays(state, [0] * 120, reward, after)
    ring = pd.DataFrame({"state": list(range(states)) * 2, "next_state": [*range(states), *range(1, states), 0]})
    matrix = matrices.csr_matrix(np.eye(states) + np.roll(np.eye(states), 1, axis=1))
    by_table, by_matrix = (
        evaluate(data, "uniform", 0.9, draws=200, prior="paper", support=form) for form in (ring, matrix)
    )
    np.testing.assert_allclose(by_table.samples, by_matrix.samples)
    counts = np.zeros((states, 2))
    np.add.at(counts, (state, (after != state).astype(int)), 1)
    draws = np.random.default_rng(9).beta(counts[:, 0] + 0.5, counts[:, 1] + 0.5, size=(4000, states))
    chain = draws[..., None] * np.eye(states) + (1 - draws[..., None]) * np.roll(np.eye(states), 1, axis=1)
    visits = counts.sum(-1)
    mean = np.bincount(state, reward) / (visits + 1)
    values = np.linalg.solve(np.eye(states) - 0.9 * chain, np.broadcast_to(mean[:, None], (4000, states, 1)))[..., 0]
    assert by_table.mean == pytest.approx(values.mean(0), rel=0.03)
    with pytest.raises(UserError, match=r"leads to 1, which the support leaves out"):
        evaluate(data, "uniform", 0.9, support=ring[ring.state == ring.next_state])
    with pytest.raises(UserError, match=r"row 1 has next_state '9'"):
        evaluate(data, "uniform", 0.9, support=pd.DataFrame({"state": [0], "next_state": [9]}))
    with pytest.raises(UserError, match=r"A support belongs to the sparse belief"):
        evaluate(data, "uniform", 0.9, support=ring, belief="dense")


@pytest.mark.parametrize("discount", [0.5, 0.99, 0.9999])
def test_iterative_solutions(discount):
    generator = np.random.default_rng(3)
    size = 60
    excess = matrices.random(size, size, 0.05, format="csr", random_state=4)
    spread = generator.random(size) * 0.2 / size
    total = np.asarray(excess.sum(-1)).ravel() + size * spread
    chain = mdp.Chain(matrices.diags(1 / total) @ excess, spread / total, generator.normal(size=size))
    full = chain.excess.toarray() + chain.spread[:, None]
    np.testing.assert_allclose(full.sum(-1), 1)
    exact = np.linalg.solve(np.eye(size) - discount * full, chain.reward)
    np.testing.assert_allclose(mdp.evaluate(chain, discount), exact, atol=2e-7 / (1 - discount))
    start = np.full(size, 1 / size)
    visits = np.linalg.solve((np.eye(size) - discount * full).T, start)
    np.testing.assert_allclose(mdp.occupancy(chain, discount, start), visits, atol=1e-7 / (1 - discount))
    twice = chain.reward + discount * full @ chain.reward
    np.testing.assert_allclose(mdp.evaluate_finite(chain, discount, 2), twice)


def test_a_chain_on_which_the_fast_method_breaks_down():
    """A permutation: BiCGSTAB may stagnate, and plain iteration has to finish the work."""
    size = 40
    ring = mdp.Chain(matrices.csr_matrix(np.roll(np.eye(size), 1, axis=1)), np.zeros(size), np.eye(size)[0])
    exact = np.linalg.solve(np.eye(size) - 0.95 * np.roll(np.eye(size), 1, axis=1), ring.reward)
    np.testing.assert_allclose(mdp.evaluate(ring, 0.95), exact, atol=1e-5)


def test_many_states_choose_the_sparse_belief(monkeypatch):
    states = 2500
    state = np.arange(states)
    data = Transitions.from_arrays(state, [0] * states, np.ones(states), (state + 1) % states)
    result = evaluate(data, "uniform", 0.9, draws=5)
    assert result.diagnostics["belief"] == "sparse"
    assert any("lumped together" in said for said in result.explain())
    monkeypatch.setattr("bellief.evaluation.checks._physical_memory", lambda: 10_000_000)
    with pytest.raises(UserError, match=r"1000000 draws of 2500 states' values .* GB of memory"):
        evaluate(data, "uniform", 0.9, draws=1_000_000)
    with pytest.raises(UserError, match=r"2500 states and 1 actions need about"):
        evaluate(data, "uniform", 0.9, belief="dense")


def test_identifiers_for_indices_are_told():
    with pytest.raises(UserError, match=r"2 of 500001 states"):
        evaluate(Transitions.from_arrays([0], [0], [1.0], [500_000]))


def test_the_sparse_belief_takes_rewards_by_pair_and_says_so(data):
    """Also in a comparison, which used to lack the warning about what was never tried."""
    ready = prepare(data, 0.9, belief="sparse")
    assert ready.prior.outcome_strength is None
    assert ready.sparse_belief() is ready.sparse_belief()
    few = Transitions.from_arrays(data.state[:3], [0, 0, 0], data.reward[:3], data.next_state[:3], actions=2)
    found = compare(few, ["always:0", "always:1"], 0.9, belief="sparse", simulations=0, draws=5)
    assert any("sparse belief" in said for said in found.warnings["always:1"])
    assert improve(few, 0.9, belief="sparse", draws=5, mdps=2).posterior.diagnostics["belief"] == "sparse"
