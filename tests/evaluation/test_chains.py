"""Batched chains against one linear solve each."""

import numpy as np
import pytest

from bellief.evaluation import chains, sparse_chains


def random_batch(generator, number, states, ends=0.0):
    """Cells shared by all draws and entries of their own; rows sum to one less the chance of an end."""
    width = 4
    state = np.repeat(np.arange(states), width)
    following = generator.integers(0, states, states * width)
    shares = generator.dirichlet(np.ones(width + 1), (number, states)) * (1 - ends)
    cells = chains.Cells.of(state, following, shares[..., :width].reshape(number, -1))
    draw, own = np.divmod(np.arange(number * states), states)
    entries = chains.Entries(draw, own, generator.integers(0, states, number * states), shares[..., width].ravel())
    return chains.Batch(cells, entries, generator.normal(size=(number, states)))


def exact(batch, discount, constant, transposed=False):
    table = batch.table()
    table = np.swapaxes(table, 1, 2) if transposed else table
    return np.stack([np.linalg.solve(np.eye(len(c)) - discount * p, c) for p, c in zip(table, constant, strict=True)])


@pytest.mark.parametrize("states", [7, chains.DENSE_STATES + 30])
@pytest.mark.parametrize(("discount", "ends"), [(0.5, 0.0), (0.99, 0.0), (0.9999, 0.0), (1.0, 0.1)])
@pytest.mark.parametrize("guided", [False, True])
def test_values_and_visits(states, discount, ends, guided):
    generator = np.random.default_rng(states)
    batch = random_batch(generator, 5, states, ends)
    np.testing.assert_allclose(batch.table().sum(-1), 1 - ends)
    guide = back = None
    start = np.full(states, 1 / states)
    if guided:
        inverse = np.linalg.inv(np.eye(states) - discount * batch.table().mean(0))
        guide, back = chains.Guide(inverse @ batch.reward[0], inverse), chains.Guide(inverse.T @ start, inverse)
    values = exact(batch, discount, batch.reward)
    np.testing.assert_allclose(chains.values(batch, discount, None, guide), values, atol=1e-6 * np.abs(values).max())
    visits = exact(batch, discount, np.tile(start, (5, 1)), transposed=True)
    found = chains.visits(batch, discount, start, back)
    np.testing.assert_allclose(found, visits, atol=1e-6 * np.abs(visits).max())


@pytest.mark.parametrize("states", [7, chains.DENSE_STATES + 30])
def test_finite_horizons(states):
    batch = random_batch(np.random.default_rng(0), 3, states)
    table = batch.table()
    expected = np.zeros((3, states))
    for _ in range(6):
        expected = batch.reward + 0.9 * np.einsum("nst,nt->ns", table, expected)
    np.testing.assert_allclose(chains.values(batch, 0.9, 6), expected)


def test_both_forms_hold_the_same_numbers():
    batch = random_batch(np.random.default_rng(1), 4, 9)
    blocks = sparse_chains.matrix_of(batch).toarray().reshape(4, 9, 4, 9)
    for draw in range(4):
        np.testing.assert_allclose(blocks[draw, :, draw], batch.table()[draw])


def test_a_chain_that_iteration_does_not_solve(monkeypatch):
    """A permutation is the classic case in which Krylov methods stagnate; the direct method takes over."""
    states = chains.DENSE_STATES + 50
    monkeypatch.setattr(sparse_chains, "RESTARTS", 1)
    monkeypatch.setattr(sparse_chains, "KRYLOV_STEPS", 5)
    state = np.arange(states)
    cells = chains.Cells.of(state, (state + 1) % states, np.ones((1, states)))
    nothing = chains.Entries(*3 * [np.zeros(0, int)], np.zeros(0))
    batch = chains.Batch(cells, nothing, np.eye(states)[[0]])
    expected = exact(batch, 0.999, batch.reward)
    np.testing.assert_allclose(chains.values(batch, 0.999), expected, rtol=1e-9)


