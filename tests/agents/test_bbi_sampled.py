import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import UserError
from bellief.agents import bbi_paper, bbi_sampled, schedule
from bellief.beliefs import normal_gamma, tabular
from bellief.envs import make
from bellief.mdp import bellman
from bellief.types import Spaces, Transition

STATES, ACTIONS, MDPS = 4, 3, 5
SPACES = Spaces(STATES, ACTIONS, terminates=False, reward_low=-2.0, reward_high=2.0)
plan = jax.jit(bbi_sampled.plan, static_argnums=(1, 2))


def single(arrays):
    return jax.tree.map(lambda field: jnp.asarray(field, jnp.float32), arrays)


@functools.partial(jax.jit, static_argnums=(0, 2))
def joint_induction(config, key, spaces, mdps, final, draws=False):
    del spaces
    return bbi_sampled.induce_joint(key, config, mdps, final, draws)


@pytest.fixture(scope="module")
def mdps(oracle):
    return oracle.random_mdp(0, STATES, ACTIONS, ends=0.2, count=MDPS)


def backups(mdps, horizon, score):
    """Backwards induction in NumPy over several MDPs that share one policy, chosen by a score of their Q values."""
    count = len(mdps.reward)
    values = np.zeros((count, STATES))
    for _ in range(horizon):
        quality = np.zeros((count, STATES, ACTIONS))
        for j in range(count):
            for state in range(STATES):
                for action in range(ACTIONS):
                    later = mdps.transition[j, state, action] @ values[j]
                    quality[j, state, action] = mdps.reward[j, state, action] + 0.9 * later
        actions = score(quality).argmax(-1)
        values = quality[:, np.arange(STATES), actions]
    return actions, values


def config(**choices):
    return bbi_sampled.Config(**{"discount": 0.9, "mdps": MDPS, "horizon": 6, **choices})


@pytest.mark.parametrize(
    ("rule", "score"),
    [
        ({"values": "joint", "rule": "mean"}, lambda q: q.mean(0)),
        ({"rule": "optimistic", "optimism": 0.0}, lambda q: q.mean(0)),
        ({"rule": "optimistic", "optimism": 2.0}, lambda q: q.mean(0) + 2 * q.std(0)),
        ({"rule": "optimistic", "quantile": 0.75}, lambda q: np.sort(q, axis=0)[3]),
        (
            {"rule": "cautious", "tail": 0.3},
            lambda q: (np.sort(q, axis=0)[0] * 0.2 + np.sort(q, axis=0)[1] * 0.1) / 0.3,
        ),
    ],
)
def test_joint_induction_against_numpy(mdps, rule, score):
    actions, info = joint_induction(config(**rule), jax.random.key(0), SPACES, single(mdps), jnp.zeros((MDPS, STATES)))
    expected_actions, expected_values = backups(mdps, 6, score)
    np.testing.assert_array_equal(actions, expected_actions)
    np.testing.assert_allclose(info.value_mean, expected_values.mean(0), rtol=1e-4)
    np.testing.assert_allclose(info.value_sd, expected_values.std(0), rtol=1e-3)


def test_an_action_gets_the_better_of_two_scores(oracle):
    both = oracle.random_mdp(5, STATES, ACTIONS, count=2 * MDPS)

    def score(q):
        own, light = q[:MDPS], q[MDPS:]
        return np.maximum(own.mean(0) + 2 * own.std(0), light.mean(0) + 2 * light.std(0))

    final = jnp.zeros((2 * MDPS, STATES))
    actions, info = joint_induction(config(rule="optimistic"), jax.random.key(0), SPACES, single(both), final)
    expected_actions, expected_values = backups(both, 6, score)
    np.testing.assert_array_equal(actions, expected_actions)
    np.testing.assert_allclose(info.value_mean, expected_values[:MDPS].mean(0), rtol=1e-4)
    alone, _ = backups(jax.tree.map(lambda leaf: leaf[:MDPS], both), 6, lambda q: q.mean(0) + 2 * q.std(0))
    assert (alone != expected_actions).any(), "the second opinion changes a choice here, or the test shows nothing"


