"""Continuous MDPs whose next state and reward are linear in features of the state, with Gaussian noise.

>>> import jax.numpy as jnp
>>> from bellief.features import Identity
>>> from bellief.mdp import linear_mdp
>>> form = linear_mdp.Form("direct", Identity(), Identity())
>>> eye, box = jnp.eye(2)[None], jnp.array([[-1.0, -1.0], [1.0, 1.0]])
>>> mdp = linear_mdp.LinearGaussianMDP(0.5 * eye, 0 * eye, jnp.ones((1, 2)), jnp.array(0.0), box)
>>> linear_mdp.next_state(form, mdp, jnp.array([1.0, 2]), 0, normals=jnp.zeros(2)).tolist()
[0.5, 1.0]
>>> linear_mdp.mean_reward(form, mdp, jnp.array([1.0, 2]), 0).item()
3.0
"""

import dataclasses
from typing import NamedTuple

from jaxtyping import Array, Float, Int

from bellief.features import Features

DYNAMICS = ("direct", "difference")


class LinearGaussianMDP(NamedTuple):
    """One model: s' or s' - s is N(phi(s)^T W_a, T_a^T T_a), and a step pays phi_r(s)^T w_a on average.

    A step that ends the episode pays `end_reward`. `bounds` is the box that features measure states against.
    """

    transition: Float[Array, "A F D"]
    noise_root: Float[Array, "A D D"]
    reward: Float[Array, "A G"]
    end_reward: Float[Array, ""]
    bounds: Float[Array, "2 D"]


@dataclasses.dataclass(frozen=True)
class Form:
    """What all models of one belief share. `direct` regresses s' (the paper), `difference` s' - s (ours).

    `features` describe a state for the transitions, `reward_features` for the rewards.
    """

    dynamics: str
    features: Features
    reward_features: Features


def next_state(
    form: Form, mdp: LinearGaussianMDP, state: Float[Array, "D"], action: Int[Array, ""], normals: Float[Array, "D"]
) -> Float[Array, "D"]:
    """The state that a model leads to, given standard normal numbers for its noise."""
    moved = form.features(state, mdp.bounds) @ mdp.transition[action] + normals @ mdp.noise_root[action]
    return state + moved if form.dynamics == "difference" else moved


def mean_reward(
    form: Form, mdp: LinearGaussianMDP, state: Float[Array, "D"], action: Int[Array, ""]
) -> Float[Array, ""]:
    """What a step that does not end the episode pays on average."""
    return form.reward_features(state, mdp.bounds) @ mdp.reward[action]
