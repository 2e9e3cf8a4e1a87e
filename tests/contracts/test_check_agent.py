"""`check_agent` finds what is wrong: an agent for each way of breaking a rule, and the rule that catches it."""

import dataclasses
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.contracts import broken
from tests.contracts.broken import Info, State, agent

from bellief import UserError, testing
from bellief.envs import make

pytestmark = pytest.mark.long


def test_a_sound_agent_passes():
    testing.check_agent(agent())


def test_a_sound_agent_passes_where_nothing_ends():
    testing.check_agent(agent(), broken.Config(epsilon=0.3), make("doubleloop"))


def test_an_unknown_name_is_a_mistake():
    with pytest.raises(UserError, match="did you mean 'psrl'"):
        testing.check_agent("psrll")


# --- form


def lacks_a_part():
    incomplete = agent()
    del incomplete.policy
    return incomplete


def cannot_be_hashed():
    class Unhashable(broken.Agent):
        __hash__ = None

    return Unhashable(**vars(agent()))


def plans_at_steps_that_do_not_exist():
    return agent(plan_steps=lambda steps: [0, steps + 1])


def has_a_mutable_config():
    @dataclasses.dataclass
    class Config:
        epsilon: float = 0.5
        step: float = 0.5
        discount: float = 0.9

    return agent(Config=Config)


def has_a_list_in_its_config():
    @dataclasses.dataclass(frozen=True)
    class Config(broken.Config):
        layers: list = dataclasses.field(default_factory=list)

    return agent(Config=Config)


def has_a_config_without_defaults():
    @dataclasses.dataclass(frozen=True)
    class Config:
        epsilon: float

    return agent(Config=Config)


def has_configs_that_are_never_equal():
    @dataclasses.dataclass(frozen=True, eq=False)
    class Config:
        epsilon: float = 0.5
        step: float = 0.5
        discount: float = 0.9

    return agent(Config=Config)


def keeps_a_python_number_in_its_state():
    return agent(init=lambda key, config, spaces: (0.0, broken.init(key, config, spaces)))


def grows_its_state():
    def update(config, state, transition):
        state = broken.update(config, state, transition)
        return state._replace(q_values=jnp.concatenate([state.q_values, state.q_values[:1]]))

    return agent(update=update)


def changes_a_type():
    def plan(key, config, spaces, state):
        state, info = broken.plan(key, config, spaces, state)
        return state._replace(q_values=state.q_values.astype(jnp.bfloat16)), info

    return agent(plan=plan)


def begins_weakly_typed():
    class Counting(NamedTuple):
        inner: State
        steps: jax.Array

    return agent(
        init=lambda key, config, spaces: Counting(broken.init(key, config, spaces), jnp.asarray(0)),
        plan=lambda key, config, spaces, state: (state, broken.plan(key, config, spaces, state.inner)[1]),
        act=lambda key, config, state, observation: broken.act(key, config, state.inner, observation),
        update=lambda config, state, transition: Counting(
            broken.update(config, state.inner, transition), state.steps + jnp.int32(1)
        ),
        policy=lambda config, state: broken.policy(config, state.inner),
    )


def plans_without_info():
    return agent(plan=lambda key, config, spaces, state: state._replace())


def looks_at_values_while_traced():
    def update(config, state, transition):
        return state if float(transition.reward) < 0 else broken.update(config, state, transition)

    return agent(update=update)


def takes_an_action_too_many():
    return agent(act=lambda key, config, state, observation: broken.act(key, config, state, observation) + 1)


def takes_half_an_action():
    return agent(act=lambda key, config, state, observation: jnp.float32(0.5))


def takes_several_actions():
    return agent(act=lambda key, config, state, observation: jnp.zeros(1, jnp.int32))


def has_a_policy_that_does_not_sum_to_one():
    return agent(policy=lambda config, state: 2 * broken.policy(config, state))


def has_a_policy_of_the_wrong_shape():
    return agent(policy=lambda config, state: broken.policy(config, state)[0])