def test_who_asks_for_a_second_opinion():
    light = tabular.Prior(sparse=True)
    assert bbi_sampled.Config(rule="optimistic").priors(100) == (tabular.PAPER_PRIOR, light)
    assert bbi_sampled.Config(rule="mean", values="joint", second_opinion=True).priors(100) == (
        tabular.PAPER_PRIOR,
        light,
    )
    for other in ("mean", "thompson", "cautious"):
        assert bbi_sampled.Config(rule=other).priors(100) == (tabular.PAPER_PRIOR,)
    assert bbi_sampled.Config(rule="optimistic", second_opinion=False).priors(100) == (tabular.PAPER_PRIOR,)
    assert bbi_sampled.Config(rule="optimistic", prior=light).priors(100) == (light,)
    assert bbi_sampled.Config(rule="optimistic").priors(2) == (tabular.PAPER_PRIOR,), (
        "two halves weigh one observation already"
    )
    with pytest.raises(UserError, match="needs the joint value belief"):
        bbi_sampled.Config(rule="mean", second_opinion=True)


def test_thompson_with_the_joint_belief_solves_one_mdp(key, check, mdps):
    run = functools.partial(
        joint_induction, config(rule="thompson"), spaces=SPACES, mdps=single(mdps), final=jnp.zeros((MDPS, STATES))
    )
    actions, info = jax.vmap(lambda one: run(key=one))(jax.random.split(key, 200))
    solutions = [backups(mdps, 6, lambda q, j=j: q[j]) for j in range(MDPS)]
    owner = [[(found == best).all() for best, _ in solutions] for found in np.asarray(actions)]
    assert (np.sum(owner, axis=1) == 1).all(), "every plan is the optimal one of exactly one MDP"
    check.frequencies(np.sum(owner, axis=0), np.ones(MDPS))
    for chosen, values in zip(np.argmax(owner, axis=1), np.asarray(info.value_mean), strict=True):
        np.testing.assert_allclose(values, solutions[chosen][1].mean(0), rtol=1e-4)


@pytest.mark.usefixtures("double")
def test_mean_q_is_the_triple_sum(mdps):
    generator = np.random.default_rng(1)
    values, weight = generator.normal(size=(7, STATES)), generator.dirichlet(np.ones(MDPS), 7).T
    expected = np.zeros((STATES, ACTIONS))
    for state, action in np.ndindex(STATES, ACTIONS):
        for j in range(MDPS):
            for k in range(7):
                later = sum(mdps.transition[j, state, action, t] * values[k, t] for t in range(STATES))
                expected[state, action] += weight[j, k] / 7 * (mdps.reward[j, state, action] + 0.9 * later)
    np.testing.assert_allclose(
        bbi_paper.mean_q(None, mdps, jnp.asarray(values), jnp.asarray(weight)), expected, rtol=1e-10
    )


def test_constant_values_stay_constant_without_reward_and_discount(oracle):
    mdps = oracle.random_mdp(0, STATES, ACTIONS, discount=1.0, count=MDPS)
    mdps = single(mdps._replace(reward=np.zeros((MDPS, STATES, ACTIONS))))
    weight = jnp.asarray(np.random.default_rng(1).dirichlet(np.ones(MDPS), 7).T, jnp.float32)
    np.testing.assert_allclose(bbi_paper.mean_q(None, mdps, jnp.full((7, STATES), 7.0), weight), 7.0, rtol=1e-5)
    small = config(discount=1.0, samples=10)
    given = (small.method1_settings(STATES), small.horizon, mdps, jnp.full((MDPS, STATES), 7.0), jnp.array(1.0))
    _, info = jax.jit(lambda key: bbi_paper.induce(key, *given, bbi_paper.mean_q))(jax.random.key(0))
    np.testing.assert_allclose(info.value_mean, 7.0, rtol=1e-5)


def known(environment, amount=1_000_000):
    """The belief after so many observations of each pair, exactly as often as they should occur."""
    mdp = environment.mdp()
    counts = jnp.asarray(np.round(amount * np.asarray(mdp.transition)), jnp.int32)
    rewards = normal_gamma.Statistics(
        jnp.full(mdp.reward.shape, amount, jnp.int32), single(mdp.reward), single(amount * mdp.reward_sd**2)
    )
    return bbi_sampled.State(tabular.TabularBelief(counts, rewards), jnp.zeros(len(counts), jnp.int32))


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"values": "joint"},
        pytest.param({"rule": "optimistic", "values": "gaussian"}, marks=pytest.mark.slow),
        pytest.param({"utilities": "sampled", "likelihood": "product", "final": "own"}, marks=pytest.mark.slow),
    ],
    ids=lambda choices: ",".join(choices.values()) or "paper",
)
def test_with_enough_data_the_plan_is_optimal(choices):
    # At discount 0.9 *back* is best near the start and *forward* near the end, so neither action is always right.
    environment = make("nchain", small_reward=3.0)
    discount = 0.9
    values, model = np.zeros(5), environment.mdp(discount)
    for _ in range(100):
        quality = model.reward + discount * model.transition @ values
        values = quality.max(1)
    best = quality.argmax(1)
    assert set(best) == {0, 1}
    assert np.abs(quality[:, 0] - quality[:, 1]).min() > 0.1
    # The value belief has no spread to speak of, so sigma may be small against the values.
    settings = bbi_sampled.Config(horizon=100, discount=discount, samples=20, mdps=4, **choices)
    state, info = plan(jax.random.key(0), settings, environment.spaces(), known(environment))
    np.testing.assert_array_equal(state.actions, best)
    np.testing.assert_allclose(info.value_mean, values, rtol=0.02)
    assert (np.asarray(info.value_sd) < 0.02 * values).all()


