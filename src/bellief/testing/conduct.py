"""Rules about what an agent does: it depends on its arguments alone, however it is called, and is valid."""

import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bellief.agents.saved_agent import load_agent, save_agent
from bellief.errors import UserError
from bellief.testing.programs import read_program, same_program
from bellief.testing.trial import (
    PLAN_STEPS,
    STEPS,
    TOLERANCE,
    Course,
    Trial,
    difference,
    fast_jit,
    key,
    named_leaves,
    numbers,
    transition,
)

# Different keys that must not all lead to the same run.
_SEEDS = 8
_REWARDS = {
    "rewards of the size 1e-6": lambda value: 1e-6 * value,
    "rewards of the size 1e6": lambda value: 1e6 * value,
    "rewards that are all equal": lambda value: 1.0,
}


def check_traces(trial: Trial) -> None:
    """Every function is traced once, however many steps are taken: each trace more is a compilation more."""
    assert trial.course is not None  # there must have been a run
    for name, count in trial.traces.items():
        if count > 1:
            raise trial.fail(f"`{name}` was compiled {count} times in one short run, although all shapes are equal")


def check_repeats(trial: Trial) -> None:
    """Results depend on the arguments alone: the same program at every trace, the same run after any other runs."""
    for name, given in _arguments(trial).items():
        function = getattr(trial.plain, name)
        if not same_program(function, function, *given):
            raise trial.fail(
                f"`{name}` is not the same when it is called again, so it depends on something outside its arguments, "
                "such as a global variable or NumPy's random numbers"
            )
    trial.drive(trial.compiled, 1)
    if not _same_course(trial.course, trial.drive(trial.compiled, 0)):
        raise trial.fail("two runs with the same keys differ, so something is kept between calls outside State")


def check_jit(trial: Trial) -> None:
    """Functions give the same under `jax.jit` and without it, up to rounding."""
    for name, given in _arguments(trial).items():
        plain, compiled = (getattr(functions, name)(*given) for functions in (trial.plain, trial.compiled))
        path = difference(plain, compiled, TOLERANCE)
        if path is not None:
            raise trial.fail(f"`{name}` gives different results with and without jit, in {path}")


def check_seeding(trial: Trial) -> None:
    """Whatever is random comes from the keys: runs with different keys are not all the same.

    Agents that draw nothing and use no key pass. An agent that explores less than about once in fifty steps
    should be checked with settings that make it explore more.
    """
    arguments = _arguments(trial)
    programs = {
        name: read_program(getattr(trial.plain, name), *arguments[name]) for name in ("init", "plan", "act", "update")
    }
    for name in ("init", "plan", "act"):
        if programs[name].draws and not programs[name].uses_first:
            raise trial.fail(f"`{name}` draws random numbers without its key, so every run has the same ones")
    states = [trial.compiled.init(key(seed, "init")) for seed in range(2)]
    if programs["update"].draws and difference(*states) is None:
        raise trial.fail(
            "`update` draws random numbers, but `init` puts nothing of its key into State to draw them from"
        )
    if not any(programs[name].uses_first for name in ("init", "plan", "act")):
        return
    courses = [trial.drive(trial.compiled, seed) for seed in range(1, _SEEDS)]
    if all(_same_course(trial.course, course) for course in courses):
        raise trial.fail(f"runs with {_SEEDS} different keys are all the same; draw everything from the keys given")


def check_lanes(trial: Trial) -> None:
    """Runs side by side under `jax.vmap` do not touch one another, and equal the runs alone up to rounding."""

    def whole_turn(init_key, plan_key, act_key, observation, observed):
        state, info = trial.plain.plan(plan_key, trial.plain.init(init_key))
        state = trial.plain.update(state, observed)
        return state, info, trial.plain.act(act_key, state, observation)

    lanes = [
        (key(seed, "init"), key(seed, "plan"), key(seed, "act"), np.int32(seed % trial.spaces.states), observed)
        for seed, observed in enumerate(turn.transition for turn in trial.course.turns[:3])
    ]
    together = fast_jit(jax.vmap(whole_turn))

    def run(first, second):
        results = together(*jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), first, second))
        return [jax.tree.map(lambda leaf, lane=lane: leaf[lane], results) for lane in range(2)]

    pair, other = run(lanes[0], lanes[1]), run(lanes[0], lanes[2])
    path = difference(pair[0], other[0])
    if path is not None:
        raise trial.fail(f"a run under vmap depends on the run beside it, in {path}")
    for lane, (init_key, plan_key, act_key, observation, observed) in enumerate(lanes[:2]):
        state, info = trial.compiled.plan(plan_key, trial.compiled.init(init_key))
        state = trial.compiled.update(state, observed)
        alone = state, info, trial.compiled.act(act_key, state, observation)
        path = difference(alone, pair[lane], TOLERANCE)
        if path is not None:
            raise trial.fail(f"a run under vmap is not the same as the run alone, in {path}")


