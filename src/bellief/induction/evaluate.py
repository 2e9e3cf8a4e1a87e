"""Policy evaluation by inferential induction (the paper's Algorithm 2) over MDPs that were already sampled.

>>> import jax, numpy as np
>>> from bellief.envs import make
>>> from bellief.induction import evaluate, method1
>>> worlds = [make("nchain", slip=slip).mdp(discount=0.9) for slip in (0.1, 0.3)]
>>> mdps = jax.tree.map(lambda *leaves: np.float32(leaves), *worlds)  # two MDPs that it may be
>>> policy, key = np.full((5, 2), 0.5, np.float32), jax.random.key(0)
>>> belief = evaluate.by_joint(mdps, policy, horizon=3)
>>> belief.mean.shape, evaluate.final_values(mdps, policy, "zero").sum().item()
((2, 5), 0.0)
>>> few = method1.Settings(samples=4, utility_samples=2)
>>> found = evaluate.by_method1(key, few, mdps, policy, horizon=3, value_span=jax.numpy.array(100.0))
>>> type(found).__name__, found.belief.belief.mean.shape, found.diagnostics.effective_sample_size.shape
('Evaluation', (5,), (3,))
>>> evaluate.by_sampled_joint(key, mdps, policy, horizon=3, samples=8).mean.shape
(2, 5)

All psi_i, as Algorithm 2 returns them, the furthest ahead first:

>>> evaluate.every_method1(key, few, mdps, policy, horizon=3, value_span=jax.numpy.array(100.0)).mean.shape
(3, 5)
>>> evaluate.every_joint(mdps, policy, horizon=3).mean.shape
(3, 2, 5)
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.errors import UserError, require_choice
from bellief.induction import method1
from bellief.mdp import bellman, utilities
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.replaceable import replaceable
from bellief.values import joint

FINALS = ("zero", "own", "pooled")


class Evaluation(NamedTuple):
    """The value belief after the last step, and the weights' behaviour at every step (first the furthest ahead)."""

    belief: method1.Progress
    diagnostics: method1.Diagnostics


def final_values(mdps: TabularMDP, policy: Float[Array, "S A"], final: str) -> Float[Array, "J S"]:
    """What psi_H is made of, for each sampled MDP: zero, or its own infinite-horizon values (`own` and `pooled`)."""
    require_choice(final, FINALS, "There is no final value")
    if final == "zero":
        return jnp.zeros(mdps.reward.shape[:2], mdps.reward.dtype)
    return jax.vmap(bellman.evaluate_exact, in_axes=(0, None))(mdps, policy)


@replaceable
def by_method1(
    key: Key[Array, ""],
    settings: method1.Settings,
    mdps: TabularMDP,
    policy: Float[Array, "S A"],
    horizon: int,
    value_span: Float[Array, ""],
    final: str = "zero",
) -> Evaluation:
    """`horizon` steps of Method 1. `mdps` carries a leading axis J; `final` says what psi_H is fitted to.

    One belief for all MDPs cannot keep their values apart, so `own` and `pooled` are the same thing here.

    The paper writes the loop as i = H-1, ..., 1; we take `horizon` backups, so that H steps of reward are counted.
    """
    return _by_method1(key, settings, mdps, policy, horizon, value_span, final, False)[0]


def every_method1(
    key: Key[Array, ""],
    settings: method1.Settings,
    mdps: TabularMDP,
    policy: Float[Array, "S A"],
    horizon: int,
    value_span: Float[Array, ""],
    final: str = "zero",
) -> Any:
    """The same, and the value beliefs of all steps are returned, with a leading axis for the steps."""
    return _by_method1(key, settings, mdps, policy, horizon, value_span, final, True)[1]


def _by_method1(key, settings, mdps, policy, horizon, value_span, final, every) -> tuple[Evaluation, Any]:
    chain = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy)
    discount, sigma = mdps.discount.reshape(-1)[0], jnp.asarray(settings.sigma_fraction * value_span, mdps.reward.dtype)

    def step(progress, step_key):
        draw_key, utility_key = jax.random.split(step_key)
        values, weight, progress, diagnostics = method1.draw(draw_key, settings, progress)
        samples = jax.vmap(utilities.expected, in_axes=(0, 0, None, None))(*chain, discount, values)
        progress = method1.refit(utility_key, settings, progress, mdps, policy, samples, weight)
        return progress, (diagnostics, progress.belief if every else None)

    first = method1.start(settings, final_values(mdps, policy, final), sigma)
    progress, (diagnostics, history) = jax.lax.scan(step, first, jax.random.split(key, horizon))
    return Evaluation(progress, diagnostics), history


def by_joint(mdps: TabularMDP, policy: Float[Array, "S A"], horizon: int, final: str = "zero") -> joint.Joint:
    """`horizon` exact steps of the joint belief. With `final="own"` every step changes nothing: it is a fixed point."""
    transition, reward = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy)
    discount = mdps.discount.reshape(-1)[0]
    ends = final_values(mdps, policy, final)
    first = joint.pooled(ends) if final == "pooled" else joint.point(ends)
    return jax.lax.fori_loop(
        0, horizon, lambda _, belief: joint.push_forward(belief, transition, reward, discount), first
    )


def every_joint(mdps: TabularMDP, policy: Float[Array, "S A"], horizon: int) -> joint.Joint:
    """The joint beliefs psi_{H-1}, ..., psi_1 from zero, with a leading axis for the steps: values of 1 to H steps."""
    transition, reward = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy)
    discount = mdps.discount.reshape(-1)[0]

    def step(belief, _):
        belief = joint.push_forward(belief, transition, reward, discount)
        return belief, belief

    return jax.lax.scan(step, joint.point(jnp.zeros_like(reward)), length=horizon)[1]


def by_sampled_joint(
    key: Key[Array, ""],
    mdps: TabularMDP,
    policy: Float[Array, "S A"],
    horizon: int,
    samples: int,
    final: str = "pooled",
    noise_fraction: float = 1e-6,
) -> joint.Joint:
    """The joint belief with the sampling that Method 1 prescribes: draw from the mixture, weigh, back up, refit.

    It estimates what `by_joint` computes exactly and serves to show that the two agree.
    """
    if samples < mdps.reward.shape[0]:
        raise UserError(
            f"Each of the {mdps.reward.shape[0]} MDPs needs at least one sample, and {samples} are too few."
        )
    transition, reward = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy)
    discount = mdps.discount.reshape(-1)[0]
    ends = final_values(mdps, policy, final)

    def step(belief, step_key):
        values = joint.sample(step_key, belief, samples)
        # At a point mass there is no variance to take a fraction of; any positive number then gives even weights.
        noise = noise_fraction * jnp.mean(joint.sd(belief) ** 2) + jnp.finfo(values.dtype).tiny ** 0.5
        weight = joint.responsibilities(belief, values, noise)
        backed_up = reward[:, None] + discount * jnp.einsum("jst,kt->jks", transition, values)
        return joint.fit(backed_up, weight), None

    first = joint.pooled(ends) if final == "pooled" else joint.point(ends)
    rows = joint.fit(jnp.zeros((ends.shape[0], samples, ends.shape[1]), ends.dtype), jnp.ones((ends.shape[0], samples)))
    padding = rows.factor.shape[1] - first.factor.shape[1]
    first = joint.Joint(first.mean, jnp.pad(first.factor, ((0, 0), (0, max(padding, 0)), (0, 0))))
    return jax.lax.scan(step, first, jax.random.split(key, horizon))[0]
