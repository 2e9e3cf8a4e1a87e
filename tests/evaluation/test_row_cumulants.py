"""Cumulants of rows from their cells and places, against tables of all outcomes."""

import time

import numpy as np
import pytest

from bellief import Transitions
from bellief.evaluation import row_cumulants
from bellief.evaluation.linear_term import dirichlet_cumulants
from bellief.evaluation.problem import prepare
from bellief.evaluation.row_cumulants import RowCumulants
from bellief.evaluation.row_tables import row_tables

STATES, ACTIONS = 12, 3


def make_log(seed: int, rewards: str) -> Transitions:
    """Some pairs never tried, some often; ends; rewards that depend on the outcome, on the pair, or on nothing."""
    random = np.random.default_rng(seed)
    state, action = random.integers(0, STATES - 2, 150), random.integers(0, ACTIONS, 150)
    after = (state * 2 + action + random.integers(0, 2, 150) ** 3) % STATES
    paid = {
        "outcome": (after == 3) * 5.0 + random.normal(size=150) * (after % 2),
        "pair": state - 2.0 * action,
        "none": np.ones(150),
    }
    return Transitions.from_arrays(
        state, action, paid[rewards], after, terminated=after == STATES - 1, states=STATES, actions=ACTIONS
    )


@pytest.mark.parametrize("prior", ["logged", "logged-0.1", "sparse", "paper"])
@pytest.mark.parametrize("rewards", ["outcome", "pair", "none"])
def test_cumulants_are_those_of_tables(prior, rewards, monkeypatch):
    monkeypatch.setattr(row_cumulants, "CHUNK", 40)  # several chunks
    problem = prepare(make_log(0, rewards), 0.9, prior=prior)
    random = np.random.default_rng(1)
    part = problem.part(random.random(STATES * ACTIONS) < 0.8)
    values = 100 + random.normal(size=(2, STATES))
    weight = random.normal(size=(2, len(part.state)))
    cumulants = RowCumulants(part, values, 0.9)
    found, noise = cumulants.of(weight), cumulants.noise()
    for table in row_tables(part):
        paid = weight[:, table.rows].sum(0)
        padded = np.pad(values, ((0, 0), (0, table.mean.shape[1] - STATES)))
        numbers = table.centred(paid[:, None] * table.pay + 0.9 * weight[:, table.rows].T @ padded)
        for one, expected in zip(found, dirichlet_cumulants(table.mean, numbers, table.weight), strict=True):
            np.testing.assert_allclose(one[table.rows], expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())
        np.testing.assert_allclose(noise.variance[table.rows], table.noise, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(noise.excess[table.rows], table.noise_excess, rtol=1e-9, atol=1e-12)


def test_what_counts_nothing_has_no_cumulants():
    part = prepare(make_log(0, "pair"), 0.9, prior="paper").part(np.ones(STATES * ACTIONS, bool))
    found = RowCumulants(part, np.ones((2, STATES)), 0.9).of(np.zeros((2, len(part.state))))
    assert all((one == 0).all() for one in found)


def test_many_outcomes_need_no_table():
    """Tables of all outcomes would have 3.6 * 10^9 entries, and need more than a minute for these."""
    states = 30_000
    random = np.random.default_rng(2)
    state, action = np.arange(4 * states) % states, np.arange(4 * states) // states
    log = Transitions.from_arrays(state, action, random.normal(size=4 * states), (state + action) % states)
    part = prepare(log, 0.9).part(np.ones(4 * states, bool))
    began = time.process_time()
    second, _, _ = RowCumulants(part, random.normal(size=(1, states)), 0.9).of(np.ones((1, 4 * states)))
    assert second.shape == (4 * states,)
    assert (second > 0).all()
    assert time.process_time() - began < 15
