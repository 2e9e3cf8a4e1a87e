"""BBI's value beside the upper bound on the Bayes-optimal value (the paper's fig:bayes_bounds), on NChain.

The bound is the mean over MDPs from the posterior of their optimal values. BBI's value is that of the policy it
follows, averaged over the same MDPs. Both are computed once for an infinite horizon and once for H steps from zero:
mixing the two, as a plain reading of the paper does, leaves a gap of 37% of the discounted mass, whatever the agent
learned.
"""

import jax
import jax.numpy as jnp
import numpy as np

from bellief.agents import bbi_sampled
from bellief.agents.schedule import update_steps
from bellief.beliefs import tabular
from bellief.envs import make
from bellief.experiments.compiled_environments import make_tables
from bellief.experiments.compiled_loop import run_batch
from bellief.experiments.compiled_steps import batch_keys
from bellief.experiments.event_loop import Snapshot
from bellief.fast.placement import CPU_WIDTH, find_places
from bellief.mdp import bellman
from bellief.paper.tasks import SEED

# The belief is looked at after about this many updates, evenly spaced on a logarithmic axis.
LOOKS = 25


def look_steps(steps: int) -> list[int]:
    """Plan steps at which bounds are computed."""
    plans = np.array(update_steps(steps))
    wanted = np.geomspace(1, len(plans), LOOKS).round().astype(int) - 1
    return sorted({int(plans[place]) for place in wanted})


def values_under(key, config: bbi_sampled.Config, state: bbi_sampled.State, mdps: int, discount: float):
    """Means over sampled MDPs at the start state: bound and policy, for an infinite horizon and for H steps."""

    def one(draw):
        mdp = tabular.sample(draw, config.prior, state.belief, discount)
        policy = jax.nn.one_hot(state.actions, mdp.reward.shape[1], dtype=mdp.reward.dtype)
        return jnp.stack(
            [
                bellman.policy_iteration(mdp).values[0],
                bellman.evaluate_exact(mdp, policy)[0],
                bellman.backward_induction(mdp, config.horizon)[0][0, 0],
                bellman.evaluate_finite(mdp, policy, config.horizon)[0],
            ]
        )

    return jnp.mean(jax.vmap(one)(jax.random.split(key, mdps)), axis=0)


def bayes_bounds(rule: str, steps: int, runs: int, mdps: int) -> dict[str, np.ndarray]:
    """Bounds and values of `runs` runs at the looks: arrays [runs, looks]."""
    environment = make("nchain")
    tables = make_tables(environment.outcomes)
    config = bbi_sampled.Config(rule=rule)
    looks = look_steps(steps)
    judge = jax.jit(
        lambda keys, states: jax.vmap(lambda key, one: values_under(key, config, one, mdps, config.discount))(
            keys, states
        )
    )
    chunks = []
    for first in range(0, runs, CPU_WIDTH):
        numbers = range(first, first + CPU_WIDTH)
        keys = batch_keys(SEED, "nchain", "bbi-paper", numbers)
        rows = []
        with jax.default_matmul_precision("highest"):
            # States are looked at after every plan, so a call of the compiled program must not work through several.
            given = (keys, tables, bbi_sampled, config, environment.spaces(), update_steps(steps), [steps], 1000.0)
            for event in run_batch(*given, places=find_places("cpu", CPU_WIDTH), most=1):
                if isinstance(event, Snapshot) and event.event + 1 in looks:
                    draws = jax.vmap(lambda key, at=event.event: jax.random.fold_in(key, 2**30 + at))(keys.agent)
                    rows.append(np.asarray(judge(draws, event.runs.agent), np.float64))
        chunks.append(np.stack(rows, axis=1))
    found = np.concatenate(chunks)[:runs]
    names = ("bound", "policy", f"bound, H = {config.horizon}", f"policy, H = {config.horizon}")
    return {"step": np.array(looks), **{name: found[..., place] for place, name in enumerate(names)}}


def optimum() -> float:
    """V*(start) of the true NChain."""
    with jax.enable_x64(True):
        return float(bellman.policy_iteration(jax.tree.map(jnp.asarray, make("nchain").mdp())).values[0])
