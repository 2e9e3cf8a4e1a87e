"""Inferential induction in continuous MDPs: fitted Q-iteration over sampled models (the paper's continuous case).

Values are fitted at states drawn from q, the same in every step, and every model says once where each action would lead
from there. A step then needs two contractions and one ridge regression.

Two value beliefs. `by_gaussian` is the paper's: one Gaussian over the weights of Q for all models, redrawn in every
step and tied to the models by Method 1's weights. `by_joint` (ours) keeps Q with the model it came from, as in the
discrete case: given its model psi_i is a point, so nothing is redrawn and no weights are needed.

>>> import jax, jax.numpy as jnp
>>> from bellief.features import parse
>>> from bellief.induction import continuous
>>> from bellief.mdp.linear_mdp import Form, LinearGaussianMDP
>>> from bellief.values.linear_values import make_design
>>> line, box = parse("constant+raw", 1), jnp.array([[-1.0], [1.0]])
>>> form = Form("difference", line, line)
>>> moves = jnp.array([[[-0.1], [0.0]], [[0.1], [0.0]]])  # action 0 goes left, action 1 right; it pays to be right
>>> model = LinearGaussianMDP(moves, 0.01 * jnp.ones((2, 1, 1)), jnp.array([[0.0, 1.0]] * 2), jnp.array(0.0), box)
>>> models = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), model)
>>> states, stays = jnp.linspace(-1, 1, 8)[:, None], lambda state: jnp.array(0.0)
>>> following = continuous.next_states(form, models, states, jnp.zeros((8, 1)))
>>> continuous.over_states(jnp.sum, following).shape
(2, 2, 8)
>>> ahead = continuous.look_ahead(form, models, states, following, stays, line, box)
>>> limits = continuous.RewardRange(step=jnp.array([-1.0, 1.0]), end=jnp.array([0.0, 0.0]))
>>> isinstance(ahead, continuous.LookAhead), continuous.limit_rewards(ahead, limits).reward.shape
(True, (2, 2, 8))
>>> design = make_design(jax.vmap(lambda state: line(state, box))(states), ridge=0.01)
>>> weights = continuous.by_joint(design, ahead, continuous.greedy, 3, 0.9, limits)
>>> weights.shape, continuous.best_action(jnp.array([[0.0], [1.0]])).tolist()
((2, 2, 2), [[0.0], [1.0]])
>>> continuous.by_policy(design, ahead, jnp.full((2, 2, 16), 0.5), horizon=3, discount=0.9).shape
(2, 2, 2)
>>> belief, seen = continuous.by_gaussian(
...     jax.random.key(0), design, ahead, continuous.greedy, 3, 0.9, limits, jnp.array(1.0), 4, 2, 4
... )
>>> belief.mean.shape, isinstance(seen, continuous.Diagnostics)
((2, 2), True)
>>> even = lambda state: jnp.array([0.5, 0.5])
>>> bool(jnp.isfinite(continuous.roll_out(jax.random.key(0), form, model, states[0], even, stays, 3, 0.9)))
True
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bellief.features import Features
from bellief.induction import weights as mdp_weights
from bellief.mdp import linear_mdp
from bellief.mdp.linear_mdp import Form, LinearGaussianMDP
from bellief.values import linear_values
from bellief.values.linear_values import Design, LinearValue

# Action probabilities in states with the given features (one column per state), where Q has the given weights (one row
# per model). Long axes come last: with actions last, XLA's code for a CPU is ten times slower.
Follow = Callable[[Float[Array, "*batch F n"], Float[Array, "J A F"]], Float[Array, "*batch A n"]]


class LookAhead(NamedTuple):
    """What every model says of every action in every state: the successor's features, the reward, the chance to end.

    Without `end_reward` a step pays `reward` whether it ends the episode or not.
    """

    features: Float[Array, "J A N F"]
    reward: Float[Array, "J A N"]
    end: Float[Array, "J A N"]
    end_reward: Float[Array, "J"] | None


class RewardRange(NamedTuple):
    """Smallest and largest reward of a step and of an end; values are clipped to what these allow."""

    step: Float[Array, "2"]
    end: Float[Array, "2"]


class Diagnostics(NamedTuple):
    """How many models effectively share a value sample, for every step of the induction."""

    effective_sample_size: Float[Array, "H"]


def next_states(
    form: Form, models: LinearGaussianMDP, states: Float[Array, "N D"], normals: Float[Array, "N D"]
) -> Float[Array, "J A N D"]:
    """Where every model leads. A state has one noise for all models and actions: their differences matter."""
    actions = jnp.arange(models.reward.shape[1])

    def one(model, action, state, normal):
        return linear_mdp.next_state(form, model, state, action, normal)

    return _over_all(one)(models, actions, states, normals)


def _over_all(function):
    """Over models, actions and states; the last two arguments belong to states."""
    over_states = jax.vmap(function, in_axes=(None, None, 0, 0))
    over_actions = jax.vmap(over_states, in_axes=(None, 0, None, None))
    return jax.vmap(over_actions, in_axes=(0, None, None, None))


def over_states(function, states: Float[Array, "*batch D"]):
    """A function of one state, applied to all."""
    flat = jax.vmap(function)(states.reshape(-1, states.shape[-1]))
    return jax.tree.map(lambda leaf: leaf.reshape(*states.shape[:-1], *leaf.shape[1:]), flat)


def look_ahead(
    form: Form,
    models: LinearGaussianMDP,
    states: Float[Array, "N D"],
    following: Float[Array, "J A N D"],
    end_probability: Callable[[Float[Array, "D"]], Float[Array, ""]],
    features: Features,
    bounds: Float[Array, "2 D"],
) -> LookAhead:
    """Describe where the models lead to, and what they say of the rewards on the way."""
    actions = jnp.arange(models.reward.shape[1])

    def reward(model, action, state, _):
        return linear_mdp.mean_reward(form, model, state, action)

    described, end = over_states(lambda one: (features(one, bounds), end_probability(one)), following)
    return LookAhead(described, _over_all(reward)(models, actions, states, states), end, models.end_reward)


def limit_rewards(ahead: LookAhead, limits: RewardRange) -> LookAhead:
    """Rewards of sampled models, moved into the range that rewards have."""
    if ahead.end_reward is None:
        low, high = jnp.minimum(limits.step[0], limits.end[0]), jnp.maximum(limits.step[1], limits.end[1])
        return ahead._replace(reward=jnp.clip(ahead.reward, low, high))
    return ahead._replace(
        reward=jnp.clip(ahead.reward, *limits.step), end_reward=jnp.clip(ahead.end_reward, *limits.end)
    )


def _back_up(reward, end, end_reward, discount: float, values):
    """What a step is worth; models are the first axis of all arrays."""
    if end_reward is None:
        return reward + (1 - end) * discount * values
    return (1 - end) * (reward + discount * values) + end * end_reward[:, None, None]


def _next_range(limits: RewardRange, discount: float, span: Float[Array, "2"]) -> Float[Array, "2"]:
    """Smallest and largest value with one more step to go, from those without it."""
    going_on = limits.step + discount * span
    return jnp.stack([jnp.minimum(going_on[0], limits.end[0]), jnp.maximum(going_on[1], limits.end[1])])


def greedy(features: Float[Array, "*batch F n"], weights: Float[Array, "J A F"]) -> Float[Array, "*batch A n"]:
    """The paper's rule: the action that is best in the mean over the models."""
    return best_action(jnp.mean(weights, axis=0) @ features)


