"""`bellief.compare`: which of several policies is the best, with what probability, and the expected regret."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from bellief.decisions import preposterior
from bellief.decisions.preposterior import Forecast
from bellief.errors import UserError
from bellief.evaluation.accuracy import Enough, StartDraws, until
from bellief.evaluation.diagnostics import CANNOT_TELL, coverage, coverage_warnings
from bellief.evaluation.knowledge import bounded, endless_sentence, knowledge
from bellief.evaluation.policy_forms import read_policy
from bellief.evaluation.posterior import Errors, errors_of, summarise_values
from bellief.evaluation.problem import Problem, prepare
from bellief.evaluation.question_checks import check_accuracy, check_numbers
from bellief.evaluation.start_law import StartLaw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

INNER_DRAWS = 200


@dataclasses.dataclass(frozen=True, eq=False)
class PolicyComparison:
    """Start values of several policies in the same sampled MDPs, `samples[n, p]`, and what follows from them.

    `forecasts` are the chances of choosing the best policy after more transitions (see `decisions.preposterior`), and
    `more_needed` is how many it takes to reach `target`: 0 where the target is reached already, None where no simulated
    amount was enough or none was simulated.

    `laws` and `difference_laws` are better estimates than the draws of what each policy is worth, and of by how much
    it differs from the best (`evaluation.start_law`); intervals come from them where there are any.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0, 1] * 20, [1.0, 2.0] * 20, [0] * 40)
    >>> found = bellief.compare(data, {"wait": "always:0", "sell": "always:1"}, 0.5, draws=100, simulations=4)
    >>> isinstance(found, bellief.PolicyComparison), found.names, found.samples.shape
    (True, ('wait', 'sell'), (100, 2))
    """

    names: tuple[str, ...]
    samples: Float[np.ndarray, "N P"]
    discount: float
    transitions: int
    target: float
    forecasts: tuple[Forecast, ...]
    more_needed: int | None
    sd_exists: bool
    warnings: dict[str, list[str]]
    notes: tuple[str, ...] = ()
    level: float = 0.9
    laws: tuple[StartLaw | None, ...] | None = None
    difference_laws: tuple[StartLaw | None, ...] | None = None

    @property
    def prob_best(self) -> Float[np.ndarray, "P"]:
        """Posterior probability of each policy to be the best of them; ties are shared."""
        top = self.samples == self.samples.max(-1, keepdims=True)
        return (top / top.sum(-1, keepdims=True)).mean(0)

    @property
    def prob_better(self) -> Float[np.ndarray, "P P"]:
        """P(V_A > V_B | D) in row A, column B; ties count half."""
        first, second = self.samples[:, :, None], self.samples[:, None, :]
        return ((first > second) + 0.5 * (first == second)).mean(0)

    @property
    def expected_regret(self) -> Float[np.ndarray, "P"]:
        """Expected value lost by choosing each policy instead of whichever is the best."""
        return (self.samples.max(-1, keepdims=True) - self.samples).mean(0)

    @property
    def best(self) -> str:
        """The policy with the least expected regret, which is the one with the highest posterior mean."""
        return self.names[int(self.expected_regret.argmin())]

    @property
    def cannot_tell(self) -> dict[str, str]:
        """For each policy whose value the log does not determine, the warning with the pairs to observe."""
        said = {name: [text for text in texts if text.startswith(CANNOT_TELL)] for name, texts in self.warnings.items()}
        return {name: texts[0] for name, texts in said.items() if texts}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the draws, as plain numbers."""
        best, regret, better = self.prob_best, self.expected_regret, self.prob_better
        favourite = self.names.index(self.best)
        return {
            "transitions": self.transitions,
            "discount": self.discount,
            "level": self.level,
            "best": self.best,
            "policies": [
                {
                    "policy": name,
                    **_summary(self, self.samples[:, number], self.laws, number),
                    "prob_best": float(best[number]),
                    "expected_regret": float(regret[number]),
                    "difference_to_best": _summary(
                        self, self.samples[:, number] - self.samples[:, favourite], self.difference_laws, number
                    ),
                }
                for number, name in enumerate(self.names)
            ],
            "prob_better": [[float(cell) for cell in row] for row in better],
            "target": self.target,
            "more_transitions_needed": self.more_needed,
            "forecasts": [_finite(forecast._asdict()) for forecast in self.forecasts],
            "cannot_tell": self.cannot_tell,
            "warnings": self.warnings,
            "notes": list(self.notes),
        }

    def to_pandas(self) -> "pd.DataFrame":
        """One row per policy."""
        rows = [{k: v for k, v in row.items() if k != "difference_to_best"} for row in self.to_dict()["policies"]]
        import pandas as pd

        return pd.DataFrame(rows).set_index("policy")

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Densities of the policies' start values, on one axis."""
        from bellief.plots.decisions import plot_policies

        return plot_policies(self, ax)

    def __repr__(self) -> str:
        chances = ", ".join(f"{name} {chance:.1%}" for name, chance in zip(self.names, self.prob_best, strict=True))
        return f"PolicyComparison(best: {chances})"

    def _repr_html_(self) -> str:
        from bellief.plots.cards import table_card

        rows = [
            [row["policy"], row["mean"], row["low"], row["high"], f"{row['prob_best']:.1%}", row["expected_regret"]]
            for row in self.to_dict()["policies"]
        ]
        head = ["policy", "mean", f"{self.level:.0%} from", "to", "is best", "expected regret"]
        return table_card("Policies compared", f"{self.transitions:,} transitions", head, rows, self.notes)


