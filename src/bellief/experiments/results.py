"""The results of many runs: curves, policies, diagnostics; as arrays, tables, a plot, files."""

import dataclasses
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from bellief.errors import UserError, shorten
from bellief.policies import save_policy
from bellief.processors import check_memory

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Curves are read at about this many steps, evenly spaced on a logarithmic axis.
READINGS = 200


@dataclasses.dataclass(frozen=True, eq=False)
class RunResult:
    """Curves of every run, the policies they ended with, and what the agent reported while planning.

    `total[r, g]` is what run r had earned after `step[g]` steps; `smoothed` is its reward per step, smoothed with the
    half-life before anything is averaged over runs. `gain` is the exact long-run average reward of each last policy,
    NaN where the model is not known. `episodes` has a row for every episode that was over, where a real environment
    was stepped. `updates` is the number of plans of each run; of agents that schedule their plans themselves, the
    number of those that were reported: the last one before each reading.

    The last four are for continuous states, for which there is no table of the policy: `over[r, g]` episodes of run r
    were over after `step[g]` steps, `falls` of them because the environment ended them, `length` is their total length,
    and `survived` is the length of the last episode that was over, smoothed over steps with the half-life.

    >>> import bellief
    >>> result = bellief.run("nchain", "q-learning", steps=30, runs=2)
    >>> isinstance(result, bellief.RunResult), result.step[-1].item()
    (True, 30)
    >>> bool((result.average_reward == result.total[:, -1] / 30).all())
    True
    >>> sorted(result.to_pandas().columns)
    ['run', 'smoothed', 'step', 'total']
    >>> pole = bellief.run("pendulum", "gptd", steps=30, runs=2)
    >>> pole.steps_survived(0, 30).shape, pole.final_steps_survived.shape
    ((2,), (2,))
    """

    env: str
    agent: str
    steps: int
    runs: int
    seed: int
    settings: dict[str, Any]
    half_life: float
    step: np.ndarray
    total: Float[np.ndarray, "runs G"]
    smoothed: Float[np.ndarray, "runs G"]
    policies: Float[np.ndarray, "runs S A"]
    gain: Float[np.ndarray, "runs"]
    episodes: "pd.DataFrame | None"
    info: "pd.DataFrame"
    updates: int
    seconds: float
    over: Int[np.ndarray, "runs G"] | None = None
    falls: Int[np.ndarray, "runs G"] | None = None
    length: Float[np.ndarray, "runs G"] | None = None
    survived: Float[np.ndarray, "runs G"] | None = None

    @property
    def average_reward(self) -> Float[np.ndarray, "runs"]:
        """Reward per step over the whole run."""
        return self.total[:, -1] / self.steps

    @property
    def final_average_reward(self) -> Float[np.ndarray, "runs"]:
        """Reward per step over the last tenth of the run."""
        return late_reward(self.step, self.total, self.steps)

    def steps_survived(self, first: int, last: int) -> Float[np.ndarray, "runs"]:
        """Mean length of the episodes that were over between two readings (0 for the start), in continuous states.

        Where none was, the steps since the last one was over: the present episode is at least as long.
        """
        at = {0: 0} | {int(step): number + 1 for number, step in enumerate(self.step)}
        for step in (first, last):
            if step not in at:
                raise UserError(f"There is no reading at step {step}; ask for one with readings=({step},).")
        if self.over is None or self.length is None:
            raise UserError("Episodes are counted in continuous states only; look at `episodes` instead.")
        return mean_length(self.over, self.length, at[first], at[last], last)

    @property
    def final_steps_survived(self) -> Float[np.ndarray, "runs"]:
        """Mean length of the episodes of the last tenth of the run, in continuous states."""
        return self.steps_survived(last_tenth(self.steps), self.steps)

    def to_dict(self) -> dict[str, Any]:
        """The document that `bellief run --json` prints."""
        document = {
            "env": self.env,
            "agent": self.agent,
            "steps": self.steps,
            "runs": self.runs,
            "seed": self.seed,
            "settings": _without_infinities(self.settings),
            "average_reward": summarise(self.average_reward),
            "final_average_reward": summarise(self.final_average_reward),
            "final_policy_gain": None if np.isnan(self.gain).any() else summarise(self.gain),
            "episodes": self.episode_summary(),
            "updates": self.updates,
            "seconds": round(self.seconds, 3),
        }
        if document["episodes"] is None:
            del document["episodes"]
        return document

    @property
    def label(self) -> str:
        """The agent's name in plots, with its action rule, or `own` for our continuous mode, if not the usual one."""
        rule = "own" if self.settings.get("mode") == "own" else self.settings.get("rule", "mean")
        return self.agent if rule == "mean" else f"{self.agent}-{rule}"

    def episode_summary(self) -> dict[str, Any] | None:
        """Number of episodes, and each run's mean return and length over the episodes of its last tenth; in continuous
        states also the number of falls. None where no episodes are recorded.
        """
        if self.episodes is None and self.over is None:
            return None
        summary: dict[str, Any] = {"count": 0, "final_return": None, "final_length": None}
        if self.episodes is not None:
            late = self.episodes[self.episodes["step"] > last_tenth(self.steps)].groupby("run")
            means = {name: late[name].mean().to_numpy() for name in ("reward", "length")}
            found = [summarise(means[name]) if len(means[name]) else None for name in ("reward", "length")]
            summary = dict(zip(summary, [len(self.episodes), *found], strict=True))
        if self.over is not None and self.falls is not None:
            falls = self.falls[:, -1]
            summary |= {
                "count": int(self.over[:, -1].sum()),
                "falls": {"median": float(np.median(falls)), "most": int(falls.max())},
                "final_length": summarise(self.final_steps_survived),
            }
        return summary

    def to_pandas(self) -> "pd.DataFrame":
        """One row per run and reading: run, step, total, smoothed; in continuous states also over, falls, survived."""
        runs, readings = self.total.shape
        columns = {"run": np.repeat(np.arange(runs), readings), "step": np.tile(self.step, runs)}
        for name in ("total", "smoothed", "over", "falls", "survived"):
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name).ravel()
        import pandas as pd

        return pd.DataFrame(columns)

    def plot(self, ax: "Axes | None" = None, **style: Any) -> "Axes":
        """Smoothed average reward, or in continuous states smoothed steps survived: mean, 5-95 percentile band,
        standard error lines.
        """
        from bellief.plots.curves import plot_curve

        curve, usual = self.smoothed, {"label": self.label}
        if self.survived is not None:
            curve, usual = self.survived, usual | {"ylabel": "steps survived, smoothed"}
        return plot_curve(self.step, curve, ax=ax, **(usual | style))

    def save(self, folder: str | Path) -> None:
        """Write result.json, curves.csv, plans.csv and, where there are such, episodes.csv, policy.csv (run 0) and
        policies/ into a new folder, whole or not at all.
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
            if self.policies.size:
                (work / "policies").mkdir()
                for number, policy in enumerate(self.policies):
                    save_policy(work / "policies" / f"run-{number:03d}.csv", policy)
                shutil.copy(work / "policies" / "run-000.csv", work / "policy.csv")
            work.chmod(0o755)
            work.rename(folder)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise

    def __repr__(self) -> str:
        final = summarise(self.final_average_reward)
        return (
            f"RunResult({self.agent} in {self.env}, {self.runs} runs of {self.steps} steps: "
            f"final average reward {final['mean']:.4g})"
        )


def _without_infinities(value: Any) -> Any:
    """Infinite settings as text, since JSON has no such numbers."""
    if isinstance(value, dict):
        return {name: _without_infinities(item) for name, item in value.items()}
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def check_new_folder(folder: str | Path) -> Path:
    """The path, if nothing is there yet and it can be made; earlier results are never overwritten."""
    folder = Path(folder)
    if os.path.lexists(folder):
        raise UserError(f"The folder {folder} exists already; choose a new one, or move it away.")
    parent = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
    if not parent.is_dir():
        raise UserError(f"The folder {folder} cannot be made, because {parent} is not a folder; choose another place.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(f"The folder {folder} cannot be made: {parent} may not be written to; choose another place.")
    return folder


def summarise(values: Float[np.ndarray, "runs"]) -> dict[str, float | None]:
    """Mean, standard error (none for a single run), 5th and 95th percentile."""
    count = len(values)
    return {
        "mean": float(np.mean(values)),
        "se": float(np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else None,
        "p05": float(np.quantile(values, 0.05)),
        "p95": float(np.quantile(values, 0.95)),
    }


def last_tenth(steps: int) -> int:
    """The step after which the last tenth of a run begins."""
    return steps - max(1, steps // 10)


def late_reward(step: np.ndarray, total: Float[np.ndarray, "runs G"], steps: int) -> Float[np.ndarray, "runs"]:
    """Reward per step over the last tenth, from what had been earned at each reading."""
    begin = last_tenth(steps)
    before = total[:, np.searchsorted(step, begin)] if begin else 0.0
    return (total[:, -1] - before) / (steps - begin)


def check_size(steps: int, runs: int, readings: int, longest_gap: int | None = None, pairs: int = 0) -> None:
    """Refuse a run whose results alone would not fit into memory, before anything is computed.

    Of every run there are two curves, kept twice while they are put together, and a policy of `pairs` probabilities.
    """
    kept = runs * (4 * readings + 2 * pairs) * 8
    schedule = 0 if longest_gap is None else 100 * (steps // longest_gap)
    check_memory(kept + schedule, f"{shorten(str(runs), 40)} runs of {steps} steps", "ask for fewer runs or steps")


def reading_steps(steps: int, more: Iterable[int] = ()) -> list[int]:
    """About 200 steps on a logarithmic grid, with the last one, the one before the last tenth, and `more`."""
    grid = np.unique(np.round(np.geomspace(1, steps, min(READINGS, steps))).astype(int))
    return sorted({*grid.tolist(), steps, last_tenth(steps), *(step for step in more if step <= steps)} - {0})


def mean_length(
    over: Int[np.ndarray, "runs G"], length: Float[np.ndarray, "runs G"], first: int, last: int, step: int
) -> Float[np.ndarray, "runs"]:
    """Mean length of the episodes that were over between two readings, counted from 1 (0 for the start).

    Where none was, the steps from the last one before up to `step`, that of the later reading.
    """
    over, length = (np.pad(array, ((0, 0), (1, 0))) for array in (over, length))
    number, total = (array[:, last] - array[:, first] for array in (over, length))
    return np.where(number > 0, total / np.maximum(number, 1), step - length[:, last])