def best_action(scores: Float[Array, "*batch A n"]) -> Float[Array, "*batch A n"]:
    """All probability on the action of the highest score."""
    best = jnp.argmax(scores, axis=-2, keepdims=True)
    return (best == jnp.arange(scores.shape[-2])[:, None]).astype(scores.dtype)


def _columns(ahead: LookAhead) -> Float[Array, "J F A*N"]:
    """Features with one column for each action and state."""
    models, _, _, size = ahead.features.shape
    return jnp.moveaxis(ahead.features.reshape(models, -1, size), 1, 2)


def by_joint(
    design: Design,
    ahead: LookAhead,
    follow: Follow,
    horizon: int,
    discount: float,
    limits: RewardRange | None,
    final: Float[Array, "J A F"] | None = None,
) -> Float[Array, "J A F"]:
    """Weights of Q under each model after `horizon` steps; `final` are those to begin with, else zero."""
    models, actions, count, size = ahead.features.shape
    dtype = ahead.reward.dtype
    columns = _columns(ahead)
    # The solution of the ridge regression is linear in the targets.
    regress = jax.scipy.linalg.cho_solve((design.root, True), design.features.T).T
    start = jnp.zeros((models, actions, size), dtype) if final is None else final

    def step(carry, _):
        weights, span = carry
        values = jnp.sum((weights @ columns) * follow(columns, weights), axis=1)
        if limits is not None:
            values = jnp.clip(values, *span)
            span = _next_range(limits, discount, span)
        targets = _back_up(*ahead[1:], discount, values.reshape(models, actions, count))
        return ((targets.reshape(-1, count) @ regress).reshape(models, actions, size), span), None

    # Given values to begin with, only the infinite-horizon range of the rewards bounds them.
    wide = jnp.zeros(2, dtype)
    if final is not None and limits is not None:
        wide = jax.lax.fori_loop(0, 2000, lambda _, span: _next_range(limits, discount, span), wide)
    return jax.lax.scan(step, (start, wide), length=horizon)[0][0]


