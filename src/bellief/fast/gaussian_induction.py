"""Method 1 with its random numbers drawn beforehand and its weights in one pass.

The same results as `bbi_paper.induce` and `evaluate.by_method1`, from the same random numbers:

- The noise of every step's first draw, and the tie-breakers, are drawn for all steps at once. Drawing them one step at
  a time costs several times more, in small operations.
- A sum of exponentials needs one pass over them, a sum of logarithms two. What underflows in the former is lost in
  rounding anyway if another MDP explains the same values well enough; otherwise the logarithms are computed.
- A GPU waits in every step for the host to learn whether weights need repair, which is rare. There the induction skips
  the repair; it is rerun with it if any step needed it.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from bellief.agents import bbi_paper, rules
from bellief.induction import evaluate as induction
from bellief.induction import method1, weights
from bellief.induction.method1 import Diagnostics, Progress, Settings
from bellief.mdp import bellman, utilities
from bellief.mdp.tabular_mdp import TabularMDP

# Float32 holds numbers that are 10^18 times smaller.
SAFE = 1e-20


def noise(
    keys: Key[Array, "H"], settings: Settings, progress: Progress, attempt: Int[Array, ""] | int = 0
) -> Float[Array, "H K*R"]:
    """The random numbers of each step's first draw (attempt 0) or second (1)."""
    module = method1.BELIEFS[settings.values]
    return jax.vmap(lambda key: module.noise(jax.random.fold_in(key, attempt), progress.belief, settings.samples))(keys)


def step_keys(key: Key[Array, ""], horizon: int) -> Key[Array, "H 4"]:
    """The four keys of every step, as `bbi_paper.step_back` splits them."""
    return jax.vmap(lambda one: jax.random.split(one, 4))(jax.random.split(key, horizon))


def direct_weights(
    values: Float[Array, "K S"], utilities: Float[Array, "J L S"], sigma: Float[Array, ""], likelihood: str
) -> tuple[Float[Array, "J K"], Bool[Array, "*K"]]:
    """The weights as sums of exponentials, and whether they can be trusted (those of each value sample, or all)."""
    if likelihood != "mixture":
        log_weights = weights.log_likelihood(values, utilities, sigma, likelihood)
        return weights.normalise(log_weights), ~weights.is_unstable(log_weights)
    # Without the barrier XLA would sum over j from the exponentials themselves, and store them for it.
    sums = jax.lax.optimization_barrier(jnp.sum(jnp.exp(weights.exponents(values, utilities, sigma)), axis=(0, 1)))
    return sums / jnp.sum(sums, axis=0), jnp.max(sums, axis=0) > SAFE


def draw(
    key: Key[Array, ""], settings: Settings, progress: Progress, noise: Float[Array, "K*R"], repair: bool = True
) -> tuple[Float[Array, "K S"], Float[Array, "J K"], Progress, Diagnostics]:
    """`method1.draw` from the noise of this step's key.

    Without `repair`, `resamples` says of each value sample whether its weights need repair, and the sizes are those of
    each sample: the caller can sum them for all steps at once.
    """
    module = method1.BELIEFS[settings.values]

    def is_unstable(carry):
        number, _, _, _, unstable = carry
        return unstable & (number <= settings.max_doublings)

    def again(carry):
        """Attempt 0 is the first draw by logarithms, 1 the second draw; a doubling keeps the second draw's values."""
        number, sigma = carry[0] + 1, carry[1]
        sigma = jnp.where(number >= 2, 2 * sigma, sigma)
        # XLA computes what does not change in a loop before it, needed or not; so the key depends on the number.
        draw_key = jax.random.fold_in(key, jnp.minimum(number, 1))
        values = module.sample(draw_key, progress.belief, settings.samples)
        log_weights = weights.log_likelihood(values, progress.utilities, sigma, settings.likelihood)
        return number, sigma, values, weights.normalise(log_weights), weights.is_unstable(log_weights)

    values = module.sample_with(noise, progress.belief)
    weight, trusted = direct_weights(values, progress.utilities, progress.sigma, settings.likelihood)
    weight = jnp.where(progress.informed, weight, 1 / weight.shape[0])
    if not repair:
        doubtful = (progress.informed & ~trusted).astype(jnp.int32)
        sizes = weights.effective_sample_size(weight)
        return values, weight, progress, Diagnostics(sizes, doubtful, jnp.zeros_like(doubtful))
    unsure = progress.informed & ~jnp.all(trusted)
    first = (jnp.array(-1, jnp.int32), progress.sigma, values, weight, unsure)
    number, sigma, values, weight, _ = jax.lax.while_loop(is_unstable, again, first)
    size = jnp.mean(weights.effective_sample_size(weight))
    diagnostics = Diagnostics(size, jnp.clip(number, 0, 1), jnp.maximum(number - 1, 0))
    return values, weight, progress._replace(sigma=sigma), diagnostics


