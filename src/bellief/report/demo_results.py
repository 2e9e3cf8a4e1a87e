"""The demo's results, and the tables that are written beside its pictures."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from bellief.evaluation.posterior import ValuePosterior
from bellief.experiments.results import RunResult, summarise

# Wasserstein distances to the true distribution as the paper prints them, by steps: inferential induction, mean MDP.
PAPER_WASSERSTEIN = {10: (22.80, 30.69), 100: (16.41, 17.90), 1000: (4.18, 4.27)}

# A run is stuck when its last policy earns less than this part of the best possible average reward.
STUCK_BELOW = 0.95


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """One policy after one log: the reference, the mean MDP, and several runs of each method."""

    policy: str
    steps: int
    real_values: np.ndarray
    reference: ValuePosterior
    mean_mdp: ValuePosterior
    runs: Mapping[str, Sequence[ValuePosterior]]

    def few(self, count: int) -> list[ValuePosterior]:
        """The joint runs on their first MDPs only; MDP number j does not depend on how many there are."""
        return [dataclasses.replace(run, samples=run.samples[:count]) for run in self.runs["joint"]]


def wasserstein_table(evaluations: Sequence[Evaluated]) -> pd.DataFrame:
    """Mean over states of the Wasserstein distance to the reference: a row per policy, log and method."""
    rows = []
    for item in evaluations:
        fewest = item.runs["gaussian"][0].diagnostics["mdps"]
        most = item.runs["joint"][0].diagnostics["mdps"]
        groups = [
            ("mean-mdp", None, [item.mean_mdp]),
            ("gaussian", fewest, item.runs["gaussian"]),
            ("joint", fewest, item.few(fewest)),
            ("joint", most, item.runs["joint"]),
        ]
        baseline = _distance(item.mean_mdp, item.reference)
        for method, mdps, runs in groups:
            own = np.array([_distance(run, item.reference) for run in runs])
            rows.append(
                {
                    "policy": item.policy,
                    "steps": item.steps,
                    "method": method,
                    "mdps": mdps,
                    "runs": len(runs),
                    "distance": own.mean(),
                    "standard_error": summarise(own)["se"],
                    "ratio_to_mean_mdp": own.mean() / baseline,
                }
            )
    for steps, (induction, mean) in PAPER_WASSERSTEIN.items():
        for method, mdps, count, value in (("mean-mdp", None, 1, mean), ("gaussian", 10, 5, induction)):
            row = {"policy": "paper", "steps": steps, "method": method, "mdps": mdps, "runs": count, "distance": value}
            rows.append(row | {"ratio_to_mean_mdp": value / mean})
    return pd.DataFrame(rows).astype({"mdps": "Int64"})


def _distance(posterior: ValuePosterior, reference: ValuePosterior) -> float:
    from scipy.stats import wasserstein_distance

    pairs = zip(posterior.samples.T, reference.samples.T, strict=True)
    return float(np.mean([wasserstein_distance(own, true) for own, true in pairs]))


def posterior_table(evaluations: Sequence[Evaluated]) -> pd.DataFrame:
    """What the picture of posteriors shows: quantiles of the start state's value, a row per curve."""
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    rows = []
    for item in evaluations:
        groups = {"monte-carlo": [item.reference], "mean-mdp": [item.mean_mdp], **item.runs}
        for method, runs in groups.items():
            for number, run in enumerate(runs):
                quantiles = np.quantile(run.start_samples, levels)
                row = {"policy": item.policy, "steps": item.steps, "method": method, "run": number}
                row |= {"mean": run.start_samples.mean()}
                rows.append(row | {f"q{level:.0%}"[:-1]: value for level, value in zip(levels, quantiles, strict=True)})
    return pd.DataFrame(rows)


def curves_table(results: Mapping[str, RunResult]) -> pd.DataFrame:
    """Every run's curve: rule, run, step, total, smoothed."""
    frames = [result.to_pandas().assign(rule=result.settings["rule"]) for result in results.values()]
    whole = pd.concat(frames, ignore_index=True)
    return whole[["rule", "run", "step", "total", "smoothed"]]


def stuck(result: RunResult, optimum: float) -> int:
    """Runs whose last policy earns clearly less than the best one."""
    return int((result.gain < STUCK_BELOW * optimum).sum())