def check_resume(trial: Trial) -> None:
    """A run that is saved, loaded and continued is, bit for bit, the run that was never interrupted."""
    half = STEPS // 2
    turn = trial.course.turns[half]
    before = trial.drive(trial.compiled, 0, steps=half)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.npz"
        try:
            save_agent(path, trial.agent, trial.config, trial.spaces, before.state)
            saved = load_agent(path, trial.agent)
        except UserError as error:
            raise trial.fail(f"it cannot be saved and loaded ({str(error).rstrip('.')})") from error
    if saved.config != trial.config:
        raise trial.fail("its settings are not the same after saving and loading")
    trial.drive(trial.compiled, 1)  # another run in between, which must leave no traces
    rest = trial.drive(trial.compiled, 0, begin=(half, saved.state, turn.observation))
    if not _same_course(Course(trial.course.turns[half:], trial.course.state, trial.course.observation), rest):
        raise trial.fail("a run that was saved and loaded goes on differently, so State does not hold all that matters")


def check_learning(trial: Trial) -> None:
    """`update` takes notice of a step and of its reward.

    An agent that knows the model (it has `informed`) or says `LEARNS = False` need not.
    """
    if hasattr(trial.agent, "informed") or getattr(trial.agent, "LEARNS", True) is False:
        return
    state = trial.course.turns[0].state
    steps = [transition(0, np.int32(0), reward, 1, False) for reward in (1.0, 0.25)]
    after = [trial.compiled.update(state, step) for step in steps]
    if difference(state, after[0]) is None:
        raise trial.fail("`update` leaves State as it was; an agent that is not meant to learn says LEARNS = False")
    if difference(*after) is None:
        raise trial.fail("`update` takes no notice of the reward")


def check_termination(trial: Trial) -> None:
    """What lies behind an end is worth nothing: the next state of a step that ended must not matter.

    Checked on what the agent shows (Info, policy, actions) and only where episodes can end.
    """
    if not trial.spaces.terminates or trial.spaces.states < 3:
        return
    good, bad = (_learn_of_ends(trial, next_state) for next_state in (0, 2))
    if difference(good, bad, TOLERANCE) is not None:
        raise trial.fail("it values the state after the end of an episode, although nothing follows an end")


def check_extreme_rewards(trial: Trial) -> None:
    """State, Info and policy stay finite, and actions valid, for rewards of any size."""
    for description, reward in _REWARDS.items():
        # Where all rewards are equal, so are their bounds: a scale that is taken from them is zero.
        functions = trial.told_bounds(1.0, 1.0) if reward(0.0) else trial.compiled
        course = trial.drive(functions, 0, reward)
        shown = {
            "State": [*(turn.state for turn in course.turns), course.state],
            "Info": [turn.info for turn in course.turns],
            "policy": trial.compiled.policy(course.state),
        }
        for name, tree in shown.items():
            for path, leaf in named_leaves(tree):
                if not np.isfinite(numbers(leaf).astype(np.float64)).all():
                    where = path[path.find(".") :] if "." in path else ""
                    raise trial.fail(f"{name}{where} is not finite after {description}")
        actions = np.array([turn.action for turn in course.turns])
        if (actions < 0).any() or (actions >= trial.spaces.actions).any():
            raise trial.fail(f"`act` returns a number that is no action after {description}")


def _arguments(trial: Trial) -> dict[str, tuple[Any, ...]]:
    """Arguments for one call of every function. They come from a compiled run, so that rounding does not add up."""
    turn = trial.course.turns[-1]
    return {
        "init": (key(0, "init"),),
        "plan": (key(0, "plan"), turn.state),
        "act": (key(0, "act"), turn.state, np.int32(turn.observation)),
        "update": (turn.state, turn.transition),
        "policy": (turn.state,),
    }


def _same_course(first: Course, second: Course) -> bool:
    trees = [([(turn.info, turn.action) for turn in course.turns], course.state) for course in (first, second)]
    return difference(trees[0], trees[1]) is None


def _learn_of_ends(trial: Trial, next_state: int) -> Any:
    """What an agent shows that found state 0 good and state 2 bad, and episodes to end from state 1."""
    state = trial.compiled.init(key(0, "init"))
    state, _ = trial.compiled.plan(key(0, "plan"), state)
    last = trial.spaces.actions - 1
    for _ in range(4):
        for action in range(trial.spaces.actions):
            state = trial.compiled.update(state, transition(0, np.int32(action), 3.0, 0, False))
            state = trial.compiled.update(state, transition(2, np.int32(action), -3.0, 2, False))
        state = trial.compiled.update(state, transition(1, np.int32(last), 0.5, 1, True))
        state = trial.compiled.update(state, transition(1, np.int32(0), 0.0, next_state, True))
    state, info = trial.compiled.plan(key(0, "plan", PLAN_STEPS[-1]), state)
    actions = [
        trial.compiled.act(key(seed, "act"), state, np.int32(observation))
        for observation in range(trial.spaces.states)
        for seed in range(3)
    ]
    return info, trial.compiled.policy(state), actions
