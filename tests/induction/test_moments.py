"""One step of the moments' induction against sums written out, and whole solutions against ordinary value iteration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import beta
from tests.beliefs.test_learned import ACTIONS, SPACES, STATES, after, dense_counts, some_data, squared_stay

from bellief.beliefs import learned, learned_noise, learned_rows
from bellief.envs import make
from bellief.induction import moments
from bellief.types import Spaces


def test_back_up_is_the_law_of_total_variance():
    # Nothing tried in the last state, and one pair of another state never tried.
    data = some_data(25)
    kept = (data[0] < STATES - 1) & (data[0] + data[1] < 2)
    data = tuple(column[kept] for column in data)
    belief, counts = after(data), dense_counts(data)
    generator = np.random.default_rng(1)
    mean, variance = generator.normal(size=STATES) * 5, generator.random(STATES)
    discount = 0.9
    problem = moments.prepare(belief, STATES + 1, discount)
    found = moments.back_up(problem, jnp.float32(mean), jnp.float32(variance), discount)
    posterior = np.asarray(learned_rows.weight_posterior(belief.rows), dtype=float)
    values, spread = np.append(mean, 0), np.append(variance, 0)
    met = np.append(counts.sum((1, 2)) > 0, True)
    assert met.tolist() == [True, True, False, True]
    assert counts.sum(-1).astype(bool).tolist() == [[True, True], [True, False], [False, False]]
    assert (counts[0, 1, 0], counts[0, 1].min()) == (0, 0)  # tried, not seen to stay
    largest = np.abs(data[2]).max()
    reward, reward_variance = (np.asarray(part, dtype=float) for part in learned_noise.posterior(belief.rewards))
    for pair in np.ndindex(STATES, ACTIONS):
        shown = counts[pair] > 0
        centres, within, carried, unseen, later = [], [], [], [], []
        for weight in learned_rows.GRID:
            alpha = counts[pair] + weight / (STATES + 1)
            row = alpha / alpha.sum()
            covariance = (np.diag(row) - np.outer(row, row)) / (alpha.sum() + 1)
            centres.append(row @ values)
            within.append(values @ covariance @ values)
            # What the prior adds to the counts is spread over the states met so far.
            carried.append((counts[pair] @ spread + weight * spread[met].mean()) / alpha.sum())
            # Nothing where all was shown; a pair never tried has the prior's variance instead.
            share = beta(alpha[~shown].sum(), alpha[shown].sum()) if shown.any() and not shown.all() else None
            unseen.append(share.var() + share.mean() ** 2 if share else 0)
            later.append(0 if shown[pair[0]] else squared_stay(alpha[pair[0]], alpha.sum() - alpha[pair[0]], discount))
        centre = posterior @ centres
        between = posterior @ (np.array(centres) - centre) ** 2
        paid = reward_variance[pair] + posterior @ (np.array(unseen) + later) * largest**2
        expected = paid + discount**2 * (posterior @ within + between + posterior @ carried)
        assert float(found.mean[pair]) == pytest.approx(reward[pair] + discount * centre, rel=1e-4, abs=1e-4)
        assert float(found.variance[pair]) == pytest.approx(expected, rel=1e-3)


def test_slots_do_not_change_a_plan():
    belief = after(some_data())
    problems = [moments.prepare(belief, slots, 0.9) for slots in (STATES + 1, int(learned_rows.used(belief.rows)))]
    mean, variance = jnp.arange(float(STATES)), jnp.ones(STATES)
    for first, second in zip(*(moments.back_up(one, mean, variance, 0.9) for one in problems), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-6)


def test_without_optimism_a_known_mdp_has_its_own_values(exact_values):
    environment, discount = make("nchain"), 0.9
    belief = learned.init(environment.spaces())
    mdp = environment.mdp(discount)
    # A hundred thousand visits of every pair, as the model has them.
    count = np.round(np.asarray(environment.outcomes.probability) * 100_000).astype(np.int32)
    rows = belief.rows._replace(
        outcome=jnp.asarray(environment.outcomes.next_state),
        count=jnp.asarray(count),
        visits=jnp.asarray(count.sum(-1)),
    )
    seen = belief.rewards.seen._replace(
        count=jnp.asarray(count.sum(-1)), mean=jnp.float32(mdp.reward), squares=jnp.zeros(mdp.reward.shape, jnp.float32)
    )
    belief = belief._replace(rows=rows, rewards=belief.rewards._replace(seen=seen))
    start = moments.Values(jnp.zeros(5), jnp.zeros(5))
    solution = moments.solve(jnp.zeros((5, 2)), moments.prepare(belief, 2, discount), start, discount, 0.0, 1e-4, 500)
    np.testing.assert_allclose(solution.values.mean, exact_values(mdp), rtol=2e-3)
    assert (np.asarray(solution.actions) == 1).all()


@pytest.fixture
def exact_values():
    def solve(mdp):
        values = np.zeros(len(mdp.reward))
        for _ in range(2000):
            values = (mdp.reward + mdp.discount * mdp.transition @ values).max(1)
        return values

    return solve


def test_optimism_is_carried_back_from_a_pair_never_tried():
    """Of a chain of three known states the last has an action never tried: its spread must reach the first state."""
    spaces = Spaces(4, 2, False, None, None)
    steps = [(0, 0, 1), (0, 1, 0), (1, 0, 2), (1, 1, 0), (2, 0, 0)] * 40
    data = tuple(np.array(column) for column in zip(*[(s, a, 0.0, t, False) for s, a, t in steps], strict=True))
    belief = after(data, spaces)
    start = moments.Values(jnp.zeros(4), jnp.zeros(4))
    solution = jax.jit(
        lambda: moments.solve(jnp.zeros((4, 2)), moments.prepare(belief, 4, 0.9), start, 0.9, 1.0, 1e-4, 200)
    )()
    assert solution.actions[:3].tolist() == [0, 0, 1]
    spread = np.sqrt(np.asarray(solution.values.variance))
    assert spread[2] > 0.9
    assert spread[0] > 0.7 * spread[2]


def test_by_size_takes_the_smallest_program_that_holds_all_rows():
    belief = learned.init(Spaces(40, 1, False, None, None))
    assert learned.sizes(belief) == (2, 8, 32, 40)
    assert int(moments.by_size(belief, jnp.asarray)) == 2
    full = belief._replace(rows=belief.rows._replace(count=belief.rows.count.at[3, 0, :9].set(1)))
    assert int(moments.by_size(full, jnp.asarray)) == 32
    assert SPACES.terminates