@pytest.mark.slow
def test_nchain_of_the_paper():
    environment = make("nchain")
    state, _ = plan(jax.random.key(1), bbi_sampled.Config(), environment.spaces(), known(environment))
    np.testing.assert_array_equal(state.actions, np.ones(5))


@pytest.mark.slow
@pytest.mark.parametrize("values", ["gaussian", "joint"])
def test_with_and_without_jit(values):
    small = bbi_sampled.Config(values=values, horizon=2, mdps=2, samples=10, discount=0.9)
    spaces = Spaces(2, 2, True, 0.0, 1.0, support=2)
    state = bbi_sampled.init(jax.random.key(0), small, spaces)
    state = state._replace(belief=state.belief._replace(counts=jnp.zeros((2, 2, 3), jnp.int32).at[..., 0].set(5)))
    compiled, compiled_info = plan(jax.random.key(1), small, spaces, state)
    with jax.disable_jit():
        plain, plain_info = bbi_sampled.plan(jax.random.key(1), small, spaces, state)
    np.testing.assert_array_equal(compiled.actions, plain.actions)
    for first, second in zip(compiled_info, plain_info, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-4)


def test_the_belief_is_not_changed_by_a_plan_and_sigma_starts_afresh():
    small = bbi_sampled.Config(horizon=5, mdps=3, samples=10, discount=0.9, sigma_fraction=1e-5)
    state = bbi_sampled.init(jax.random.key(0), small, SPACES)
    after, info = plan(jax.random.key(1), small, SPACES, state)
    assert int(info.doublings) > 0
    assert int(info.resamples) > 0
    for before, kept in zip(jax.tree.leaves(state.belief), jax.tree.leaves(after.belief), strict=True):
        np.testing.assert_array_equal(before, kept)
    # From the same belief and key the same trouble comes again: nothing was carried over.
    _, again = plan(jax.random.key(1), small, SPACES, after)
    assert int(again.doublings) == int(info.doublings)


def test_update_act_and_policy():
    settings = bbi_sampled.Config()
    state = bbi_sampled.init(jax.random.key(0), settings, SPACES)
    state = state._replace(actions=jnp.asarray([2, 0, 1, 2]))
    step = Transition(jnp.asarray(1), jnp.asarray(2), jnp.asarray(0.5), jnp.asarray(3), jnp.asarray(False))
    after = bbi_sampled.update(settings, state, step)
    assert int(after.belief.counts.sum()) == 1
    assert int(after.belief.counts[1, 2, 3]) == 1
    assert float(after.belief.rewards.mean[1, 2]) == 0.5
    np.testing.assert_array_equal(after.actions, state.actions)
    np.testing.assert_array_equal(bbi_sampled.policy(settings, after), np.eye(3)[[2, 0, 1, 2]])
    for observation, action in enumerate([2, 0, 1, 2]):
        assert bbi_sampled.act(jax.random.key(0), settings, after, jnp.asarray(observation)) == action


def test_untrained_actions_are_spread_out(key, check):
    wide = Spaces(20_000, 4, False, 0.0, 1.0)
    draw = jax.jit(lambda one: bbi_sampled.init(one, bbi_sampled.Config(), wide).actions)
    check.frequencies(np.bincount(draw(key), minlength=4), np.ones(4))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"values": "table"}, "value belief"),
        ({"rule": "greedy"}, "action rule"),
        ({"final": "pooled"}, "final"),
        ({"discount": 0.0}, "discount"),
        ({"discount": 1.1}, "discount"),
        ({"horizon": 0}, "horizon"),
        ({"mdps": 0}, "mdps"),
        ({"quantile": 0.0}, "quantile"),
        ({"quantile": 1.0}, "quantile"),
        ({"tail": 0.0}, "tail"),
        ({"tail": 1.5}, "tail"),
        ({"samples": 5}, "utility_samples"),
        ({"utility_samples": 51}, "utility_samples"),
        ({"utilities": "none"}, "utilities"),
        ({"likelihood": "sum"}, "likelihood"),
        ({"sigma_fraction": 0.0}, "sigma"),
    ],
)
def test_wrong_settings(choices, message):
    with pytest.raises(UserError, match=message):
        bbi_sampled.Config(**choices)