def has_a_policy_that_it_does_not_follow():
    return agent(act=lambda key, config, state, observation: jnp.argmax(state.q_values[observation]))


# --- conduct


@jax.tree_util.register_pytree_node_class
class Stamped:
    """A state with a number that JAX takes for a part of its structure."""

    def __init__(self, inner, stamp):
        self.inner, self.stamp = inner, stamp

    def tree_flatten(self):
        return (self.inner,), self.stamp

    @classmethod
    def tree_unflatten(cls, stamp, children):
        return cls(children[0], stamp)


def stamped(stamp_of):
    def update(config, state, transition):
        return Stamped(broken.update(config, state.inner, transition), stamp_of(state.stamp))

    return agent(
        init=lambda key, config, spaces: Stamped(broken.init(key, config, spaces), 0),
        plan=lambda key, config, spaces, state: (state, broken.plan(key, config, spaces, state.inner)[1]),
        act=lambda key, config, state, observation: broken.act(key, config, state.inner, observation),
        update=update,
        policy=lambda config, state: broken.policy(config, state.inner),
    )


def is_compiled_again_and_again():
    return stamped(lambda stamp: min(stamp + 1, 2))  # each number is a compilation, and two tell as much as eight


def draws_from_numpy():
    generator = np.random.default_rng(0)
    return agent(act=lambda key, config, state, observation: jnp.int32(generator.integers(2)) + 0 * observation)


def counts_its_calls_in_a_global():
    calls = itertools.count(1)

    def update(config, state, transition):
        config = dataclasses.replace(config, step=1 / next(calls))
        return broken.update(config, state, transition)

    return agent(update=update)


def acts_on_a_stale_state():
    """The classic cache: the state that was seen first is the one that is used for ever."""
    seen: dict[str, Any] = {}
    return agent(
        act=lambda key, config, state, observation: broken.act(
            key, config, seen.setdefault("state", state), observation
        )
    )


def on_host(function, dtype, value):
    return jax.pure_callback(function, jax.ShapeDtypeStruct((), dtype), value, vmap_method="sequential")


def remembers_outside_its_state():
    """Compiled, and yet not pure: the host counts."""
    calls = itertools.count()

    def host(value):
        return np.float32(value + next(calls))

    def update(config, state, transition):
        reward = on_host(host, jnp.float32, transition.reward)
        return broken.update(config, state, transition._replace(reward=reward))

    return agent(update=update)


def is_another_one_when_compiled():
    def act(key, config, state, observation):
        action = broken.act(key, config, state, observation)
        return action if isinstance(action, jax.core.Tracer) else 1 - action

    return agent(act=act)


def ignores_its_key():
    return agent(act=lambda key, config, state, observation: broken.act(jax.random.key(0), config, state, observation))


def always_begins_with_the_same_key():
    return agent(init=lambda key, config, spaces: broken.init(jax.random.key(0), config, spaces))


def takes_nothing_from_its_key():
    """The upper half of a key's data is zero for every small seed, and it is made so for all here."""

    def unseeded(key):
        return jax.random.key(jax.random.key_data(key)[0] * 0)

    def update(config, state, transition):
        return State(state.q_values.at[transition.state, transition.action].add(transition.reward), state.key)

    return agent(
        update=update,
        init=lambda key, config, spaces: broken.init(unseeded(key), config, spaces),
        act=lambda key, config, state, observation: broken.act(unseeded(key), config, state, observation),
    )


@jax.custom_batching.custom_vmap
def _centred(values):
    return values


@_centred.def_vmap
def _centred_over_lanes(axis_size, in_batched, values):
    return values - values.mean(axis=0), in_batched[0]


def looks_at_its_neighbours():
    def update(config, state, transition):
        state = broken.update(config, state, transition)
        return state._replace(q_values=_centred(state.q_values))

    return agent(update=update)


@jax.custom_batching.custom_vmap
def _shifted(values):
    return values


@_shifted.def_vmap
def _shifted_if_batched(axis_size, in_batched, values):
    return values + 1, in_batched[0]


