"""Priors for logs of vectors: by name, given outright, or (the default) in the units of the log itself."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bellief.beliefs import linear
from bellief.beliefs.matrix_normal import Regression
from bellief.errors import UserError
from bellief.logs.labels import shown

LOGGED = "logged"
NAMES = (LOGGED, *linear.PRIORS)

# The noise's share of the outputs' mean square: where the log does not determine it, and its lower limit.
USUAL_NOISE, LEAST_NOISE = 0.1, 1e-12

# Degrees of freedom beyond the number of outputs: with two, the expected noise is the scale matrix itself.
MORE_DEGREES = 2.0


def read_prior(prior: str | linear.Prior) -> linear.Prior | None:
    """A prior from its name; None for `logged`, which is made when the log is learned from."""
    if isinstance(prior, linear.Prior):
        return prior
    if prior not in NAMES:
        raise UserError(
            f"There is no prior '{shown(prior)}' for states that are vectors; choose one of {', '.join(NAMES)}."
        )
    return linear.PRIORS.get(prior)


def described(prior: linear.Prior | None) -> dict[str, Any] | str:
    """For diagnostics."""
    return LOGGED if prior is None else dataclasses.asdict(prior)


class Scales(NamedTuple):
    """Mean squares of the features and the outputs of a regression, and the variance of the outputs' noise."""

    features: Float[np.ndarray, "F"]
    outputs: Float[np.ndarray, "D"]
    noise: Float[np.ndarray, "D"]


def scales_of(
    x: Float[np.ndarray, "n F"], y: Float[np.ndarray, "n D"], groups: Sequence[Bool[np.ndarray, "n"]]
) -> Scales:
    """The scales of a regression that every group of rows (those of an action) has for itself.

    Noise is what least squares leave, over the degrees of freedom that they leave.
    """
    used = max(sum(int(rows.sum()) for rows in groups), 1)

    def mean_squares(columns: np.ndarray) -> np.ndarray:
        found = np.sum([np.square(columns[rows]).sum(0) for rows in groups], axis=0) / used
        return np.where(found > 0, found, 1.0)

    features, outputs = mean_squares(x), mean_squares(y)
    squares, left = np.zeros(y.shape[1]), 0
    for rows in groups:
        design = x[rows] / np.sqrt(features)
        weights, _, rank, _ = np.linalg.lstsq(design, y[rows], rcond=None)
        squares += np.square(y[rows] - design @ weights).sum(0)
        left += len(design) - int(rank)
    noise = squares / left if left > 0 else USUAL_NOISE * outputs
    return Scales(features, outputs, np.maximum(noise, LEAST_NOISE * outputs))


def regression_prior(scales: Scales, rows: int) -> Regression:
    """Noise as the log has it, with the weight of one observation, and weights that explain the outputs' size.

    A conjugate prior ties weights to noise, Var W_ij = Sigma_jj / K_i, so K cannot be a constant: where the noise is
    small compared with the outputs (a feature that diverges, a reward without noise) true weights would be many prior
    deviations from zero, and the belief would attribute the rest to noise. Here each feature's typical size times its
    weight is of the outputs' size, K_i = features_i * noise / outputs, for any units and tails of the log. One K serves
    all outputs: the geometric mean of their noise shares. With no more `rows` in the group than weights, noise has the
    usual share: a K from the noise of other groups would hardly constrain some weights.
    """
    if rows <= len(scales.features):
        scales = scales._replace(noise=USUAL_NOISE * scales.outputs)
    share = np.exp(np.log(scales.noise / scales.outputs).mean())
    # NumPy's arrays, in double precision wherever this is called.
    root: Any = np.diag(np.sqrt(np.concatenate([share * scales.features, scales.noise])))
    degrees: Any = np.float64(len(scales.noise) + MORE_DEGREES)
    return Regression(root, degrees)
