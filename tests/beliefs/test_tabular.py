import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief import UserError
from bellief.beliefs import normal_gamma, tabular
from bellief.types import Spaces, Transition

STATES, ACTIONS = 3, 2
START = jnp.asarray([0.0, 1.0, 0.0])
PRIOR = tabular.Prior(reward_mean=0.5, reward_strength=2.0, reward_shape=1.5, reward_rate=0.7)


def random_transitions(count, seed=0):
    generator = np.random.default_rng(seed)
    return Transition(
        state=jnp.asarray(generator.integers(0, STATES, count)),
        action=jnp.asarray(generator.integers(0, ACTIONS, count)),
        reward=jnp.asarray(generator.normal(1, 2, count)),
        next_state=jnp.asarray(generator.integers(0, STATES, count)),
        terminated=jnp.asarray(generator.random(count) < 0.3),
    )


def learned(terminates=True, count=60, dtype=jnp.float32):
    return tabular.update_batch(tabular.init(STATES, ACTIONS, terminates, dtype), random_transitions(count))


def assert_beliefs_equal(first, second):
    np.testing.assert_array_equal(first.counts, second.counts)
    np.testing.assert_array_equal(first.rewards.count, second.rewards.count)
    np.testing.assert_allclose(first.rewards.mean, second.rewards.mean, rtol=1e-12)
    np.testing.assert_allclose(first.rewards.squares, second.rewards.squares, rtol=1e-12)


@pytest.mark.usefixtures("double")
def test_counts_and_rewards_against_loops():
    transitions = random_transitions(60)
    counts, rewards = np.zeros((STATES, ACTIONS, STATES + 1), int), {}
    for state, action, reward, next_state, terminated in zip(*map(np.asarray, transitions), strict=True):
        counts[state, action, STATES if terminated else next_state] += 1
        rewards.setdefault((state, action), []).append(reward)
    belief = learned(dtype=jnp.float64)
    np.testing.assert_array_equal(belief.counts, counts)
    assert counts[..., STATES].sum() > 5
    for pair, seen in rewards.items():
        assert belief.rewards.count[pair] == len(seen)
        assert belief.rewards.mean[pair] == pytest.approx(np.mean(seen))
        assert belief.rewards.squares[pair] == pytest.approx(np.var(seen) * len(seen))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("terminates", [False, True])
def test_one_at_a_time_and_in_batches(terminates):
    transitions = random_transitions(40)
    single = empty = tabular.init(STATES, ACTIONS, terminates, jnp.float64)
    step = jax.jit(tabular.update)
    for index in range(40):
        single = step(single, jax.tree.map(lambda field, index=index: field[index], transitions))
    many = jax.jit(tabular.update_batch)
    batch, parts = many(empty, transitions), empty
    for part in (slice(0, 11), slice(11, 40)):
        parts = many(parts, jax.tree.map(lambda field, part=part: field[part], transitions))
    assert_beliefs_equal(single, batch)
    assert_beliefs_equal(parts, batch)
    assert batch.counts.shape[-1] == STATES + terminates


def test_counts_stay_exact_where_single_precision_does_not():
    many = 2**25
    empty = tabular.init(STATES, ACTIONS)
    belief = empty._replace(
        counts=jnp.full_like(empty.counts, many), rewards=empty.rewards._replace(count=jnp.full((3, 2), many))
    )
    one = Transition(jnp.asarray(1), jnp.asarray(0), jnp.asarray(0.5), jnp.asarray(2), jnp.asarray(False))
    batch = jax.tree.map(lambda field: field[None], one)
    for after in (tabular.update(belief, one), tabular.update_batch(belief, batch)):
        assert int(after.counts[1, 0, 2]) == many + 1
        assert int(after.counts.sum(dtype=jnp.uint32)) == 18 * many + 1
        assert int(after.rewards.count[1, 0]) == many + 1


