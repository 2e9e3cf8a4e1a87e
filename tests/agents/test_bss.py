import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from bellief import UserError
from bellief.agents import bss
from bellief.agents.schedule import update_steps
from bellief.beliefs import normal_gamma, tabular
from bellief.envs import make
from bellief.experiments import compiled_environments, compiled_loop, compiled_steps, event_loop
from bellief.types import Spaces, Transition

DISCOUNT = 0.9
# Rewards with a variance, so that standard errors mean something.
PRIOR = tabular.Prior(reward_shape=4.0, reward_rate=20.0)
COUNTS = np.array([[[3, 0, 0], [3, 0, 1]], [[0, 3, 0], [1, 2, 0]]])
REWARDS = [[[1.0], [0.2, 1.6]], [[0.5], [0.3]]]


def transition(state, action, reward, next_state, terminated=False):
    numbers = (jnp.asarray(number, jnp.int32) for number in (state, action, next_state))
    state, action, next_state = numbers
    return Transition(state, action, jnp.asarray(reward, jnp.float32), next_state, jnp.asarray(terminated))


def small_problem(values=(2.0, 6.0)):
    """Two states, two actions, an end, a few observations of each pair, and given leaf values."""
    statistics = [[(len(seen), np.mean(seen), np.var(seen) * len(seen)) for seen in row] for row in REWARDS]
    count, mean, squares = np.moveaxis(np.array(statistics), -1, 0)
    rewards = normal_gamma.Statistics(
        jnp.asarray(count, jnp.int32), jnp.asarray(mean, jnp.float32), jnp.asarray(squares, jnp.float32)
    )
    belief = tabular.TabularBelief(jnp.asarray(COUNTS, jnp.int32), rewards)
    return bss.State(belief, jnp.asarray(values, jnp.float32), jnp.zeros(2, jnp.int32))


def prior_belief():
    """Weights of outcomes and [mu, kappa, alpha, beta] of rewards, from the observations one at a time."""
    parameters = np.empty((2, 2, 4))
    for state, action in np.ndindex(2, 2):
        believed = np.array([0.0, 1.0, 4.0, 20.0])
        for reward in REWARDS[state][action]:
            believed = observe(believed, reward)
        parameters[state, action] = believed
    return COUNTS + 0.5, parameters


def observe(believed, reward):
    mu, kappa, alpha, beta = believed
    return np.array(
        [
            (kappa * mu + reward) / (kappa + 1),
            kappa + 1,
            alpha + 0.5,
            beta + kappa * (reward - mu) ** 2 / (2 * (kappa + 1)),
        ]
    )


def exhaustive(weights, parameters, state, depth, leaf, reward_points, learning=True):
    """Bayes-adaptive Q values: every outcome with its probability, rewards at evenly spaced quantiles of their law."""
    values = np.zeros(2)
    for action in range(2):
        mu, kappa, alpha, beta = parameters[state, action]
        chance = weights[state, action] / weights[state, action].sum()
        values[action] = mu
        if depth == 1:
            values[action] += DISCOUNT * (chance[0] * leaf[0] + chance[1] * leaf[1])
            continue
        law = stats.t(2 * alpha, mu, np.sqrt(beta * (kappa + 1) / (kappa * alpha)))
        for reward in law.ppf((np.arange(reward_points) + 0.5) / reward_points):
            for outcome in range(2):
                new_weights, new_parameters = weights.copy(), parameters.copy()
                if learning:
                    new_weights[state, action, outcome] += 1
                    new_parameters[state, action] = observe(parameters[state, action], reward)
                after = exhaustive(new_weights, new_parameters, outcome, depth - 1, leaf, reward_points, learning)
                values[action] += DISCOUNT * chance[outcome] * after.max() / reward_points
    return values