def test_what_is_left_open_is_decided_as_documented():
    assert bbi_sampled.Config().value_belief() == "gaussian"
    assert bbi_sampled.Config(rule="thompson").value_belief() == "joint"
    assert bbi_sampled.Config(rule="thompson", values="gaussian").value_belief() == "gaussian"
    assert [bbi_sampled.Config().method1_settings(states).samples for states in (5, 99, 100, 264)] == [50, 50, 20, 20]
    assert bbi_sampled.Config(samples=33).method1_settings(264).samples == 33
    assert hash(bbi_sampled.Config()) == hash(dataclasses.replace(bbi_sampled.Config(mdps=11), mdps=10))


def test_span_of_values():
    spaces = make("nchain").spaces()
    belief = tabular.init(5, 2)
    assert float(bbi_sampled.value_span(bbi_sampled.Config(), spaces, belief)) == pytest.approx(1000.0)
    assert float(bbi_sampled.value_span(bbi_sampled.Config(discount=1.0, horizon=30), spaces, belief)) == pytest.approx(
        300.0
    )


def test_span_of_values_where_nobody_knows_the_rewards():
    spaces = make("nchain").spaces()._replace(reward_low=None, reward_high=None)
    belief = tabular.init(5, 2)
    # Nothing seen: the prior's typical reward, which is one.
    assert float(bbi_sampled.value_span(bbi_sampled.Config(), spaces, belief)) == pytest.approx(100.0)
    for reward in (2.0, 10.0):
        row = Transition(jnp.array(int(reward) % 5), jnp.array(0), jnp.array(reward), jnp.array(0), jnp.array(False))
        belief = tabular.update(belief, row)
    assert float(bbi_sampled.value_span(bbi_sampled.Config(), spaces, belief)) == pytest.approx(1000.0)


def test_an_update_that_follows_a_draw_solves_the_first_mdp(oracle):
    mdps = single(oracle.random_mdp(3, STATES, ACTIONS, count=MDPS))
    chosen = config(rule="optimistic", values="joint")
    actions, _ = joint_induction(chosen, jax.random.key(0), SPACES, mdps, jnp.zeros((MDPS, STATES)), True)
    first = jax.tree.map(lambda leaf: leaf[0], mdps)._replace(discount=jnp.asarray(chosen.discount))
    _, expected = bellman.backward_induction(first, chosen.horizon)
    np.testing.assert_array_equal(actions, expected[0])


def test_which_updates_follow_a_draw():
    def is_draw(observed, every):
        belief = tabular.init(2, 1)
        count = belief.rewards.count.at[0, 0].set(observed)
        belief = belief._replace(rewards=belief.rewards._replace(count=count))
        return bool(bbi_sampled._is_draw(bbi_sampled.Config(rule="optimistic", draw_every=every), belief))

    # An update at step t has seen t - 1 steps; from the second update on their numbers follow one another.
    steps = [step - 1 for step in schedule.update_steps(1000)][1:]
    drawn = [is_draw(step, 4) for step in steps]
    assert np.flatnonzero(drawn).tolist() == list(range(1, len(steps), 4))
    assert not any(is_draw(step, 0) for step in steps)


def test_foresight_pulls_towards_the_mean_mdp():
    state = bbi_sampled.init(jax.random.key(0), bbi_sampled.Config(), SPACES)

    def spread(**settings):
        chosen = bbi_sampled.Config(rule="optimistic", **settings)
        keys = jax.random.split(jax.random.key(1), 200)
        given = (chosen, chosen.prior, SPACES, state.belief, jnp.array(False))
        return float(jnp.std(jax.jit(lambda keys: bbi_sampled._draw(keys, *given).transition[:, 0, 0, 0])(keys)))

    # Four successors of one half each weigh 2, so ten visits ahead keep 10 / 12 of the variance.
    whole = spread(foresight=math.inf)
    assert spread() / whole == pytest.approx(math.sqrt(10 / 12), rel=1e-3)
    assert spread(foresight=1.0) / whole == pytest.approx(math.sqrt(1 / 3), rel=1e-3)