@pytest.mark.parametrize(
    ("terminates", "prior", "support"),
    [(False, PRIOR, None), (True, PRIOR, 2), (True, tabular.SPARSE_PRIOR, 2)],
)
def test_a_sample_is_an_mdp(terminates, prior, support):
    transitions = random_transitions(10)
    belief = tabular.update_batch(tabular.init(STATES, ACTIONS, terminates), transitions)
    # The promise behind `support` is not kept by these data, so restrict what is counted.
    belief = belief._replace(counts=belief.counts.at[..., 2:].set(0))
    mdp = jax.jit(lambda key: tabular.sample(key, prior, belief, 0.9, START, support))(jax.random.key(0))
    assert mdp.transition.shape == (STATES, ACTIONS, STATES)
    np.testing.assert_allclose(np.asarray(mdp.transition).sum(-1), 1 - np.asarray(mdp.termination), atol=1e-6)
    assert (np.asarray(mdp.transition) >= 0).all()
    assert (np.asarray(mdp.termination) > 0).all() == terminates
    assert (np.asarray(mdp.termination) == 0).all() != terminates
    assert (np.asarray(mdp.reward_sd) > 0).all()
    assert mdp.start.tolist() == [0, 1, 0]
    assert float(mdp.discount) == pytest.approx(0.9)


@pytest.mark.parametrize("prior", [PRIOR, tabular.Prior(sparse=True)])
def test_mean_by_hand(prior):
    transitions = Transition(
        state=jnp.asarray([0, 0, 0]),
        action=jnp.asarray([1, 1, 1]),
        reward=jnp.asarray([1.0, 2.0, 6.0]),
        next_state=jnp.asarray([2, 0, 2]),
        terminated=jnp.asarray([False, True, False]),
    )
    mdp = tabular.mean(prior, tabular.update_batch(tabular.init(STATES, ACTIONS, True), transitions), 0.9)
    pseudo = 0.25 if prior.sparse else 0.5
    total = 3 + 4 * pseudo
    np.testing.assert_allclose(mdp.start, np.full(STATES, 1 / STATES), rtol=1e-6)
    np.testing.assert_allclose(mdp.transition[0, 1], np.array([pseudo, pseudo, 2 + pseudo]) / total, rtol=1e-6)
    np.testing.assert_allclose(mdp.termination[0, 1], (1 + pseudo) / total, rtol=1e-6)
    np.testing.assert_allclose(mdp.transition[1, 0], [0.25] * 3, rtol=1e-6)
    expected = (prior.reward_strength * prior.reward_mean + 9) / (prior.reward_strength + 3)
    np.testing.assert_allclose(mdp.reward, [[prior.reward_mean, expected]] + [[prior.reward_mean] * 2] * 2, rtol=1e-6)
    assert mdp.reward_sd is None


@pytest.fixture(scope="module")
def draw():
    belief = learned(count=80)
    return jax.jit(jax.vmap(lambda one: tabular.sample(one, PRIOR, belief, 0.9)))


def test_samples_agree_with_the_mean(key, check, draw):
    # More than one observation of each pair keeps the variance of rewards finite: shape above one.
    mdps, mean = draw(jax.random.split(key, 5000)), tabular.mean(PRIOR, learned(count=80), 0.9)
    check.mean(mdps.transition, mean.transition)
    check.mean(mdps.termination, mean.termination)
    check.mean(mdps.reward, mean.reward)


def test_sampled_rewards_are_student(key, check, draw):
    rewards = np.asarray(draw(jax.random.split(key, 5000)).reward)
    transitions = jax.tree.map(np.asarray, random_transitions(80))
    for pair in np.ndindex(STATES, ACTIONS):
        seen = transitions.reward[(transitions.state == pair[0]) & (transitions.action == pair[1])].astype(np.float64)
        count, average = len(seen), seen.mean()
        strength, shape = 2.0 + count, 1.5 + count / 2
        rate = 0.7 + ((seen - average) ** 2).sum() / 2 + 2.0 * count * (average - 0.5) ** 2 / (2 * strength)
        location = (2.0 * 0.5 + count * average) / strength
        check.same_law(rewards[:, *pair], stats.t(2 * shape, location, np.sqrt(rate / (shape * strength))))