def _summary(found: PolicyComparison, draws: Float[np.ndarray, "N"], laws, number: int) -> dict[str, Any]:
    """Mean, sd, interval, and the Monte Carlo errors, from a law or from draws."""
    law = None if laws is None else laws[number]
    summary = summarise_values(draws if law is None else law.points, found.sd_exists, found.level)
    errors = errors_of(draws, found.level, law)
    return summary | {"monte_carlo_error": None if errors is None else errors.to_dict()}


def compare(
    data: Any,
    policies: Mapping[str, Any] | Sequence[Any],
    discount: float = 0.99,
    *,
    prior: Any = "logged",
    reward_scale: float | str | None = None,
    horizon: int | None = None,
    start: Any = None,
    terminates: bool | None = None,
    level: float = 0.9,
    seed: int = 0,
    draws: int = 1000,
    accuracy: float | None = None,
    target: float = 0.95,
    simulations: int | None = None,
    collector: Any = "behaviour",
    belief: str | None = None,
    support: Any = None,
    reward_range: tuple[float, float] | None = None,
) -> PolicyComparison:
    """Compare policies in the same draws of the posterior, so that what they share cancels.

    Options that are not those of `evaluate`:

    - `policies`: two or more, in any form that `evaluate` takes: a dictionary by name, or a list.
    - `accuracy`: instead of draws, as many as make the Monte Carlo errors of the ends of every policy's interval, and
      of the difference to the best, at most this share of its width.
    - `target`: the probability of choosing the best policy that is high enough.
    - `simulations`: how the effect of further data is forecast: by default from normal approximations, which takes no
      time; with a number, by simulating as many worlds and their data; 0 leaves it out.
    - `collector`: the policy that would collect the further data, by default the one that collected the log.

    >>> import bellief
    >>> data = bellief.Transitions.from_arrays([0] * 40, [0, 1] * 20, [1.0, 2.0] * 20, [0] * 40)
    >>> found = bellief.compare(data, ["always:0", "always:1"], discount=0.5, draws=100, simulations=4)
    >>> found.best, found.prob_best[1].item()
    ('always:1', 1.0)
    """
    check_numbers(discount, level, seed, horizon=horizon, draws=draws)
    check_accuracy(accuracy)
    if not 0.5 <= target < 1:
        raise UserError(f"target must lie in [0.5, 1), not {target}.")
    if simulations is not None and simulations < 0:
        raise UserError(f"simulations must be at least 0, not {simulations}.")
    problem = prepare(
        data, discount, prior=prior, reward_scale=reward_scale, horizon=horizon, start=start, terminates=terminates,
        belief=belief, support=support, reward_range=reward_range, draws=draws * max(len(policies), 1),
    )  # fmt: skip
    log = problem.log
    given = named_policies(policies)
    tables = np.stack([read_policy(policy, log) for policy in given.values()])
    drawn = StartDraws(problem, tables, seed, problem.horizon, helped=True)
    (samples, laws, apart), warning = until(drawn, draws, accuracy, lambda: _laws(drawn, level))
    result = comparison_of(problem, tuple(given), tables, samples, target, level, seed)
    result = dataclasses.replace(result, laws=laws, difference_laws=apart)
    if warning is not None:
        result.warnings[result.names[0]].append(warning)
    return _with_forecasts(result, problem, tables, read_policy(collector, log), simulations, seed)


