"""Agents that learn while a page watches: the experiment loop, observed at its own checkpoints."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from bellief.app.answers import curve
from bellief.app.contraction import MOST_STATES, Contraction, belief_of
from bellief.app.experiment_choices import MOST_AGENTS, MOST_RUNS, MOST_STEPS, PACES, choices
from bellief.envs import Environment, make
from bellief.errors import UserError, require_choice
from bellief.experiments import RunResult, run
from bellief.experiments.compare import best_average
from bellief.experiments.event_collector import Collector
from bellief.experiments.event_loop import Reading, Snapshot
from bellief.files import to_csv
from bellief.plots.density import common_window
from bellief.watch import Stopped

FRAME = 0.12
LEVEL = 0.9

Tell = Callable[[str, Any], None]


class Experiment:
    """Some agents in one environment, each in a thread of its own."""

    def __init__(self, given: dict[str, Any], tell: Tell):
        known = choices()
        self.env = _one_of(given.get("env"), "environment", known["environments"])
        asked = given.get("agents")
        self.agents = [_one_of(name, "agent", known["agents"]) for name in (asked if isinstance(asked, list) else [])]
        if not 1 <= len(self.agents) <= MOST_AGENTS or len(set(self.agents)) < len(self.agents):
            raise UserError(f"Choose from one to {MOST_AGENTS} different agents.")
        self.steps = _whole(given.get("steps"), "steps", 10, MOST_STEPS)
        self.runs = _whole(given.get("runs"), "runs", 1, MOST_RUNS)
        self.seed = _whole(given.get("seed"), "seed", 0, 2**32 - 1)
        self.shown = given.get("watch") if given.get("watch") in self.agents else self.agents[0]
        self.half_life = max(1.0, min(1000.0, self.steps / 20))
        self.tell = tell
        self.results: dict[str, RunResult] = {}
        # By agent, step and run: agents with plans of their own compute one run after the other.
        self.seen: dict[str, dict[int, dict[int, float]]] = {name: {} for name in self.agents}
        self.set_pace(given.get("pace", "normal"))
        self._stop, self._go = threading.Event(), threading.Event()
        self._go.set()
        self._threads: list[threading.Thread] = []

    def command(self) -> str:
        """The command line that lets the same agents learn."""
        words = f"--env {self.env} --steps {self.steps} --runs {self.runs} --seed {self.seed}"
        if len(self.agents) == 1:
            return f"bellief run --agent {self.agents[0]} {words} --half-life {self.half_life:g}"
        return f"bellief compare-agents {' '.join(self.agents)} {words}"

    def python(self) -> str:
        """The Python that does."""
        return (
            f"import bellief\n\nanswer = bellief.compare_agents({self.env!r}, {self.agents!r}, steps={self.steps}, "
            f"runs={self.runs}, seed={self.seed})\nprint(answer.to_pandas())"
        )

    def start(self) -> None:
        """Begin."""
        environment = make(self.env)
        self.tell("agents-began", {"optimum": best_average(environment), "agents": self.agents})
        for name in self.agents:
            thread = threading.Thread(target=self._learn, args=(environment, name), daemon=True)
            self._threads.append(thread)
            thread.start()

    def set_pace(self, name: Any) -> None:
        """Set how long to wait at each checkpoint."""
        require_choice(name, PACES, "There is no pace")
        self.pace = PACES[name]

    def pause(self) -> None:
        """Hold at the next checkpoint."""
        self._go.clear()

    def resume(self) -> None:
        """Go on."""
        self._go.set()

    def stop(self) -> None:
        """End at the next checkpoint."""
        self._stop.set()
        self._go.set()

    @property
    def running(self) -> bool:
        """Whether some agent is still learning."""
        return any(thread.is_alive() for thread in self._threads)

    def hold(self) -> None:
        """Called at checkpoints: waits while paused, raises `Stopped` where that was asked for."""
        while not self._go.wait(0.5):
            pass
        if self._stop.wait(self.pace):
            raise Stopped

    def table(self) -> bytes:
        """Curves as CSV: run by run for agents that are done, what was seen so far of the others."""
        parts = []
        for name in self.agents:
            if name in self.results:
                parts.append(self.results[name].to_pandas().assign(agent=name))
            else:
                rows = [_point(step, runs)[:2] for step, runs in sorted(self.seen[name].items())]
                parts.append(pd.DataFrame(rows, columns=["step", "smoothed"]).assign(agent=name))
        frame = pd.concat(parts, ignore_index=True)
        return to_csv(frame[["agent", *(column for column in frame.columns if column != "agent")]])

    def add_readings(self, name: str, numbers: range, readings: list[Reading]) -> list[tuple[int, float, float, float]]:
        """Points of a curve: step, mean over the runs seen so far, and their range; a step may be sent again."""
        points = []
        for one in readings:
            runs = self.seen[name].setdefault(int(one.step), {})
            for number, value in zip(numbers, np.asarray(one.smoothed), strict=False):
                if number < self.runs:
                    runs[number] = float(value)
            points.append(_point(int(one.step), runs))
        return points

    def _learn(self, environment: Environment, name: str) -> None:
        try:
            watcher = Watcher(self, environment, name, name == self.shown)
            result = run(
                environment, name, self.steps, self.runs, self.seed, half_life=self.half_life, checkpoints=watcher
            )
            self.results[name] = result
            told = {"agent": name, "final": float(result.final_average_reward.mean()), "seconds": result.seconds}
            watcher.finish(result)
            self.tell("agent-done", told)
        except Stopped:
            self.tell("agent-stopped", {"agent": name})
        except UserError as error:
            self.tell("agent-failed", {"agent": name, "error": str(error)})
        except Exception as error:  # an exception in a thread would be lost
            sentence = f"This is a bug in Bellief ({type(error).__name__}): please report it."
            self.tell("agent-failed", {"agent": name, "error": sentence})


def _point(step: int, runs: dict[int, float]) -> tuple[int, float, float, float]:
    values = np.array(list(runs.values()))
    return step, float(values.mean()), float(values.min()), float(values.max())


class Watcher:
    """Checkpoints that keep nothing and show everything (see `experiments.batches.Checkpoints`)."""

    def __init__(self, experiment: Experiment, environment: Environment, name: str, shown: bool):
        self.experiment, self.name = experiment, name
        self.sent: dict[int, int] = {}
        self.last = 0.0
        self.contraction = Contraction(environment) if shown and environment.states <= MOST_STATES else None

    def load(self, numbers: range, shapes: Callable[[], Any]) -> None:
        """Nothing was kept."""

    def due(self, numbers: range) -> bool:
        """Whether the page is to see something new; holds the runs while they are paused."""
        self.experiment.hold()
        return time.monotonic() - self.last > FRAME

    def save(self, numbers: range, snapshot: Snapshot, gathered: Collector) -> None:
        """Show where the runs stand."""
        self._tell_curve(numbers, gathered.readings[self.sent.get(numbers.start, 0) :])
        self.sent[numbers.start] = len(gathered.readings)
        if self.contraction is not None:
            belief = belief_of(snapshot.runs.agent)
            if belief is not None:
                self.experiment.tell("posterior", self._posterior(belief, snapshot.event))
            else:
                self.contraction = None
        self.last = time.monotonic()

    def finish(self, result: RunResult) -> None:
        """The whole curve, with all runs."""
        every = zip(result.step, result.total.T, result.smoothed.T, strict=True)
        runs = range(len(result.smoothed))
        self._tell_curve(runs, [Reading(int(step), total, smoothed) for step, total, smoothed in every])

    def _tell_curve(self, numbers: range, readings: list[Reading]) -> None:
        points = self.experiment.add_readings(self.name, numbers, readings)
        if points:
            self.experiment.tell("curve", {"agent": self.name, "points": points})

    def _posterior(self, belief: Any, step: int) -> dict[str, Any]:
        assert self.contraction is not None
        found, truth = self.contraction.values(belief, self.experiment.seed), self.contraction.truth
        limits = common_window([found.joint, found.gaussian, np.array([truth])])
        ends = {
            name: [float(end) for end in np.quantile(values, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2])]
            for name, values in found._asdict().items()
        }
        return {
            "agent": self.name,
            "step": step,
            "truth": truth,
            "joint": curve(found.joint, limits),
            "gaussian": curve(found.gaussian, limits),
            "intervals": ends,
        }


def _one_of(value: Any, kind: str, known: list[dict[str, str]]) -> str:
    if not any(value == one["name"] for one in known):
        raise UserError(f"There is no {kind} '{value}' to watch; choose one of those that the page lists.")
    return str(value)


def _whole(value: Any, name: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise UserError(f"{name} must be a whole number from {low:,} to {high:,}.")
    return value