def induce(
    key: Key[Array, ""],
    settings: Settings,
    horizon: int,
    mdps: TabularMDP,
    final: Float[Array, "J S"],
    sigma: Float[Array, ""],
    score: bbi_paper.Score,
) -> tuple[Int[Array, "S"], bbi_paper.Info]:
    """`bbi_paper.induce`."""
    return _induce(step_keys(key, horizon), settings, mdps, final, sigma, score)


def induce_without_repair(
    key: Key[Array, ""],
    settings: Settings,
    horizon: int,
    mdps: TabularMDP,
    final: Float[Array, "J S"],
    sigma: Float[Array, ""],
    score: bbi_paper.Score,
) -> tuple[Int[Array, "S"], bbi_paper.Info]:
    """`bbi_paper.induce` without the repair of weights, and once more with it if any step needed it."""
    keys = step_keys(key, horizon)

    def again(found):
        # XLA computes what does not change in a loop before it, needed or not; so the keys depend on what was found.
        data, _ = jax.lax.optimization_barrier((jax.random.key_data(keys), found[0]))
        own_keys = jax.random.wrap_key_data(data, impl=jax.random.key_impl(keys))
        return jnp.array(False), _induce(own_keys, settings, mdps, final, sigma, score)

    actions, info = _induce(keys, settings, mdps, final, sigma, score, repair=False)
    return jax.lax.while_loop(lambda found: found[0], again, (info.resamples > 0, (actions, info)))[1]


def _induce(keys: Key[Array, "H 4"], settings: Settings, mdps, final, sigma, score, repair: bool = True):
    def step(carry, given):
        progress, _ = carry
        (draw_key, score_key, _, utility_key), own_noise, ties = given
        values, weight, progress, diagnostics = draw(draw_key, settings, progress, own_noise, repair)
        actions = rules.argmax_with(ties, score(score_key, mdps, values, weight))
        policy = jax.nn.one_hot(actions, mdps.reward.shape[2], dtype=final.dtype)
        samples = bbi_paper.backups(mdps, actions, values)
        progress = method1.refit(utility_key, settings, progress, mdps, policy, samples, weight)
        return (progress, actions), diagnostics

    start = method1.start(settings, final, sigma)
    ties = rules.tie_breakers(keys[:, 2], mdps.reward.shape[1:], final.dtype)
    first = (start, jnp.zeros(final.shape[1], jnp.int32))
    given = (keys, noise(keys[:, 0], settings, start), ties)
    (progress, actions), seen = jax.lax.scan(step, first, given)
    return actions, bbi_paper.summed_up(settings, progress, seen)


def evaluate(
    key: Key[Array, ""],
    settings: Settings,
    mdps: TabularMDP,
    policy: Float[Array, "S A"],
    horizon: int,
    value_span: Float[Array, ""],
    final: str = "zero",
) -> induction.Evaluation:
    """`evaluate.by_method1`."""
    chain = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy)
    discount, sigma = mdps.discount.reshape(-1)[0], jnp.asarray(settings.sigma_fraction * value_span, mdps.reward.dtype)

    def step(progress, given):
        (draw_key, utility_key), own_noise = given
        values, weight, progress, diagnostics = draw(draw_key, settings, progress, own_noise)
        samples = jax.vmap(utilities.expected, in_axes=(0, 0, None, None))(*chain, discount, values)
        return method1.refit(utility_key, settings, progress, mdps, policy, samples, weight), diagnostics

    first = method1.start(settings, induction.final_values(mdps, policy, final), sigma)
    keys = jax.vmap(jax.random.split)(jax.random.split(key, horizon))
    progress, diagnostics = jax.lax.scan(step, first, (keys, noise(keys[:, 0], settings, first)))
    return induction.Evaluation(progress, diagnostics)