@pytest.mark.parametrize(
    ("choices", "observation", "trees", "slack"),
    [
        ({"depth": 1, "next_states": 50, "rewards": 2}, 0, 200, 1e-5),
        ({"depth": 1, "next_states": 50, "gains": "expected"}, 1, 200, 1e-5),
        # Maximising over noisy values in the nodes is biased upwards; the bias falls with the number of samples.
        pytest.param({"depth": 2, "next_states": 60, "rewards": 4}, 0, 200, 0.03, marks=pytest.mark.slow),
        ({"depth": 2, "next_states": 120, "rewards": 4, "gains": "expected"}, 1, 80, 0.015),
        pytest.param(
            {"depth": 3, "next_states": 20, "rewards": 3, "gains": "expected"}, 1, 60, 0.1, marks=pytest.mark.slow
        ),
    ],
)
def test_against_exhaustive_enumeration(key, check, choices, observation, trees, slack):
    leaf = (2.0, 6.0)
    config = bss.Config(discount=DISCOUNT, prior=PRIOR, **choices)
    exact = exhaustive(*prior_belief(), observation, config.depth, leaf, 400 if config.depth == 2 else 30)
    if config.depth > 1:
        # A tree that learns nothing on its way would say something else, well beyond the slack.
        unlearned = exhaustive(*prior_belief(), observation, config.depth, leaf, 1, learning=False)
        assert (exact - unlearned).max() > 4 * slack
    state = small_problem(leaf)
    grow = jax.jit(lambda keys: jax.lax.map(lambda one: bss.action_values(one, config, state, observation), keys))
    check.mean(grow(jax.random.split(key, trees)), exact, slack=slack)


@pytest.mark.parametrize(
    ("growth", "gains", "depth"),
    [
        ("all", "sampled", 1),
        ("all", "expected", 2),
        pytest.param("all", "sampled", 3, marks=pytest.mark.slow),
        ("thompson", "sampled", 2),
        pytest.param("thompson", "expected", 3, marks=pytest.mark.slow),
    ],
)
def test_weights_of_branches_sum_to_one(growth, gains, depth):
    config = bss.Config(depth=depth, next_states=3, rewards=2, growth=growth, gains=gains, discount=DISCOUNT)
    # A million rewards of exactly zero: samples of them differ from zero by thousandths.
    million = normal_gamma.Statistics(jnp.full((3, 2), 10**6, jnp.int32), jnp.zeros((3, 2)), jnp.zeros((3, 2)))
    belief = tabular.TabularBelief(jnp.zeros((3, 2, 3), jnp.int32), million)
    state = bss.State(belief, jnp.full(3, 100.0), jnp.zeros(3, jnp.int32))
    values = jax.jit(lambda key: bss.action_values(key, config, state, jnp.asarray(1)))(jax.random.key(0))
    np.testing.assert_allclose(values, 100 * DISCOUNT**depth, rtol=1e-4)


def test_nothing_follows_an_end():
    config = bss.Config(next_states=50, discount=DISCOUNT, gains="expected")
    counts = jnp.zeros((2, 2, 3), jnp.int32).at[..., 2].set(10**7)
    rewards = normal_gamma.Statistics(jnp.full((2, 2), 10**6, jnp.int32), jnp.full((2, 2), 3.0), jnp.zeros((2, 2)))
    state = bss.State(tabular.TabularBelief(counts, rewards), jnp.full(2, 1e3), jnp.zeros(2, jnp.int32))
    values = jax.jit(lambda key: bss.action_values(key, config, state, jnp.asarray(1)))(jax.random.key(0))
    np.testing.assert_allclose(values, 3.0, rtol=1e-4)


def test_a_node_believes_what_its_path_has_shown():
    root_state = small_problem()
    root = bss.Root(
        0.5 + root_state.belief.counts.astype(jnp.float32),
        normal_gamma.posterior(tabular.reward_prior(PRIOR, jnp.float32), root_state.belief.rewards),
        jnp.zeros(3),
    )
    steps = [(0, 1, 0.7, 0), (0, 0, -2.0, 1), (1, 1, 0.1, 0), (0, 1, 5.0, 2)]
    path = tuple(bss.Step(*(jnp.asarray(part) for part in one)) for one in steps)
    belief = root_state.belief
    for state, action, reward, outcome in steps:
        belief = tabular.update(belief, transition(state, action, reward, outcome % 2, outcome == 2))
    expected = normal_gamma.posterior(tabular.reward_prior(PRIOR, jnp.float32), belief.rewards)
    for state, action in np.ndindex(2, 2):
        weights, rewards = bss._node_belief(root, path, jnp.asarray(state), jnp.asarray(action))
        np.testing.assert_allclose(weights, 0.5 + np.asarray(belief.counts)[state, action])
        np.testing.assert_allclose(rewards, [table[state, action] for table in expected], rtol=1e-5)


