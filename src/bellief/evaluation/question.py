"""A policy for a log: number of induction steps, existence of variances, diagnostics."""

import math
from typing import Any

import numpy as np

from bellief.evaluation.diagnostics import Coverage, coverage_warnings
from bellief.evaluation.knowledge import endless_sentence
from bellief.evaluation.policy_forms import read_policy
from bellief.evaluation.problem import Problem
from bellief.evaluation.question_checks import check_steps
from bellief.registry import METHOD1_VALUES

# Methods that need JAX: the paper's value beliefs, and its Methods 2 and 3.
JAX_METHODS = (*METHOD1_VALUES, "method2", "method3")

# Methods whose draws have the spread of the posterior.
SAMPLED = ("joint", "monte-carlo", "moments", "method2", "method3")

# An infinite horizon is cut where what lies beyond it weighs less than this.
TRUNCATION = 1e-3
LONGEST_LOOKAHEAD = 100_000


class Question:
    """A policy for a log, and what follows from the two without sampling."""

    def __init__(self, ready: Problem, policy: Any):
        self.ready, self.data, self.prior = ready, ready.log, ready.prior
        self.discount, self.horizon, self.start = ready.discount, ready.horizon, ready.start
        self.terminates = ready.terminates
        self.policy = read_policy(policy, ready.log)

    def sd_exists(self, sampled: bool) -> np.ndarray:
        """Whether each state's value has a posterior variance.

        Under a Dirichlet belief every state may lead anywhere, so one pair without a variance reaches all states;
        within one step it reaches only its own.
        """
        states = self.data.states
        if not sampled:
            return np.ones(states, dtype=bool)
        ends = self.ready.only_ends
        known = self.ready.has_variance((self.policy > 0) & ~ends[:, None])
        return known if self.horizon == 1 else ends | known.all()

    def steps(self, lookahead: int | None) -> int:
        """Induction steps: the horizon, what was asked for, or enough that little weight lies beyond."""
        if self.horizon is not None:
            return self.horizon
        if lookahead is not None:
            return check_steps(lookahead)
        if not self.terminates:
            return check_steps(math.ceil(math.log(TRUNCATION) / math.log(self.discount)))
        return self.ready.mean_mdp.steps_until(self.policy, self.discount, TRUNCATION, LONGEST_LOOKAHEAD)

    def diagnostics(self, method: str, notes: dict[str, Any], covered: Coverage) -> dict[str, Any]:
        """Diagnostics and warnings, with the notes of the method."""
        warnings = ([notes["degenerate"]] if "degenerate" in notes else []) + coverage_warnings(covered, self.ready)
        if method in SAMPLED and not self.sd_exists(sampled=True).all():
            warnings.append("The posterior has no finite variance (a reward never observed is heavy-tailed): no sd.")
        if notes.get("cannot_tell"):
            warnings.insert(0, notes["cannot_tell"])
        warnings += notes.get("inaccurate", [])
        if "endless" in notes:
            warnings.insert(0, endless_sentence(notes["endless"]))
        if method in METHOD1_VALUES:
            warnings.append(
                "This value belief forgets which MDP a value came from, so its spread is far too small; use joint for "
                "intervals."
            )
        if method == "mean-mdp":
            warnings.append("The mean MDP gives one number and no uncertainty.")
        return {
            "prior": {
                "dirichlet": self.prior.concentration(self.data.states + self.terminates),
                "outcome_strength": self.prior.outcome_strength,
                "reward": [
                    self.prior.reward_mean,
                    self.prior.reward_strength,
                    self.prior.reward_shape,
                    self.prior.reward_rate,
                ],
            },
            "horizon": self.horizon,
            "unvisited_pairs": len(covered.unvisited),
            "time_in_unvisited_pairs": covered.time_in_unvisited,
            "effective_visits": covered.effective_visits,
            "warnings": warnings,
        } | {name: note for name, note in notes.items() if name not in ("degenerate", "cannot_tell", "inaccurate")}