def is_another_one_side_by_side():
    def update(config, state, transition):
        state = broken.update(config, state, transition)
        return state._replace(q_values=_shifted(state.q_values))

    return agent(update=update)


def loses_a_part_of_its_state():
    """The number of steps is kept on the host, in no array, so that no file holds it."""
    memory = {"steps": 0}

    def count(reward):
        memory["steps"] += 1
        return np.float32(reward)

    def recall(action):
        return np.int32((action + memory["steps"] // 3) % 2)

    def update(config, state, transition):
        reward = on_host(count, jnp.float32, transition.reward)
        return broken.update(config, state, transition._replace(reward=reward))

    def act(key, config, state, observation):
        action = broken.act(key, config, state, observation)
        return on_host(recall, jnp.int32, action)

    return agent(update=update, act=act)


def has_settings_that_no_file_holds():
    @dataclasses.dataclass(frozen=True)
    class Config(broken.Config):
        network: Any = len

    return agent(Config=Config)


def never_learns():
    return agent(update=lambda config, state, transition: state)


def only_counts():
    def update(config, state, transition):
        return state._replace(q_values=state.q_values.at[transition.state, transition.action].add(1))

    return agent(update=update)


def values_what_follows_an_end():
    def update(config, state, transition):
        return broken.update(config, state, transition._replace(terminated=jnp.zeros_like(transition.terminated)))

    return agent(update=update)


def divides_by_its_scale():
    """NaN where all rewards were equal, as with every normalisation by an unguarded spread."""

    def plan(key, config, spaces, state):
        spread = jnp.std(state.q_values)
        return state, Info(jnp.max(state.q_values / spread, axis=-1))

    return agent(plan=plan)


def overflows():
    def plan(key, config, spaces, state):
        return state, Info(jnp.max(jnp.exp(state.q_values), axis=-1))

    return agent(plan=plan)


def trusts_the_bounds():
    """Finite for every reward, unless the environment says that all are equal."""

    def plan(key, config, spaces, state):
        span = 1.0 if spaces.reward_low is None else spaces.reward_high - spaces.reward_low
        return state, Info(jnp.max(state.q_values, axis=-1) / jnp.float32(span))

    return agent(plan=plan)


BROKEN = [
    (lacks_a_part, testing.check_parts, "it has no `policy`"),
    (cannot_be_hashed, testing.check_parts, "cannot be hashed"),
    (plans_at_steps_that_do_not_exist, testing.check_parts, "`plan_steps(50)`"),
    (has_a_mutable_config, testing.check_config, "not a frozen dataclass"),
    (has_a_list_in_its_config, testing.check_config, "its setting 'layers' is a list"),
    (has_configs_that_are_never_equal, testing.check_config, "are not equal"),
    (keeps_a_python_number_in_its_state, testing.check_state, "State must hold arrays only"),
    (grows_its_state, testing.check_state, "`update` changes State.q_values from float32[3, 2] to float32[4, 2]"),
    (changes_a_type, testing.check_state, "`plan` changes State.q_values from float32[3, 2] to bfloat16[3, 2]"),
    (begins_weakly_typed, testing.check_state, "`update` changes State.steps from weakly typed int32[] to int32[]"),
    (plans_without_info, testing.check_state, "`plan` must return a pair"),
    (looks_at_values_while_traced, testing.check_state, "`update` raised ConcretizationTypeError"),
    (takes_an_action_too_many, testing.check_actions, "returned action 2, but actions are 0 to 1"),
    (takes_half_an_action, testing.check_actions, "but returned float32[]"),
    (takes_several_actions, testing.check_actions, "but returned int32[1]"),
    (has_a_policy_that_does_not_sum_to_one, testing.check_policy, "is not a distribution"),
    (has_a_policy_of_the_wrong_shape, testing.check_policy, "must be floats of shape [3, 2]"),
    (has_a_policy_that_it_does_not_follow, testing.check_policy, "where `policy` gives it probability 0.75"),
    (draws_from_numpy, testing.check_repeats, "`act` is not the same when it is called again"),
    (counts_its_calls_in_a_global, testing.check_repeats, "`update` is not the same when it is called again"),
    (acts_on_a_stale_state, testing.check_actions, "uses a value that an earlier call kept outside State"),
    (remembers_outside_its_state, testing.check_repeats, "kept between calls outside State"),
    (is_another_one_when_compiled, testing.check_jit, "`act` gives different results with and without jit"),
    (ignores_its_key, testing.check_seeding, "`act` draws random numbers without its key"),
    (always_begins_with_the_same_key, testing.check_seeding, "`init` draws random numbers without its key"),
    (takes_nothing_from_its_key, testing.check_seeding, "8 different keys are all the same"),
    (looks_at_its_neighbours, testing.check_lanes, "depends on the run beside it"),
    (is_another_one_side_by_side, testing.check_lanes, "not the same as the run alone"),
    (has_settings_that_no_file_holds, testing.check_resume, "The setting 'network' is a builtin_function_or_method"),
    (never_learns, testing.check_learning, "`update` leaves State as it was"),
    (only_counts, testing.check_learning, "no notice of the reward"),
    (values_what_follows_an_end, testing.check_termination, "nothing follows an end"),
    (divides_by_its_scale, testing.check_extreme_rewards, "is not finite after"),
    (overflows, testing.check_extreme_rewards, "Info.value_mean is not finite after rewards of the size 1e6"),
    (trusts_the_bounds, testing.check_extreme_rewards, "is not finite after rewards that are all equal"),
]


@pytest.mark.parametrize(("make_agent", "rule", "words"), BROKEN, ids=[case[0].__name__ for case in BROKEN])
def test_broken_agent_is_caught(make_agent, rule, words):
    """By `check_agent`, in one sentence with these words; the rules before the one that is broken are kept."""
    trial = testing.prepare(make_agent())
    for earlier in testing.RULES[: testing.RULES.index(rule)]:
        earlier(trial)
    with pytest.raises(testing.AgentCheckError) as caught:
        rule(trial)
    sentence = str(caught.value)
    assert sentence.startswith("Agent 'tried': ")
    assert words in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_config_without_defaults_is_caught_before_anything_else():
    with pytest.raises(testing.AgentCheckError, match="Config cannot be made without arguments"):
        testing.check_agent(has_a_config_without_defaults())


@pytest.mark.parametrize(
    ("make_agent", "rule", "words"),
    [
        # Both are caught by an earlier rule too; here the later one must see them by itself.
        (is_compiled_again_and_again, testing.check_traces, "was compiled"),
        (loses_a_part_of_its_state, testing.check_resume, "goes on differently"),
    ],
)
def test_rule_stands_by_itself(make_agent, rule, words):
    trial = testing.prepare(make_agent())
    with pytest.raises(testing.AgentCheckError, match=words):
        rule(trial)
    with pytest.raises(testing.AgentCheckError):
        testing.check_agent(make_agent())


def test_agent_that_says_so_need_not_learn():
    idle = agent(update=lambda config, state, transition: state, LEARNS=False)
    testing.check_learning(testing.prepare(idle))


def test_agent_without_any_luck_is_let_off():
    class Table(NamedTuple):
        q_values: jax.Array

    def learn(config, state, transition):
        return Table(state.q_values.at[transition.state, transition.action].add(transition.reward))

    testing.check_agent(
        agent(
            init=lambda key, config, spaces: Table(jnp.zeros((spaces.states, spaces.actions), jnp.float32)),
            update=learn,
            act=lambda key, config, state, observation: jnp.argmax(state.q_values[observation]),
            policy=lambda config, state: jax.nn.one_hot(jnp.argmax(state.q_values, axis=-1), 2),
        )
    )


def test_small_config_makes_what_it_knows_small_and_leaves_the_rest():
    from bellief.agents import bbi_sampled, psrl_paper

    small = testing.small_config(bbi_sampled.Config)
    assert (small.horizon, small.mdps, small.samples) == (3, 2, 8)
    assert small.prior == bbi_sampled.Config().prior
    assert testing.small_config(psrl_paper.Config) == psrl_paper.Config()