def after_more_visits(generator, belief, visits, count):
    """What the posterior means of rows and rewards become after so many further visits of each pair, by simulation."""
    rows, rewards = [], []
    for pair in np.ndindex(STATES, ACTIONS):
        concentration = 0.5 + np.asarray(belief.counts[pair], np.float64)
        drawn = generator.dirichlet(concentration, count)
        seen = np.array([generator.multinomial(visits, row / row.sum()) for row in drawn])
        rows.append((concentration + seen) / (concentration.sum() + visits))
        number, average, squares = (float(field[pair]) for field in belief.rewards)
        strength, shape = 2.0 + number, 1.5 + number / 2
        rate = 0.7 + squares / 2 + 2.0 * number * (average - 0.5) ** 2 / (2 * strength)
        location = (2.0 * 0.5 + number * average) / strength
        precision = generator.gamma(shape, 1 / rate, count)
        mean = generator.normal(location, 1 / np.sqrt(strength * precision))
        observed = generator.normal(mean, 1 / np.sqrt(visits * precision))
        rewards.append((strength * location + visits * observed) / (strength + visits))
    return np.stack(rows, 1).reshape(count, STATES, ACTIONS, -1), np.stack(rewards, 1).reshape(count, STATES, ACTIONS)


@pytest.mark.parametrize("visits", [1, 10])
def test_look_ahead_has_the_moments_of_a_simulation(key, check, draw, request, visits):
    belief, count = learned(count=80), 5000
    ahead = jax.vmap(lambda mdp: tabular.look_ahead(PRIOR, belief, mdp, visits))(draw(jax.random.split(key, count)))
    rows = np.concatenate([ahead.transition, ahead.termination[..., None]], axis=-1).astype(np.float64)
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(-1), 1, rtol=1e-5)
    generator = np.random.default_rng(request.config.getoption("--statistics-seed"))
    expected_rows, expected_rewards = after_more_visits(generator, belief, visits, count)
    mean = tabular.mean(PRIOR, belief, 0.9)
    centre = np.concatenate([mean.transition, mean.termination[..., None]], axis=-1).astype(np.float64)
    check.mean(rows, centre)
    check.mean(expected_rows, centre)
    products = [np.einsum("nsao,nsap->nsaop", one, one) for one in (rows - centre, expected_rows - centre)]
    check.mean(products[0] - products[1], np.zeros(products[0].shape[1:]))
    reward = np.asarray(ahead.reward, np.float64)
    check.mean(reward, np.asarray(mean.reward))
    gap, expected_gap = reward - np.asarray(mean.reward), expected_rewards - np.asarray(mean.reward)
    check.mean(gap**2 - expected_gap**2, np.zeros((STATES, ACTIONS)))


def test_look_ahead_lies_between_the_mean_and_the_draw(draw):
    belief = learned(count=80)
    mdp = jax.tree.map(lambda field: field[0], draw(jax.random.split(jax.random.key(0), 5000)))
    mean = tabular.mean(PRIOR, belief, 0.9)
    for visits, end in ((0.0, mean), (1e9, mdp)):
        ahead = tabular.look_ahead(PRIOR, belief, mdp, visits)
        for name in ("transition", "termination", "reward"):
            np.testing.assert_allclose(getattr(ahead, name), getattr(end, name), atol=1e-6)
    ahead = tabular.look_ahead(PRIOR, belief, mdp, 7.0)
    pair = (1, 1)
    number = float(belief.rewards.count[pair])
    share = np.sqrt(7 / (4 * 0.5 + number + 7))
    expected = mean.transition[pair] + share * (mdp.transition[pair] - mean.transition[pair])
    np.testing.assert_allclose(ahead.transition[pair], expected, rtol=1e-5)
    share = np.sqrt(7 / (2.0 + number + 7))
    expected = mean.reward[pair] + share * (mdp.reward[pair] - mean.reward[pair])
    np.testing.assert_allclose(ahead.reward[pair], expected, rtol=1e-5)


def test_look_ahead_with_a_sparse_prior():
    """A whole row's prior weighs one observation there."""
    belief = tabular.init(STATES, ACTIONS)
    rows = jnp.broadcast_to(jnp.asarray([1.0, 0.0, 0.0]), (STATES, ACTIONS, STATES))
    mdp = tabular.mean(tabular.SPARSE_PRIOR, belief, 0.9)._replace(transition=rows)
    ahead = tabular.look_ahead(tabular.SPARSE_PRIOR, belief, mdp, 3.0)
    share = np.sqrt(3 / 4)
    np.testing.assert_allclose(ahead.transition[0, 0], [(1 + 2 * share) / 3, *[(1 - share) / 3] * 2], rtol=1e-5)


