"""From a log of vectors to the linear-Gaussian belief, and to the boundary at which episodes end."""

import jax
import jax.numpy as jnp
import numpy as np

from bellief.beliefs import ending, linear
from bellief.beliefs.matrix_normal import Regression
from bellief.mdp.linear import Form
from bellief.offline.feature_log import FeatureTransitions, Units
from bellief.types import BoxSpaces


def learn(
    log: FeatureTransitions, units: Units, form: Form, prior: linear.Prior, state, following
) -> linear.LinearBelief:
    """The belief after the whole log: one QR decomposition for each action and each of the two regressions."""
    low, high = (tuple(map(float, row)) for row in units.bounds)
    spaces = BoxSpaces(state.shape[1], log.actions, low, high, True, None, None)
    start = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), linear.init(prior, form, spaces))
    bounds = jnp.asarray(units.bounds)
    x, g = (np.asarray(jax.vmap(lambda one, f=f: f(one, bounds))(state)) for f in (form.features, form.reward_features))
    target = following - state if form.dynamics == "difference" else following
    reward = log.reward[:, None] / units.reward
    taken = [log.action == action for action in range(log.actions)]
    going_on = [rows & ~log.terminated for rows in taken]
    ones = np.ones((int(log.terminated.sum()), 1))
    return linear.LinearBelief(
        _absorb_each(start.transitions, [(x[rows], target[rows]) for rows in taken]),
        _absorb_each(start.rewards, [(g[rows], reward[rows]) for rows in going_on]),
        jax.tree.map(jnp.asarray, _absorb(start.ends, ones, reward[log.terminated])),
        bounds,
    )


def _absorb_each(beliefs: Regression, data: list[tuple[np.ndarray, np.ndarray]]) -> Regression:
    each = [_absorb(Regression(root, degrees), *rows) for root, degrees, rows in zip(*beliefs, data, strict=True)]
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
