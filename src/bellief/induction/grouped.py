"""Policy evaluation by induction with one Gaussian for each group of sampled MDPs: the paper's collapse with one group,
the joint belief with as many groups as MDPs, and what lies between (see docs/collapse.md).

>>> import jax, numpy as np
>>> from bellief.envs import make
>>> from bellief.induction import grouped
>>> from bellief.values import grouped_values
>>> worlds = [make("nchain", slip=slip).mdp(discount=0.9) for slip in (0.05, 0.1, 0.2, 0.3)]
>>> mdps = jax.tree.map(lambda *leaves: np.float32(leaves), *worlds)
>>> policy = np.full((5, 2), 0.5, np.float32)
>>> beliefs = [grouped.by_groups(mdps, policy, horizon=50, count=count) for count in (1, 2, 4)]
>>> spread = [float(grouped_values.sd(belief)[0]) for belief in beliefs]
>>> spread == sorted(spread)
True
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bellief.mdp import bellman
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.values import grouped_values


def by_groups(
    mdps: TabularMDP,
    policy: Float[Array, "S A"],
    horizon: int,
    count: int,
    group: Int[Array, "J"] | None = None,
) -> grouped_values.Grouped:
    """`horizon` steps from zero. `mdps` carries a leading axis J; MDPs are grouped by their mean values under the
    policy, unless `group` says otherwise.
    """
    transition, reward = jax.vmap(bellman.under_policy, in_axes=(0, None))(mdps, policy)
    discount = mdps.discount.reshape(-1)[0]
    if group is None:
        own = jax.vmap(bellman.evaluate_finite, in_axes=(0, None, None))(mdps, policy, horizon)
        group = grouped_values.groups_by_value(jnp.mean(own, axis=1), count)
    first = grouped_values.fit(jnp.zeros_like(reward), group, count)
    return jax.lax.fori_loop(
        0, horizon, lambda _, belief: grouped_values.push_forward(belief, transition, reward, discount), first
    )