@pytest.mark.parametrize("states", [7, chains.DENSE_STATES + 30])
def test_a_chain_that_never_ends_under_discount_one(states):
    """The first draw goes round for ever and earns; the second ends at once. The first is huge, the second exact."""
    state = np.arange(states)
    cells = chains.Cells.of(state, (state + 1) % states, np.stack([np.ones(states), np.zeros(states)]))
    nothing = chains.Entries(*3 * [np.zeros(0, int)], np.zeros(0))
    batch = chains.Batch(cells, nothing, np.ones((2, states)))
    values = chains.values(batch, 1.0)
    assert (values[0] > 1e6).all()
    np.testing.assert_allclose(values[1], 1, rtol=1e-6)


def test_a_policy_that_never_ends_is_told():
    from bellief import UserError, compare, evaluate, improve
    from bellief.logs import Transitions

    # State 1 leads back to itself whenever action 0 is taken; only action 1 was seen to end an episode.
    log = Transitions.from_arrays(
        [0, 1, 1, 1, 0, 1], [0, 0, 0, 1, 0, 1], [0.0, 1.0, 1.0, 0.0, 0.0, 0.0], [1, 1, 1, 0, 1, 0],
        terminated=[False, False, False, True, False, True],
    )  # fmt: skip
    with pytest.raises(UserError, match=r"hardly ever ends.* horizon, or a discount below 1"):
        evaluate(log, "always:0", 1.0, draws=100)
    with pytest.raises(UserError, match="policy 'always:0' hardly ever ends"):
        compare(log, ["always:1", "always:0"], 1.0, draws=100, simulations=0)
    # Action 1 was never tried in state 0: it may be a loop, though hardly ever one that pays.
    found = evaluate(log, "always:1", 1.0, draws=2000, start=1)
    assert np.abs(found.samples).max() <= 1e6
    with pytest.raises(UserError, match="hardly ever ends"):  # the loop that pays looks best
        improve(log, 1.0, draws=50, mdps=20, min_visits=1)
    assert not any("hardly ever ends" in said for said in evaluate(log, {0: 0, 1: 1}, 1.0, draws=20).explain())


def test_incomplete_factors_of_the_mean_chain_lead_to_the_same_values():
    """A ring with some far links, of more states than an inverse is made for."""
    from scipy import sparse

    states = chains.INVERSE_STATES + 500
    rng = np.random.default_rng(2)
    state = np.repeat(np.arange(states), 3)
    following = (state + np.tile([0, 1, 2], states)) % states
    following[rng.integers(0, len(state), states // 40)] = 0
    mean = sparse.csr_matrix((np.full(len(state), 1 / 3), (state, following)), (states, states))
    chance = rng.dirichlet(np.ones(3), (2, states)).reshape(2, -1)
    batch = chains.Batch(
        chains.Cells.of(state, following, chance),
        chains.Entries(*3 * [np.zeros(0, int)], np.zeros(0)),
        rng.normal(size=(2, states)),
    )
    factors = sparse_chains.incomplete_factors(mean, 0.99)
    assert factors is not None
    guide = chains.Guide(np.zeros(states), None, factors)
    np.testing.assert_allclose(
        chains.values(batch, 0.99, guide=guide), chains.values(batch, 0.99, guide=None), rtol=1e-4, atol=1e-4
    )
    start = np.full(states, 1 / states)
    np.testing.assert_allclose(chains.visits(batch, 0.99, start, guide).sum(-1), 100, rtol=1e-5)


def test_chains_that_lead_anywhere_are_not_factorised():
    from scipy import sparse

    states = 5_000
    rng = np.random.default_rng(3)
    state = np.repeat(np.arange(states), 5)
    mean = sparse.csr_matrix((np.full(len(state), 0.2), (state, rng.integers(0, states, len(state)))), (states, states))
    assert sparse_chains.incomplete_factors(mean, 0.9) is None