def test_outcomes_and_rewards_are_drawn_from_their_predictions(key, check):
    weights = jnp.asarray([0.5, 3.5, 0.0, 6.0])
    uniforms = jax.random.uniform(key, (20_000,))
    check.frequencies(np.bincount(bss._sample_outcomes(weights, uniforms), minlength=4), weights)
    # The largest uniform below one stays inside.
    assert bss._sample_outcomes(weights, jnp.asarray([np.nextafter(np.float32(1), 0)]))[0] == 3
    belief = normal_gamma.Parameters(*(jnp.asarray(value) for value in (0.5, 2.0, 3.0, 4.0)))
    rewards = bss._sample_rewards(belief, jax.random.uniform(key, (20_000, 2)))
    check.same_law(rewards, stats.t(6.0, 0.5, np.sqrt(4.0 * 3 / (2 * 3))))


def test_noise_is_independent_between_levels():
    noise = bss.draw_noise(jax.random.key(0), bss.Config(), 2, jnp.float32)
    drawn = np.concatenate([np.ravel(values) for level in noise for values in (level.outcomes, level.rewards)])
    assert len(np.unique(drawn)) == len(drawn) == 2 * 4 + 2 * 4 * 2 * 2 + 16 * 2 * 4 + 16 * 2 * 4 * 2 * 2


def test_thompson_follows_actions_as_often_as_they_are_best(key, check):
    config = bss.Config(discount=DISCOUNT, prior=PRIOR, growth="thompson")
    weights, parameters = prior_belief()
    root = bss.Root(
        jnp.asarray(weights, jnp.float32),
        normal_gamma.Parameters(*jnp.asarray(np.moveaxis(parameters, -1, 0), jnp.float32)),
        jnp.asarray([2.0, 6.0, 0.0]),
    )
    path = (bss.Step(jnp.asarray(1), jnp.asarray(0), jnp.asarray(2.5), jnp.asarray(1)),)
    pick = jax.jit(jax.vmap(lambda one: bss._thompson_action(one, config, root, path, jnp.asarray(1))))
    picked = np.bincount(pick(jax.random.split(key, 20_000)), minlength=2)

    weights[1, 0, 1] += 1
    parameters[1, 0] = observe(parameters[1, 0], 2.5)
    generator = np.random.default_rng(0)
    scores = []
    for action in range(2):
        mu, kappa, alpha, beta = parameters[1, action]
        tau = generator.gamma(alpha, 1 / beta, 400_000)
        rows = generator.dirichlet(weights[1, action], 400_000)
        scores.append(generator.normal(mu, 1 / np.sqrt(kappa * tau)) + DISCOUNT * rows @ [2.0, 6.0, 0.0])
    # The oracle's own error, twenty times the draws, is small beside that of what it judges.
    chance = np.mean(scores[1] > scores[0])
    check.frequencies(picked, [1 - chance, chance])


@pytest.mark.slow
def test_with_one_action_both_growths_are_the_same():
    belief = tabular.restrict(small_problem().belief, jnp.asarray([1, 0]))
    state = bss.State(belief, jnp.asarray([2.0, 6.0]), jnp.zeros(2, jnp.int32))
    grow = jax.jit(bss.action_values, static_argnums=1)
    both = [grow(jax.random.key(1), bss.Config(growth=growth), state, jnp.asarray(0)) for growth in bss.GROWTHS]
    np.testing.assert_allclose(*both, rtol=1e-5)


def optimal_values(belief, discount):
    """Value iteration on the mean MDP in float64."""
    weights = np.asarray(belief.counts, np.float64) + 0.5
    rows = weights / weights.sum(-1, keepdims=True)
    count = np.asarray(belief.rewards.count, np.float64)
    reward = np.asarray(belief.rewards.mean, np.float64) * count / (count + 1)
    values = np.zeros(len(rows))
    for _ in range(3_000):
        values = (reward + discount * rows[..., : len(values)] @ values).max(-1)
    return values


