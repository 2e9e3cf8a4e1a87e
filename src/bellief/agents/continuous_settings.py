"""Settings of continuous BBI, and the feature maps that they name."""

import dataclasses
import math

from bellief.beliefs import linear
from bellief.errors import UserError, require, require_choice
from bellief.features import Features, parse
from bellief.files import OMIT_DEFAULT
from bellief.induction.method1 import UTILITIES
from bellief.mdp.linear_mdp import Form

MODES = ("own", "paper")
RULES = ("mean", "thompson", "optimistic", "cautious")


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings. `None` means: decided by `mode` and the environment, as documented here.

    Args:
        mode: `own` or `paper`; decides the settings from `values` to `prior` where they are None.
        values: `joint` (own) or `gaussian` (paper).
        dynamics: what is regressed, the `difference` s' - s (own) or s' itself, `direct` (paper).
        dynamics_features: own: constant, the state and, up to two dimensions, 4 x 4 radial basis functions; paper: the
            ten printed functions in two dimensions, the state alone in others.
        value_features: own: constant and 9 x 9 radial basis functions, or from three dimensions on all products of up
            to two coordinates; paper: as for the dynamics.
        reward_features: own: constant and the state; paper: as for the dynamics.
        clip: whether values and rewards are clipped to what the rewards seen so far allow (own).
        split_rewards: whether the reward of an end has a separate belief (own).
        prior: the prior over models.
        rule: `mean` (the paper), or with `joint` also `thompson` (one model), `optimistic` (mean + optimism * sd over
            the models) and `cautious` (mean of the worst `tail`).
        states: how many states values are fitted at; `history`, `start` and `support` are the shares of them that were
            visited, could be the first of an episode, or are spread over the box.
        final: psi_H; `zero`, or `previous`: the mean values of the last plan.
        ending: `known` or `learned`; by default `known` where the environment says which states end an episode.
        span: what `sigma_fraction` is a fraction of: (r_max - r_min) / (1 - discount), `paper`, or the range that
            values can have, `possible`.
        utilities: with `gaussian`, the paper's rollout formula: `sampled` (its first), `expected` or `values`.

    >>> from bellief.agents import continuous_bbi
    >>> continuous_bbi.Config().value_belief(), continuous_bbi.Config(mode="paper").value_belief()
    ('joint', 'gaussian')
    """

    mode: str = "own"
    values: str | None = None
    dynamics: str | None = None
    dynamics_features: str | None = None
    value_features: str | None = None
    reward_features: str | None = None
    clip: bool | None = None
    split_rewards: bool | None = None
    prior: linear.Prior | None = None
    rule: str = "mean"
    horizon: int = 20
    discount: float = 0.99
    mdps: int = 10
    states: int = 400
    history: float = 0.5
    start: float = 0.0
    support: float = 0.5
    ridge: float = 0.01
    samples: int = 50
    utility_samples: int = 10
    utility_states: int = 20
    sigma_fraction: float = 0.01
    span: str = "paper"
    optimism: float = 1.0
    tail: float = 0.25
    final: str = "zero"
    ending: str | None = None
    utilities: str = dataclasses.field(default="values", metadata={OMIT_DEFAULT: True})

    def __post_init__(self):
        for name, allowed in (
            ("mode", MODES),
            ("values", (None, "joint", "gaussian")),
            ("dynamics", (None, "difference", "direct")),
            ("rule", RULES),
            ("final", ("zero", "previous")),
            ("ending", (None, "known", "learned")),
            ("span", ("paper", "possible")),
            ("utilities", UTILITIES),
        ):
            require_choice(getattr(self, name), allowed, f"For continuous states there is no {name}")
        require(0 < self.discount <= 1, f"discount must lie in (0, 1], not {self.discount}.")
        for name in ("horizon", "mdps", "states", "samples", "utility_samples", "utility_states"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, not {getattr(self, name)}.")
        shares = (self.history, self.start, self.support)
        if min(shares) < 0 or not 0 < sum(shares) < math.inf:
            raise UserError("history, start and support must be shares of at least 0, and not all 0.")
        require(self.ridge > 0 and self.sigma_fraction > 0, "ridge and sigma_fraction must be positive.")
        if not 0 < self.tail <= 1 or not 0 <= self.optimism < math.inf:
            raise UserError("tail must lie in (0, 1], and optimism must be a finite number from 0.")
        if self.utilities != "values" and self.value_belief() != "gaussian":
            raise UserError("utilities are those of values=gaussian: the joint belief has no use for them.")
        if self.rule != "mean" and self.value_belief() == "gaussian":
            raise UserError(f"The rule '{self.rule}' needs values=joint in a continuous problem.")

    def value_belief(self) -> str:
        """The value belief in force."""
        return self.values or ("gaussian" if self.mode == "paper" else "joint")

    def own(self, value: bool | None) -> bool:
        """A choice that is made in our mode and not in the paper's, unless it is set."""
        return self.mode == "own" if value is None else value


def model_form(config: Config, dimension: int) -> Form:
    """How sampled models describe states."""
    if config.mode == "paper":
        text = reward_text = "constant+paper" if dimension == 2 else "raw"
    else:
        text, reward_text = "constant+raw" + ("+rbf:4" if dimension <= 2 else ""), "constant+raw"
    return linear.make_form(
        config.dynamics or ("direct" if config.mode == "paper" else "difference"),
        parse(config.dynamics_features or text, dimension),
        parse(config.reward_features or reward_text, dimension),
    )


def value_map(config: Config, dimension: int) -> Features:
    """How the value function describes states."""
    if config.value_features is not None:
        text = config.value_features
    elif config.mode == "paper":
        text = "constant+paper" if dimension == 2 else "raw"
    else:
        text = "constant+rbf:9" if dimension <= 2 else "constant+poly:2"
    return parse(text, dimension)
