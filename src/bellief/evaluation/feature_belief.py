"""From a log of vectors to the linear-Gaussian belief, and to the boundary at which episodes end."""

import jax
import jax.numpy as jnp
import numpy as np

from bellief.beliefs import ending, linear
from bellief.beliefs.matrix_normal import Regression
from bellief.evaluation.feature_priors import regression_prior, scales_of
from bellief.logs.feature_log import FeatureTransitions, Units
from bellief.mdp.linear_mdp import Form
from bellief.types import BoxSpaces


def learn(
    log: FeatureTransitions, units: Units, form: Form, prior: linear.Prior | None, state, following
) -> linear.LinearBelief:
    """The belief after the whole log: one QR decomposition for each action and each of the two regressions.

    Without a prior, the one that suits the log (`feature_priors.regression_prior`).
    """
    bounds = jnp.asarray(units.bounds)
    x, g = (np.asarray(jax.vmap(lambda one, f=f: f(one, bounds))(state)) for f in (form.features, form.reward_features))
    target = following - state if form.dynamics == "difference" else following
    reward = log.reward[:, None] / units.reward
    taken = [log.action == action for action in range(log.actions)]
    going_on = [rows & ~log.terminated for rows in taken]
    ones = np.ones((len(reward), 1))
    parts = ((x, target, taken), (g, reward, going_on), (ones, reward, [log.terminated]))
    given = [None] * 3 if prior is None else _given(prior, units, form, log.actions)
    transitions, rewards, ends = (_absorb_each(start, *part) for start, part in zip(given, parts, strict=True))
    return linear.LinearBelief(transitions, rewards, jax.tree.map(lambda leaf: leaf[0], ends), bounds)


def _given(prior: linear.Prior, units: Units, form: Form, actions: int) -> list[Regression]:
    """The three regressions of a prior whose numbers are given; all actions have the same."""
    low, high = (tuple(map(float, row)) for row in units.bounds)
    start = linear.init(prior, form, BoxSpaces(len(low), actions, low, high, True, None, None))
    start = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), start)
    first = [Regression(beliefs.root[0], beliefs.degrees[0]) for beliefs in (start.transitions, start.rewards)]
    return [*first, start.ends]


def _absorb_each(prior: Regression | None, x: np.ndarray, y: np.ndarray, groups: list[np.ndarray]) -> Regression:
    """The beliefs of all groups of rows, in a leading axis."""
    scales = scales_of(x, y, groups)
    each = [
        _absorb(regression_prior(scales, int(rows.sum())) if prior is None else prior, x[rows], y[rows])
        for rows in groups
    ]
    return Regression(*(jnp.asarray(np.stack(leaves)) for leaves in zip(*each, strict=True)))


def _absorb(belief: Regression, x: np.ndarray, y: np.ndarray) -> Regression:
    """`matrix_normal.update_batch` in NumPy, which need not be compiled for every number of rows."""
    root = np.linalg.qr(np.concatenate([belief.root, np.concatenate([x, y], axis=1)]), mode="r")
    return Regression(np.where(np.diagonal(root) < 0, -1, 1)[:, None] * root, belief.degrees + len(x))


def boundary(following, terminated, bounds) -> ending.Boundary:
    """Logistic regression of the ends on the states that steps led to."""
    ends, others = jnp.asarray(following[terminated]), jnp.asarray(following[~terminated])
    seen = ending.Ends(ends, jnp.asarray(len(ends)))
    return ending.fit(seen, others, jnp.asarray(len(others)), jnp.asarray(bounds))