def test_span_of_rewards():
    known = Spaces(STATES, ACTIONS, False, -1.0, 2.5)
    unknown = known._replace(reward_low=None, reward_high=None)
    belief = tabular.init(STATES, ACTIONS)
    assert float(tabular.reward_span(PRIOR, belief, known)) == 3.5
    # Nothing seen: what the prior expects a reward to be off by.
    assert float(tabular.reward_span(PRIOR, belief, unknown)) == pytest.approx(np.sqrt(0.7 / 1.5))

    def seen(rewards):
        count = len(rewards)
        steps = Transition(
            jnp.arange(count),
            jnp.zeros(count, int),
            jnp.asarray(rewards),
            jnp.zeros(count, int),
            jnp.zeros(count, bool),
        )
        return float(tabular.reward_span(PRIOR, tabular.update_batch(belief, steps), unknown))

    assert seen([4.0, -2.0]) == pytest.approx(6.0)
    # The prior's mean, one half, belongs to what is possible.
    assert seen([4.0, 5.0]) == pytest.approx(4.5)
    assert seen([-4.0]) == pytest.approx(4.5)
    assert seen([0.5]) == pytest.approx(np.sqrt(0.7 / 1.5))


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("terminates", [False, True])
def test_log_density(oracle, terminates):
    belief = learned(terminates, dtype=jnp.float64)
    mdp = oracle.random_mdp(0, STATES, ACTIONS, ends=0.5 * terminates)
    mdp = mdp._replace(reward_sd=np.random.default_rng(2).gamma(2.0, 1.0, (STATES, ACTIONS)))
    posterior = normal_gamma.posterior(tabular.reward_prior(PRIOR, jnp.float64), belief.rewards)
    posterior = jax.tree.map(np.asarray, posterior)
    total = 0.0
    for pair in np.ndindex(STATES, ACTIONS):
        row = np.append(mdp.transition[pair], mdp.termination[pair]) if terminates else np.asarray(mdp.transition[pair])
        total += stats.dirichlet(0.5 + np.asarray(belief.counts[pair])).logpdf(row / row.sum())
        precision = float(mdp.reward_sd[pair]) ** -2
        total += stats.gamma(posterior.shape[pair], scale=1 / posterior.rate[pair]).logpdf(precision)
        spread = 1 / np.sqrt(posterior.strength[pair] * precision)
        total += stats.norm(posterior.mean[pair], spread).logpdf(float(mdp.reward[pair]))
    assert float(tabular.log_density(PRIOR, belief, mdp)) == pytest.approx(total, rel=1e-9)


def test_log_density_needs_the_spread_of_rewards():
    belief = learned()
    with pytest.raises(UserError, match="reward_sd"):
        tabular.log_density(PRIOR, belief, tabular.mean(PRIOR, belief, 0.9))


def test_restrict_keeps_the_rows_of_the_policy():
    belief = learned()
    actions = [1, 0, 1]
    restricted = tabular.restrict(belief, jnp.asarray(actions))
    assert restricted.counts.shape == (STATES, 1, STATES + 1)
    for state, action in enumerate(actions):
        np.testing.assert_array_equal(restricted.counts[state, 0], belief.counts[state, action])
        for kept, table in zip(restricted.rewards, belief.rewards, strict=True):
            assert kept.shape == (STATES, 1)
            assert kept[state, 0] == table[state, action]


@pytest.mark.parametrize("name", ["dirichlet", "reward_strength", "reward_shape", "reward_rate"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_a_prior_must_be_positive(name, value):
    with pytest.raises(UserError, match=name):
        tabular.Prior(**{name: value})


def test_the_papers_prior():
    assert tabular.PAPER_PRIOR.concentration(9) == 0.5
    assert [float(value) for value in tabular.reward_prior(tabular.PAPER_PRIOR, jnp.float32)] == [0, 1, 1, 1]
    assert tabular.SPARSE_PRIOR.concentration(4) == 0.25
    assert hash(tabular.Prior()) == hash(tabular.PAPER_PRIOR)