def _laws(drawn: StartDraws, level: float) -> Enough:
    """Start values, the law of each policy's and of its difference to the best, and the errors of them all."""
    start, linear = drawn.start()
    policies = np.eye(start.shape[1])
    best = policies[int(start.mean(0).argmax())]
    laws = drawn.laws(start, linear, policies)
    apart = drawn.laws(start, linear, policies - best)
    errors: list[Errors | None] = []
    for mixtures, found in ((policies, laws), (policies - best, apart)):
        errors += [errors_of(start @ mixture, level, law) for mixture, law in zip(mixtures, found, strict=True)]
    return Enough((start, tuple(laws), tuple(apart)), errors)


def comparison_of(problem: Problem, names: tuple[str, ...], tables, samples, target: float, level: float, seed: int):
    """A comparison from start values that were sampled already, without forecasts."""
    warnings, samples, ends = {}, samples.copy(), True
    for number, (name, table) in enumerate(zip(names, tables, strict=True)):
        drawn = samples[:, number]
        samples[:, number], endless = bounded(problem, drawn, drawn, level, f"the policy '{name}'")
        covered = coverage(problem, table)
        unknown = knowledge(problem, table, covered.time, seed, level).cannot_tell
        warnings[name] = ([endless_sentence(endless)] if endless else []) + ([unknown] if unknown else [])
        warnings[name] += coverage_warnings(covered, problem)
        ends &= not endless
    return PolicyComparison(
        names=names,
        samples=samples,
        discount=problem.discount,
        transitions=len(problem.log),
        target=target,
        forecasts=(),
        more_needed=None,
        sd_exists=ends and bool(problem.has_variance((tables > 0).any(0) & ~problem.only_ends[:, None]).all()),
        warnings=warnings,
        level=level,
    )


def _with_forecasts(result: PolicyComparison, problem, tables, collector, simulations, seed) -> PolicyComparison:
    chance = float(result.prob_best.max())
    if chance >= result.target:
        note = f"The data are {chance:.1%} sure of the best policy already: no more are needed for {result.target:.0%}."
        return dataclasses.replace(result, more_needed=0, notes=(note,))
    if simulations == 0:
        return result
    if simulations is None and len(result.samples) == 1:
        note = "One draw does not tell how much more data are needed: give more draws."
        return dataclasses.replace(result, notes=(note,))
    if simulations is None:
        found = preposterior.expected(problem, tables, result.samples, collector, result.target, seed)
    else:
        found = preposterior.simulated(problem, tables, collector, result.target, simulations, INNER_DRAWS, seed)
    more = preposterior.needed(found, result.target)
    last = found[-1]
    note = (
        f"About {more:,} more transitions of the same kind are expected to make the choice {result.target:.0%} sure."
        if more is not None
        else f"Not even {last.transitions:,} more transitions of the same kind are expected to make the choice "
        f"{result.target:.0%} sure ({last.chance:.1%} then): the policies may be equally good, or the log's own policy "
        "does not try what tells them apart."
    )
    return dataclasses.replace(result, forecasts=tuple(found), more_needed=more, notes=(note,))


def named_policies(policies: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Policies by name: their own, that of their file, or their number."""
    if isinstance(policies, str) or not isinstance(policies, Mapping | Sequence):
        raise UserError("compare needs two or more policies, in a list or in a dictionary by name.")
    if isinstance(policies, Mapping):
        named = {str(name): policy for name, policy in policies.items()}
    else:
        named = {}
        for number, policy in enumerate(policies):
            name = str(policy) if isinstance(policy, str | Path) else f"policy {number}"
            if name in named:
                raise UserError(f"The policy '{name}' is there twice; name each once.")
            named[name] = policy
    if len(named) < 2:
        raise UserError("compare needs two or more policies.")
    return named


def _finite(numbers: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and np.isnan(value) else value for name, value in numbers.items()}
