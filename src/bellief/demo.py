"""`bellief demo`: two small experiments, their pictures, and a page that explains them, in under two minutes."""

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd

from bellief.envs import Environment, make
from bellief.errors import UserError, require
from bellief.evaluation import evaluate
from bellief.experiments import RunResult, compare_agents
from bellief.files import to_csv, write_whole
from bellief.logs import Transitions
from bellief.mdp.bellman import evaluate_exact
from bellief.plots.style import save
from bellief.report import demo_page, demo_results
from bellief.report.build import render

# The paper's policy takes "the first action" with probability 0.8 and does not say which that is: both readings.
POLICIES = {"80% forward": (0.2, 0.8), "80% back": (0.8, 0.2)}
SHOWN = "80% forward"
# BBI with the paper's rule and with the optimistic one.
AGENTS = ["bbi=bbi-paper", "bbi-optimistic=bbi-paper:rule=optimistic"]


@dataclasses.dataclass(frozen=True)
class Size:
    """How much the demo computes."""

    logs: tuple[int, ...] = (10, 100, 1000)
    reference_mdps: int = 20_000
    joint_mdps: int = 100
    repeats: int = 5
    lookahead: int | None = None
    steps: int = 20_000
    runs: int = 20


NORMAL = Size()
QUICK = Size(reference_mdps=5_000, steps=5_000, runs=10)


def run_demo(
    out: str | Path = "bellief-demo",
    quick: bool = False,
    seed: int = 0,
    echo: Callable[[str], None] = print,
    progress: Callable[[float], None] | None = None,
    size: Size | None = None,
) -> Path:
    """Run the demo and return the path of its page.

    Args:
        out: folder for the page, pictures and tables; made if missing. Only files of the demo's own are replaced.
        quick: compute less, in about half a minute.
        seed: same seed, same page.
        echo: receives a line of text from time to time.
        progress: called with the finished fraction.
        size: how much to compute, instead of what `quick` says.
    """
    size = size or (QUICK if quick else NORMAL)
    require(0 <= seed < 2**32, f"seed must lie between 0 and {2**32 - 1}, not {seed}.")
    out = _prepare_folder(Path(out))
    report = progress or (lambda fraction: None)
    environment = make("nchain")

    echo(f"1. What is a policy worth, after {', '.join(f'{steps:,}' for steps in size.logs)} logged steps of NChain?")
    evaluations = _evaluate_all(environment, size, seed, lambda fraction: report(0.55 * fraction))
    distances = demo_results.wasserstein_table(evaluations)
    _tell_distances(distances, echo)

    echo(f"2. Learning: {size.runs} runs of {size.steps:,} steps, acting on the mean and on mean + spread.")
    # Smoothed over a twentieth of the run, at most the paper's thousand steps.
    learned = compare_agents(
        environment,
        AGENTS,
        size.steps,
        size.runs,
        seed,
        half_life=min(1000.0, max(1.0, size.steps / 20)),
        progress=lambda fraction: report(0.55 + 0.4 * fraction),
    )
    results, optimum = learned.results, learned.optimum
    assert optimum is not None
    for name, result in results.items():
        final, bad = result.final_average_reward.mean(), demo_results.stuck(result, optimum)
        told = f"{final:.2f} a step at the end (optimum {optimum:.2f}), stuck: {bad} of {result.runs} runs"
        echo(f"   {demo_page.RULES[name]}: {told}")

    page = _write_all(out, evaluations, distances, results, optimum, seed)
    report(1.0)
    echo(f"Open {page}")
    return page


def _prepare_folder(out: Path) -> Path:
    """The folder, created if it is missing; that it can be written to is checked before anything is computed."""
    require(not out.exists() or out.is_dir(), f"{out} is a file, but the demo needs a folder; choose another place.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_whole(out / f".trial-{os.getpid()}", b"").unlink()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"The folder {out} cannot be written to ({reason}); choose another place.") from error
    return out


def simulate(environment: Environment, policy: tuple[float, ...], steps: int, generator: np.random.Generator):
    """Columns state, action, reward and next_state of one walk of a policy that is the same in every state."""
    outcomes = environment.outcomes
    state = int(generator.choice(environment.states, p=outcomes.start))
    rows = []
    for _ in range(steps):
        action = int(generator.choice(environment.actions, p=policy))
        outcome = int(generator.choice(outcomes.probability.shape[-1], p=outcomes.probability[state, action]))
        after = int(outcomes.next_state[state, action, outcome])
        rows.append((state, action, float(outcomes.reward[state, action, outcome]), after))
        state = after
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def _evaluate_all(environment: Environment, size: Size, seed: int, report) -> list[demo_results.Evaluated]:
    """Every policy after every log, by every method. The shorter logs are the beginning of the longest."""
    # Separate streams: the reference must not share its MDPs with the methods that are measured against it.
    reference_seed, *seeds = (int(number) for number in np.random.SeedSequence(seed).generate_state(1 + size.repeats))
    evaluations = []
    for name, probabilities in POLICIES.items():
        policy = np.tile(probabilities, (environment.states, 1))
        real_values = np.asarray(evaluate_exact(environment.mdp(), jnp.asarray(policy)), dtype=np.float64)
        columns = simulate(environment, probabilities, max(size.logs), np.random.default_rng(seed))
        for steps in size.logs:
            log = Transitions.from_arrays(
                *(column[:steps] for column in columns), states=environment.states, actions=environment.actions
            )

            def posterior(method, seed, log=log, policy=policy, **settings):
                return evaluate(log, policy, 0.99, prior="paper", method=method, seed=seed, start=0, **settings)

            evaluations.append(
                demo_results.Evaluated(
                    policy=name,
                    steps=steps,
                    real_values=real_values,
                    reference=posterior("monte-carlo", reference_seed, mdps=size.reference_mdps),
                    mean_mdp=posterior("mean-mdp", 0),
                    runs={
                        "gaussian": [posterior("gaussian", one, lookahead=size.lookahead) for one in seeds],
                        "joint": [posterior("joint", one, mdps=size.joint_mdps) for one in seeds],
                    },
                )
            )
            report(len(evaluations) / (len(POLICIES) * len(size.logs)))
    return evaluations


def _tell_distances(distances: pd.DataFrame, echo: Callable[[str], None]) -> None:
    shown = distances[distances["policy"] == SHOWN]
    for steps, group in shown.groupby("steps"):
        # The last row of a method is the one with the most MDPs.
        last = group.groupby("method").last()["distance"]
        echo(
            f"   {steps:>5,} steps: distance to the reference {last['joint']:6.2f} joint, "
            f"{last['gaussian']:6.2f} Gaussian, {last['mean-mdp']:6.2f} mean MDP"
        )


def _write_all(
    out: Path, evaluations, distances: pd.DataFrame, results: Mapping[str, RunResult], optimum: float, seed: int
) -> Path:
    """Pictures and tables first, the page that links to them last."""
    shown = [item for item in evaluations if item.policy == SHOWN]
    save(demo_page.posterior_figure(shown), out / "posterior")
    save(demo_page.curves_figure(results, optimum), out / "curves")
    tables = {
        "posterior": demo_results.posterior_table(shown),
        "wasserstein": distances,
        "curves": demo_results.curves_table(results),
    }
    for name, table in tables.items():
        write_whole(out / f"{name}.csv", to_csv(table))
    page = demo_page.build_page(evaluations, shown, distances, results, optimum, seed)
    return write_whole(out / "index.html", render(page).encode())
