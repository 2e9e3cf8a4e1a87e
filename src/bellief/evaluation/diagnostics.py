"""How well a log covers a policy, and the sentences that explain a posterior."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from bellief.evaluation.problem import Problem
from bellief.logs.labels import Labels, name_of

# A longer finite horizon is treated as endless when discounted visits are counted for a message.
LONGEST_COUNTED = 10_000

# Beginning of the warning that the log does not determine the value.
CANNOT_TELL = "The log cannot tell"

SHOWN_PAIRS = 3
FEW_VISITS = 5


class Coverage(NamedTuple):
    """How well a log covers what a policy does.

    `time[s, a]` is the share of its discounted time that the policy is expected to spend with each pair (in the mean
    MDP), `unvisited` the pairs that it may use and that were never tried, the most used first, and `effective_visits`
    the harmonic mean of the visits over that time (None where part of it is uncovered).
    """

    time: Float[np.ndarray, "S A"]
    unvisited: list[tuple[str, str]]
    time_in_unvisited: float
    effective_visits: float | None
    thin: list[tuple[str, str, int]]


def coverage(problem: Problem, policy: Float[np.ndarray, "S A"]) -> Coverage:
    """Where the policy is expected to be, against where the log has been."""
    log, visits = problem.log, problem.log.visits()
    time = discounted_time(problem, policy)
    pairs = np.argwhere((policy > 0) & (visits == 0) & ~problem.only_ends[:, None])
    pairs = pairs[np.argsort(-time[tuple(pairs.T)], kind="stable")]
    missing = float(time[visits == 0].sum())
    needed = time > 0
    thin = np.argwhere(needed & (visits > 0) & (visits < FEW_VISITS) & (time > 0.01))
    thin = thin[np.argsort(-time[tuple(thin.T)], kind="stable")]
    return Coverage(
        time,
        [_names(log, state, action) for state, action in pairs],
        missing,
        None if (visits[needed] == 0).any() else float(1 / (time[needed] / visits[needed]).sum()),
        [(*_names(log, state, action), int(visits[state, action])) for state, action in thin],
    )


def discounted_time(problem: Problem, policy: Float[np.ndarray, "S A"]) -> Float[np.ndarray, "S A"]:
    """Share of a policy's discounted time that it is expected to spend with each pair, in the mean MDP."""
    horizon = problem.horizon
    if horizon is not None and horizon > LONGEST_COUNTED:
        horizon = None if problem.discount < 1 else LONGEST_COUNTED
    visits = problem.mean_mdp.visits(policy, problem.discount, problem.start, horizon)
    # No time is spent in states in which episodes end, although the prior allows steps from them.
    visits = np.where(problem.only_ends, 0.0, np.maximum(visits, 0))
    return (visits / (visits.sum() or 1.0))[:, None] * policy


def coverage_warnings(covered: Coverage, problem: Problem) -> list[str]:
    """Sentences about pairs that were never or hardly ever tried."""
    warnings = []
    if covered.unvisited:
        shown = ", ".join(f"({state}, {action})" for state, action in covered.unvisited[:SHOWN_PAIRS])
        more = f" and {len(covered.unvisited) - SHOWN_PAIRS} more" if len(covered.unvisited) > SHOWN_PAIRS else ""
        share = covered.time_in_unvisited
        count = "1 state-action pair" if len(covered.unvisited) == 1 else f"{len(covered.unvisited)} state-action pairs"
        spent = "less than 0.1%" if share < 0.001 else f"about {share:.1%}"
        warnings.append(
            f"The policy may use {count} that the data never tried: {shown}{more}. "
            f"It is expected to spend {spent} of its discounted time there, and what happens there is the prior's "
            "guess."
        )
    if covered.thin:
        state, action, visits = covered.thin[0]
        times = "once" if visits == 1 else f"{visits} times"
        others = f", and {len(covered.thin) - 1} other pairs hardly more often" if len(covered.thin) > 1 else ""
        warnings.append(f"The policy relies on ({state}, {action}), which the data tried only {times}{others}.")
    return warnings


def explain(draws: int, method: str, diagnostics: dict[str, Any], error: float | None, level: float) -> list[str]:
    """The numbers behind a posterior, in sentences."""
    sentences = []
    if method == "moments":
        sentences.append(
            "Mean and standard deviation are closed forms, of second order around the mean MDP; draws are of a shifted "
            "gamma law that has them."
        )
    if method in ("joint", "monte-carlo"):
        solved = "rolled out" if "features" in diagnostics else "solved by itself"
        sentences.append(
            f"The posterior is {draws:,} independent draws, each the value in one sampled world, {solved}."
        )
    if error is not None:
        sentences.append(
            f"With so many draws the ends of the {level:.0%} interval of the start value are known to within about "
            f"{error:.3g} (one standard error)."
        )
    if "effective_sample_size" in diagnostics:
        sentences.append(
            f"On average {diagnostics['effective_sample_size']:.1f} of {diagnostics['mdps']} sampled worlds carried "
            f"the weight of a value sample; sigma was doubled {diagnostics['sigma_doublings']} times and values were "
            f"drawn again {diagnostics['resamples']} times because weights were unstable."
        )
    if diagnostics.get("effective_visits"):
        sentences.append(
            f"Where the policy spends its time, the data have tried what it does {diagnostics['effective_visits']:.3g} "
            "times (harmonic mean)."
        )
    if diagnostics.get("supported") is not None:
        sentences.append(supported_sentence(diagnostics))
    return sentences + list(diagnostics.get("warnings", []))


def supported_sentence(diagnostics: dict[str, Any]) -> str:
    """The share of time in pairs that were seen often, and the bounds that need no prior."""
    said = (
        f"{diagnostics['supported']:.0%} of the policy's discounted time is spent in pairs seen {FEW_VISITS} times or"
    )
    bounds = diagnostics.get("bounds")
    if bounds is None:
        return f"{said} more; what the others may bring has no bound."
    return (
        f"{said} more; if the others turned out at their worst or best, the value would lie between {bounds[0]:.4g} "
        f"and {bounds[1]:.4g}."
    )


def _names(log: Any, state: int, action: int) -> tuple[str, str]:
    states: Labels = log.state_labels
    return name_of(int(state), states), name_of(int(action), log.action_labels)
