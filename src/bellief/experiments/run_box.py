"""`bellief.run` for continuous states: opening environments, running chunks, gathering what came of them."""

import contextlib
import dataclasses
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bellief.agents.schedule import steps_of
from bellief.envs import Environment, make_any
from bellief.envs.box import BoxEnvironment
from bellief.errors import UserError
from bellief.experiments import box_loop, box_stepped, devices, loop, stepped
from bellief.experiments.checkpoints import Checkpoints
from bellief.experiments.chunks import by_run, chunk_keys, run_chunks
from bellief.experiments.collect import EPISODE_COUNTS
from bellief.experiments.devices import Places, find_places
from bellief.experiments.results import RunResult, check_new_folder, check_size, last_tenth, reading_steps, summarise
from bellief.experiments.settings import build_config
from bellief.registry import CONTINUOUS, Entry, looks_like_gymnasium
from bellief.types import default_precision

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclasses.dataclass(frozen=True, eq=False)
class BoxRunResult(RunResult):
    """Curves of every run in a continuous environment, and its episodes up to each reading.

    `over[r, g]` episodes of run r were over after `step[g]` steps, `falls` of them because the environment ended them,
    and `length` is how long they were together. `survived` is the length of the last episode that was over, smoothed
    over steps with the half-life. There is no table of the policy.

    >>> import bellief
    >>> result = bellief.run("pendulum", "gptd", steps=30, runs=2)
    >>> type(result).__name__, result.steps_survived(0, 30).shape, result.final_steps_survived.shape
    ('BoxRunResult', (2,), (2,))
    """

    over: Int[np.ndarray, "runs G"]
    falls: Int[np.ndarray, "runs G"]
    length: Float[np.ndarray, "runs G"]
    survived: Float[np.ndarray, "runs G"]

    def steps_survived(self, first: int, last: int) -> Float[np.ndarray, "runs"]:
        """Mean length of the episodes that were over between two readings (0 for the start).

        Where none was, the steps since the last one was over: the present episode is at least as long.
        """
        at = {0: 0} | {int(step): number + 1 for number, step in enumerate(self.step)}
        for step in (first, last):
            if step not in at:
                raise UserError(f"There is no reading at step {step}; ask for one with readings=({step},).")
        return mean_length(self.over, self.length, at[first], at[last], last)

    @property
    def final_steps_survived(self) -> Float[np.ndarray, "runs"]:
        """Mean length of the episodes of the last tenth of the run."""
        return self.steps_survived(last_tenth(self.steps), self.steps)

    def episode_summary(self) -> dict[str, Any]:
        """Number of episodes and falls, and each run's mean length over the episodes of its last tenth."""
        falls = self.falls[:, -1]
        summary = {
            "count": int(self.over[:, -1].sum()),
            "falls": {"median": float(np.median(falls)), "most": int(falls.max())},
            "final_return": None,
            "final_length": summarise(self.final_steps_survived),
        }
        if self.episodes is not None:
            late = self.episodes[self.episodes["step"] > last_tenth(self.steps)].groupby("run")
            returns = late["reward"].mean().to_numpy()
            summary["final_return"] = summarise(returns) if len(returns) else None
        return summary

    def to_dict(self) -> dict[str, Any]:
        """The document that `bellief run --json` prints."""
        return super().to_dict() | {"episodes": self.episode_summary()}

    @property
    def label(self) -> str:
        """The agent's name in plots; BBI in our mode has the colour of what is ours."""
        if self.agent == "bbi" and self.settings.get("mode") == "own":
            return "bbi-own"
        return self.agent

    def to_pandas(self) -> pd.DataFrame:
        """One row per run and reading; besides the rewards, episodes over, falls and smoothed steps survived."""
        columns = {"over": self.over, "falls": self.falls, "survived": self.survived}
        return super().to_pandas().assign(**{name: array.ravel() for name, array in columns.items()})

    def plot(self, ax: "Axes | None" = None, **style: Any) -> "Axes":
        """Smoothed steps survived: mean, 5-95 percentile band, standard error lines."""
        from bellief.plots.curves import plot_curve

        wanted = {"label": self.label, "ylabel": "steps survived, smoothed"} | style
        return plot_curve(self.step, self.survived, ax=ax, **wanted)

    def save(self, folder: str | Path) -> None:
        """Write result.json, curves.csv, plans.csv and, of real environments, episodes.csv into a new folder, whole or
        not at all.
        """
        folder = check_new_folder(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            (work / "result.json").write_text(json.dumps(self.to_dict(), indent=2) + "\n")
            self.to_pandas().to_csv(work / "curves.csv", index=False)
            self.info.to_csv(work / "plans.csv", index=False)
            if self.episodes is not None:
                self.episodes.to_csv(work / "episodes.csv", index=False)
            work.chmod(0o755)
            work.rename(folder)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise


def mean_length(
    over: Int[np.ndarray, "runs G"], length: Float[np.ndarray, "runs G"], first: int, last: int, step: int
) -> Float[np.ndarray, "runs"]:
    """Mean length of the episodes that were over between two readings, counted from 1 (0 for the start).

    Where none was, the steps from the last one before up to `step`, that of the later reading.
    """
    over, length = (np.pad(array, ((0, 0), (1, 0))) for array in (over, length))
    number, total = (array[:, last] - array[:, first] for array in (over, length))
    return np.where(number > 0, total / np.maximum(number, 1), step - length[:, last])


class Compiled:
    """One of our environments, stepped by the compiled loop."""

    real = False
    kind = CONTINUOUS
    model = None

    def __init__(self, environment: BoxEnvironment):
        self.environment, self.name = environment, environment.name

    def run_chunk(self, keys, numbers, seed, module, config, plans, readings, half_life, *resume) -> Generator[Any]:
        """The events of one chunk, or those after a snapshot."""
        del seed
        constants = box_loop.stack_constants(self.environment, numbers)
        return box_loop.run_chunk(
            keys, self.environment, constants, module, config, plans, readings, half_life, *resume
        )

    def shapes(self, keys: loop.RunKeys, module: Any, config: Any) -> Any:
        """Shapes and dtypes of a snapshot's `runs`."""
        constants = box_loop.stack_constants(self.environment, range(len(keys.agent)))
        return box_loop.run_shapes(keys, self.environment, constants, module, config)


class Real:
    """A Gymnasium environment, made anew for every run and stepped as it is."""

    real = True
    kind = CONTINUOUS
    model = None

    def __init__(self, name: str, parameters: dict[str, Any], spaces: Any):
        self.name, self.parameters, self.spaces = name, parameters, spaces

    def _simulator(self) -> box_stepped.BoxSimulator:
        from bellief.envs.discrete import Index, make_gymnasium

        env = make_gymnasium(self.name, **self.parameters)
        action = Index.of(env.action_space, f"The actions of {self.name}")

        def flat(observation: Any) -> np.ndarray:
            return np.ravel(observation).astype(default_precision())

        def step(number: int) -> tuple[np.ndarray, float, bool, bool]:
            observation, reward, terminated, truncated, _ = env.step(action.decode(number))
            return flat(observation), float(reward), bool(terminated), bool(truncated)

        return box_stepped.BoxSimulator(lambda seed: flat(env.reset(seed=seed)[0]), step, env.close)

    def run_chunk(self, keys, numbers, seed, module, config, plans, readings, half_life, *resume) -> Generator[Any]:
        """The events of one chunk, or those after a snapshot."""
        simulators = [self._simulator() for _ in numbers]
        seeds = [stepped.environment_seed(seed, self.name, number) for number in numbers]
        try:
            yield from box_stepped.run_chunk(
                keys, simulators, seeds, module, config, self.spaces, plans, readings, half_life, *resume
            )
        finally:
            for one in simulators:
                one.close()

    def shapes(self, keys: loop.RunKeys, module: Any, config: Any) -> Any:
        """Shapes and dtypes of a snapshot's `runs`."""
        return stepped.run_shapes(keys, module, config, self.spaces)


def open_box(env: Any, parameters: dict[str, Any]) -> Compiled | Real | None:
    """The environment if its states are continuous, else None."""
    if isinstance(env, BoxEnvironment):
        return Compiled(env)
    if isinstance(env, Environment):
        return None
    if not looks_like_gymnasium(env):
        environment = make_any(env, **parameters)
        return Compiled(environment) if isinstance(environment, BoxEnvironment) else None
    # Gymnasium is imported only where it is used: the compiled loop runs on machines without it.
    from bellief.envs import continuous

    real, own, termination = continuous.open_gymnasium(env, parameters)
    with contextlib.closing(real):
        if not continuous.has_box(real):
            return None
        return Real(env, own, continuous.box_spaces(real, env, termination))


def run_box(
    world: Compiled | Real,
    entry: Entry,
    steps: int,
    runs: int,
    seed: int,
    settings: dict[str, Any],
    half_life: float,
    width: int,
    readings: tuple[int, ...],
    progress: Callable[[float], None] | None,
    first_run: int = 0,
    device: str = "auto",
    longest_gap: int | None = None,
    checkpoints: Checkpoints | None = None,
) -> BoxRunResult:
    """Let an agent learn, `runs` times independently; arguments as those of `bellief.run`, which checks them.

    `first_run` is the number of the first run, for experiments that are spread over several processes.
    """
    module = entry.load_for(CONTINUOUS, world.name)
    config = build_config(module.Config, entry.name, settings)
    began = time.perf_counter()
    reading = sorted({*reading_steps(steps), *(step for step in readings if 0 < step <= steps)})
    check_size(steps, runs, 3 * len(reading), longest_gap)
    plans = steps_of(module, steps, longest_gap)
    # Of real environments the last chunk is not padded: stepping them is what takes the time.
    ends = range(first_run, first_run + runs, width)
    chunks = [range(first, min(first + width, first_run + runs) if world.real else first + width) for first in ends]
    # Here runs step where they plan, on one device: what stepping costs on a GPU is little beside fitting.
    place = find_places(device, 1).plan

    def events(numbers: range, resume: loop.Snapshot | None) -> Generator[Any]:
        keys = devices.put(chunk_keys(seed, world.name, entry.name, numbers), place)
        return world.run_chunk(keys, numbers, seed, module, config, plans, reading, half_life, resume)

    def shapes(numbers: range) -> Any:
        return world.shapes(chunk_keys(seed, world.name, entry.name, numbers), module, config)

    gathered = run_chunks(chunks, events, len(plans), progress, Places(place, place), checkpoints, shapes)
    counts = [one.episode_counts() for one in gathered]

    return BoxRunResult(
        env=world.name,
        agent=entry.name,
        steps=steps,
        runs=runs,
        seed=seed,
        settings=dataclasses.asdict(config),
        half_life=half_life,
        step=np.asarray(reading),
        total=np.concatenate([one.total() for one in gathered])[:runs],
        smoothed=np.concatenate([one.smoothed() for one in gathered])[:runs],
        policies=np.zeros((runs, 0, 0)),
        gain=np.full(runs, np.nan),
        episodes=by_run([one.episode_columns() for one in gathered], width, runs) if world.real else None,
        info=by_run([one.plan_columns() for one in gathered], width, runs),
        updates=len(plans),
        seconds=time.perf_counter() - began,
        **{name: np.concatenate([one[name] for one in counts])[:runs] for name in EPISODE_COUNTS},
    )