@pytest.mark.parametrize("terminates", [False, True])
def test_leaf_values_stay_exact(terminates):
    spaces = Spaces(6, 3, terminates, -1.0, 1.0)
    config = bss.Config()
    state = bss.init(jax.random.key(0), config, spaces)
    np.testing.assert_array_equal(state.values, 0.0)
    update = jax.jit(lambda state, step: bss.update(config, state, step))
    generator = np.random.default_rng(0)
    for number in range(120):
        place, action, after = generator.integers(6), generator.integers(3), generator.integers(6)
        reward = generator.normal() + (place == 4) * 5
        state = update(state, transition(place, action, reward, after, terminates and after == 5))
        if number % 10 == 0:
            exact = optimal_values(state.belief, 0.99)
            np.testing.assert_allclose(state.values, exact, rtol=1e-4, atol=1e-4 * np.abs(exact).max())
    np.testing.assert_array_equal(bss.policy(config, state), np.eye(3)[np.asarray(state.actions)])


def test_an_untrained_agent_has_no_favourite(key, check):
    config = bss.Config(gains="expected", depth=1)
    state = bss.init(key, config, Spaces(3, 2, False, 0.0, 1.0))
    act = jax.jit(jax.vmap(lambda one: bss.act(one, config, state, jnp.asarray(1))))
    check.frequencies(np.bincount(act(jax.random.split(key, 2_000)), minlength=2), np.ones(2))


@pytest.mark.parametrize("growth", ["all", pytest.param("thompson", marks=pytest.mark.slow)])
def test_extreme_rewards_leave_everything_finite(growth):
    config = bss.Config(growth=growth)
    spaces = Spaces(3, 2, True, -1.0, 1.0)

    def one_run(reward):
        def one_step(carry, number):
            state, place = carry
            key = jax.random.fold_in(jax.random.key(0), number)
            values = bss.action_values(key, config, state, place)
            action = jnp.argmax(values)
            after = (place + action + 1) % 3
            state = bss.update(config, state, transition(place, action, reward, after, number % 7 == 0))
            return (state, after), values

        begin = (bss.init(jax.random.key(1), config, spaces), jnp.asarray(0, jnp.int32))
        return jax.lax.scan(one_step, begin, jnp.arange(200))

    (state, _), values = jax.jit(jax.vmap(one_run))(jnp.asarray([1e-6, -1e6, 1e6, 0.0], jnp.float32))
    for leaf in (*jax.tree.leaves(state), values):
        assert np.isfinite(leaf).all()


@pytest.mark.slow
@pytest.mark.parametrize("growth", bss.GROWTHS)
def test_with_and_without_jit(growth):
    config = bss.Config(growth=growth, depth=2, next_states=2, rewards=2)
    state = small_problem()

    def one_step(state):
        action = bss.act(jax.random.key(4), config, state, jnp.asarray(0))
        return action, bss.update(config, state, transition(0, action, 0.5, 1))

    compiled_action, compiled = jax.jit(one_step)(state)
    with jax.disable_jit():
        action, plain = one_step(state)
    assert compiled_action == action
    for first, second, before in zip(*(jax.tree.leaves(one) for one in (compiled, plain, state)), strict=True):
        assert first.dtype == second.dtype == before.dtype
        np.testing.assert_allclose(first, second, rtol=1e-5)


def test_in_the_loop():
    environment, steps, config = make("doubleloop"), 1_000, bss.Config()
    keys = jax.vmap(lambda run: compiled_steps.run_keys(0, "doubleloop", "bss", run))(np.arange(4))
    tables = compiled_environments.make_tables(environment.outcomes)
    *events, last = compiled_loop.run_batch(
        keys, tables, bss, config, environment.spaces(), update_steps(steps), [500, steps], half_life=100.0
    )
    half, whole = (event.total for event in events if isinstance(event, event_loop.Reading))
    # The better loop pays 0.4 a step, the other 0.2.
    assert (whole - half).mean() / 500 > 0.35
    np.testing.assert_array_equal(last.agent.belief.counts.sum(axis=(1, 2, 3)), steps)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"depth": 0}, "depth"),
        ({"next_states": 0}, "next_states"),
        ({"rewards": 0}, "rewards"),
        ({"growth": "some"}, "growth"),
        ({"gains": "none"}, "gains"),
        ({"discount": 1.0}, "discount"),
        ({"discount": 0.0}, "discount"),
    ],
)
def test_wrong_settings(choices, message):
    with pytest.raises(UserError, match=message):
        bss.Config(**choices)