def by_policy(
    design: Design, ahead: LookAhead, there: Float[Array, "J A A*N"], horizon: int, discount: float
) -> Float[Array, "J A F"]:
    """What `by_joint` computes for a policy that is fixed, where a step is q -> c + M q, in log2(horizon) products.

    With m steps to go before n others, q_(m+n) = q_m + M^m q_n; the horizon is put together from powers of two.
    """
    models, actions, count, size = ahead.features.shape
    regress = jax.scipy.linalg.cho_solve((design.root, True), design.features.T).T
    immediate = ahead.reward if ahead.end_reward is None else (1 - ahead.end) * ahead.reward
    immediate = immediate if ahead.end_reward is None else immediate + ahead.end * ahead.end_reward[:, None, None]
    follow = there.reshape(models, actions, actions, count) * (discount * (1 - ahead.end))[:, None]
    later = jnp.einsum("jban,jang->jnabg", follow, ahead.features)
    step = jnp.einsum("nf,jnabg->jafbg", regress, later).reshape(models, actions * size, actions * size)
    part = jnp.einsum("nf,jan->jaf", regress, immediate).reshape(models, actions * size, 1)
    total = jnp.zeros_like(part)
    while horizon:
        if horizon % 2:
            total = part + step @ total
        horizon //= 2
        if horizon:
            part, step = part + step @ part, step @ step
    return total.reshape(models, actions, size)


