"""Which steps learn, and which beliefs act, at every pace."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import UserError
from bellief.agents import bql, continuous_vdqn, gptd, pace, vdqn
from bellief.agents.schedule import update_steps
from bellief.envs import make, make_any
from bellief.experiments import compiled_loop, compiled_steps
from bellief.experiments.compiled_environments import make_box, make_tables
from bellief.experiments.event_loop import Snapshot
from bellief.sweeps.cells import expand
from bellief.sweeps.spec import Spec
from bellief.types import Transition

STEPS, WARM_UP = 36, 4
SCHEDULE = set(update_steps(STEPS))
VDQN = vdqn.Config(hidden_layers=1, width=3, batch=4, buffer=20, warm_up=WARM_UP, target_steps=7)


def agents_after_each_step(agent, config, environment="nchain"):
    """The agent's state before the first step, and after every step and plan of one run."""
    made = make_any(environment)
    box = environment == "pendulum"
    spaces = made.spaces if box else made.spaces()
    compiled = make_box(made, range(1)) if box else make_tables(made.outcomes)
    keys = compiled_steps.batch_keys(0, environment, agent.__name__, range(1))
    given = (update_steps(STEPS), list(range(1, STEPS + 1)), 10.0)
    events = compiled_loop.run_batch(keys, compiled, agent, config, spaces, *given, most=1)
    return [
        jax.tree.map(lambda leaf: np.array(leaf[0]), event.runs.agent)
        for event in events
        if isinstance(event, Snapshot)
    ]


def same(first, second):
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


def changes(states, part):
    """The steps t at which a part differs from what it was at t - 1; state number n is that after n steps, where a plan
    at step n + 1 is done already.
    """
    return [number + 1 for number in range(1, len(states)) if not same(part(states[number]), part(states[number - 1]))]


@pytest.mark.parametrize(("agent", "environment"), [(vdqn, "nchain"), (continuous_vdqn, "pendulum")])
def test_which_steps_learn(agent, environment):
    def learned(one):
        states = agents_after_each_step(agent, dataclasses.replace(VDQN, pace=one), environment)
        return states, changes(states, lambda state: state.weights)

    # A plan at step t knows t - 1 transitions, and so does a step that learns from the transition of step t - 1.
    every, after_warm_up = list(range(2, STEPS + 1)), range(WARM_UP + 2, STEPS + 1)
    for one in (pace.EVERY_STEP, pace.SCHEDULED_POLICY):
        states, steps = learned(one)
        assert steps[: STEPS - WARM_UP - 1] == list(after_warm_up)
        assert len(changes(states, lambda state: state.steps)) == STEPS
        if one == pace.SCHEDULED_POLICY:
            acting = changes(states, lambda state: state.acting)
            assert acting == sorted(SCHEDULE & set(after_warm_up))
            assert all(same(state.acting, state.weights) for step, state in enumerate(states) if step + 1 in SCHEDULE)
        else:
            assert all(state.acting is None for state in states)
    states, steps = learned(pace.SCHEDULED_LEARNING)
    assert steps == sorted(SCHEDULE & set(after_warm_up)) == [6, 10, 15, 21, 28, 36]
    assert int(states[-1].optimiser[0].count) == len(steps)
    assert len(states) == len(every) + 2


@pytest.mark.parametrize("settings", [{}, {"selection": "vpi", "update_rule": "mixture"}])
def test_the_acting_belief_of_bayesian_q_learning_is_that_of_the_last_plan(settings):
    states = agents_after_each_step(bql, bql.Config(**settings, pace=pace.SCHEDULED_POLICY))
    assert changes(states, lambda state: state.returns) == list(range(2, STEPS + 2))
    last = None
    for step, state in enumerate(states):
        last = state.returns if step + 1 in SCHEDULE and step < STEPS else last
        assert same(state.acting, last)
    plain = agents_after_each_step(bql, bql.Config(**settings))
    assert all(state.acting is None for state in plain)


@pytest.mark.parametrize("form", ["features", "kernel"])
def test_gptd_acts_on_the_values_of_the_last_plan_or_on_the_latest(form):
    scheduled = agents_after_each_step(gptd, gptd.Config(form=form, points=10), "pendulum")
    assert set(changes(scheduled, lambda state: state.weights)) <= SCHEDULE
    config = gptd.Config(form=form, points=10, pace=pace.EVERY_STEP)
    states = agents_after_each_step(gptd, config, "pendulum")
    steps = changes(states, lambda state: state.weights)
    assert len(set(steps) - SCHEDULE) > STEPS // 2
    for state in states[3:]:
        planned, _ = gptd.plan(jax.random.key(0), config, make_any("pendulum").spaces, state)
        assert np.allclose(planned.weights, state.weights, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("agent", [vdqn, bql])
def test_actions_follow_the_belief_in_force(agent):
    """With the two beliefs far apart, policy and actions are those of the older."""
    spaces = make("nchain").spaces()
    config = agent.Config(pace=pace.SCHEDULED_POLICY, **({"hidden_layers": 0} if agent is vdqn else {}))
    state = agent.init(jax.random.key(0), config, spaces)
    seen = Transition(*map(jnp.asarray, (0, 1, 0.0, 1, False)))

    def preferring(action, belief):
        if agent is bql:
            return belief._replace(mean=jnp.zeros((5, 2)).at[:, action].set(1e6))
        (layer,) = belief.mean
        return belief._replace(mean=(layer._replace(bias=jnp.zeros(2).at[action].set(1e6)),))

    name = "weights" if agent is vdqn else "returns"
    belief = getattr(state, name)
    state = state._replace(**{name: preferring(1, belief), "acting": preferring(0, belief)})
    assert agent.policy(config, state)[:, 0].tolist() == [1.0] * 5
    assert int(agent.act(jax.random.key(1), config, state, jnp.array(2))) == 0
    state = agent.update(config, state, seen)
    assert int(agent.act(jax.random.key(1), config, state, jnp.array(2))) == 0
    state, _ = agent.plan(jax.random.key(2), config, spaces, state)
    assert int(agent.act(jax.random.key(1), config, state, jnp.array(2))) == 1


# Identities of VDQN's and BQL's cells before there was a setting.
IDS = ["395a12892a3295c8dc99", "494d1cb5cf7902c65ada"]


def test_the_usual_pace_is_not_part_of_a_cell():
    """Sweeps from before the setting existed have the same cells now."""
    agents = [{"name": "vdqn"}, {"name": "bql"}]
    spec = Spec(name="chains", bellief="0.2", steps=20, runs=2, environments=["nchain"], agents=agents)
    cells = [setup.cells[0] for setup in expand(spec)]
    assert all("pace" not in cell.identity["agent"]["settings"] for cell in cells)
    assert [cell.id for cell in cells] == IDS


@pytest.mark.parametrize(
    ("make_config", "told"),
    [
        (lambda: vdqn.Config(pace="often"), "vdqn has no pace 'often'; choose one of every-step, scheduled-policy, "),
        (lambda: bql.Config(pace=pace.SCHEDULED_LEARNING), "bql has no pace 'scheduled-learning'; choose one of "),
        (lambda: gptd.Config(pace=pace.SCHEDULED_LEARNING), "gptd has no pace 'scheduled-learning'; choose one of "),
        (lambda: gptd.Config(pace=pace.EVERY_STEP, explore="sample"), "gptd follows a draw until the next plan"),
    ],
)
def test_paces_that_are_not_there(make_config, told):
    with pytest.raises(UserError, match=told):
        make_config()
