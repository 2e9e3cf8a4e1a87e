"""`evaluate` by the paper's Methods 2 and 3, with V on both sides of the link (see `induction.stationary`)."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from bellief.beliefs import tabular
from bellief.evaluation.dense_belief import SAMPLER, STEP_STREAM, draw_mdps
from bellief.evaluation.question_checks import check_memory
from bellief.induction import stationary
from bellief.mdp import bellman

METHODS23 = ("method2", "method3")

# Below this many effective draws an estimate is called degenerate.
FEWEST_EFFECTIVE = 5.0


def evaluate_methods23(
    problem: Any, seed: int, method: str, mdps: int, draws: int, settings: stationary.Settings | None
) -> tuple[Float[Array, "N S"], dict[str, Any]]:
    """Draws of the value function, and notes that tell whether the method worked.

    `problem` holds data, policy and belief. The reward prior of a log is made of its data and static here, so another
    log is compiled again.
    """
    settings = settings or stationary.Settings()
    # Chains begin at the values of further MDPs, one for each draw.
    check_memory(problem.data.states, problem.used.shape[1], tables=mdps + settings.prior_mdps + draws)
    sampler = problem.sampler() | {"prior": problem.prior}
    options = {"mdps": mdps, "draws": draws, "settings": settings, "weigh": method == "method2"}
    key, scale = jax.random.key(seed), (problem.value_centre(), problem.value_span())
    result = _draw_values(key, problem.used, *scale, **options, **sampler)
    sizes = {"posterior_draws": float(result.posterior_size)}
    if settings.value_prior == "gaussian":  # the other choice cancels what prior draws are needed for
        sizes["prior_draws"] = float(result.prior_size)
    if method == "method2":
        sizes["likelihood"] = float(result.likelihood_size)
    notes: dict[str, Any] = {
        "mdps": mdps,
        "prior_mdps": settings.prior_mdps,
        "value_prior": settings.value_prior,
        "acceptance": float(result.acceptance),
        "effective_sample_sizes": sizes,
    }
    poor = [f"{name.replace('_', ' ')} {size:.1f}" for name, size in sizes.items() if not size >= FEWEST_EFFECTIVE]
    if poor:
        notes["degenerate"] = (
            f"Too few draws carry the estimate (effective sample size of {', '.join(poor)}): do not trust it; use "
            "joint, or more mdps."
        )
    return result.values, notes


@functools.partial(jax.jit, static_argnames=("mdps", "draws", "settings", "weigh", *SAMPLER))
def _draw_values(key, policy, centre, span, *, mdps, draws, settings, weigh, belief, discount, prior, support):
    """Posterior and prior draws of the MDP, and the chains over value functions that they link."""
    prior_key, start_key, chain_key = (jax.random.fold_in(key, STEP_STREAM - number) for number in range(3))
    sampled = draw_mdps(key, mdps, belief, discount, prior, support)
    empty = jax.tree.map(jnp.zeros_like, belief)
    unseen = draw_mdps(prior_key, settings.prior_mdps, empty, discount, prior, support)
    first = jax.vmap(bellman.evaluate_exact, in_axes=(0, None))(
        draw_mdps(start_key, draws, belief, discount, prior, support), policy
    )
    likelihood = jax.vmap(lambda mdp: jnp.sum(tabular.log_likelihood(belief, mdp), axis=-1))(unseen) if weigh else None
    posterior_rows, prior_rows = (stationary.rows_of(mdps, policy) for mdps in (sampled, unseen))
    return stationary.infer(chain_key, settings, posterior_rows, prior_rows, first, discount, centre, span, likelihood)