def by_gaussian(
    key: Key[Array, ""],
    design: Design,
    ahead: LookAhead,
    follow: Follow,
    horizon: int,
    discount: float,
    limits: RewardRange | None,
    sigma: Float[Array, ""],
    samples: int,
    utility_samples: int,
    utility_states: int,
    likelihood: str = "mixture",
    rollouts: Callable[..., Float[Array, "J L M"]] | None = None,
) -> tuple[LinearValue, Diagnostics]:
    """Algorithm 3 with fitted Q-iteration and Method 1's weights.

    State n belongs to value sample n modulo `samples`. Utilities (the paper's third formula, or `rollouts` for the
    first two: `continuous_rollouts.Utilities`) are compared with values in the first `utility_states` states, which are
    draws from q like all others. Weights are computed as logarithms, and neither redrawn nor is sigma doubled:
    logarithms do not fail.
    """
    models, actions, count, size = ahead.features.shape
    owner = jnp.arange(count) % samples
    near = jnp.arange(utility_states)
    columns, near_columns = _columns(ahead), design.features[near].T
    by_state = jnp.moveaxis(ahead.features, 2, 0).reshape(count, models * actions, size)

    def step(carry, given):
        (belief, utilities, span, plans), (row, step_key) = carry, given
        draws = linear_values.sample(step_key, belief, samples)
        here = follow(near_columns, belief.mean[None])
        values = jnp.sum((draws @ near_columns) * here, axis=1)
        log_weight = mdp_weights.log_likelihood(values, utilities, sigma, likelihood)
        weight = mdp_weights.normalise(jnp.where(row == 0, 0, log_weight))
        there = follow(columns, belief.mean[None]).reshape(models, actions, actions, count)
        later = by_state @ jnp.swapaxes(draws, 1, 2)[owner]
        later = jnp.einsum("njab,jban->jan", later.reshape(count, models, actions, actions), there)
        if limits is not None:
            later = jnp.clip(later, *span)
            span = _next_range(limits, discount, span)
        fitted = linear_values.fit(design, _back_up(*ahead[1:], discount, later), weight[:, owner])
        plans = plans.at[row].set(fitted.mean)
        if rollouts is None:
            taken = follow(near_columns, fitted.mean[None])
            utilities = _utilities(ahead, discount, taken, draws[:utility_samples], there)
        else:
            utilities = jnp.broadcast_to(rollouts(jax.random.fold_in(step_key, 1), plans, row), utilities.shape)
        return (fitted, utilities, span, plans), jnp.mean(mdp_weights.effective_sample_size(weight))

    first = (
        linear_values.point(actions, design.root),
        jnp.zeros((models, utility_samples, utility_states), ahead.reward.dtype),
        jnp.zeros(2, ahead.reward.dtype),
        jnp.zeros((horizon, actions, size), ahead.reward.dtype),
    )
    (belief, _, _, _), sizes = jax.lax.scan(step, first, (jnp.arange(horizon), jax.random.split(key, horizon)))
    return belief, Diagnostics(sizes)


def _utilities(
    ahead: LookAhead,
    discount: float,
    taken: Float[Array, "A M"],
    draws: Float[Array, "L A F"],
    there: Float[Array, "J A A N"],
) -> Float[Array, "J L M"]:
    """u_j(s) = r_j(s, pi) + discount * V(s'), V from the next step's belief (the paper's third rollout formula)."""
    count = taken.shape[1]
    reward, end = ahead.reward[:, None, :, :count], ahead.end[:, None, :, :count]
    q_values = jnp.einsum("jamf,lbf->jlbam", ahead.features[:, :, :count], draws)
    values = jnp.sum(q_values * there[:, None, :, :, :count], axis=2)
    end_reward = None if ahead.end_reward is None else ahead.end_reward[:, None]
    return jnp.sum(taken * _back_up(reward, end, end_reward, discount, values), axis=2)


def roll_out(
    key: Key[Array, ""],
    form: Form,
    model: LinearGaussianMDP,
    state: Float[Array, "D"],
    policy: Callable[[Float[Array, "D"]], Float[Array, "A"]],
    end_probability: Callable[[Float[Array, "D"]], Float[Array, ""]],
    horizon: int,
    discount: float,
    sign: float = 1.0,
) -> Float[Array, ""]:
    """Return of one rollout of a model under a policy; the chance to have ended enters as an expectation.

    With the sign -1 the noise of states is mirrored: of two such rollouts what is odd in the noise cancels.
    """

    def step(carry, step_key):
        now, alive, total = carry
        action_key, noise_key = jax.random.split(step_key)
        action = jax.random.categorical(action_key, jnp.log(policy(now)))
        noise = sign * jax.random.normal(noise_key, now.shape, now.dtype)
        following = linear_mdp.next_state(form, model, now, action, noise)
        end = end_probability(following)
        paid = (1 - end) * linear_mdp.mean_reward(form, model, now, action) + end * model.end_reward
        # Once ended, what happens to the state no longer matters; it must only stay finite.
        following = jnp.where(end >= 1, now, following)
        return (following, alive * discount * (1 - end), total + alive * paid), None

    first = (state, jnp.ones((), state.dtype), jnp.zeros((), state.dtype))
    return jax.lax.scan(step, first, jax.random.split(key, horizon))[0][2]
