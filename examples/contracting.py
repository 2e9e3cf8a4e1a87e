"""The animation of the ten-minute tutorial: the belief about the start value of NChain, backup by backup, V_H to V_0.

    python examples/contracting.py docs/images/contracting.gif

After 10, 100 and 1,000 steps of data, 300 MDPs are drawn from the posterior. Every frame has one more Bellman step in
each of them, beginning with V_H = 0; what is drawn is the spread of V over the MDPs, with the true value beside it.
"""

import sys

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

from bellief.beliefs import tabular
from bellief.envs import make
from bellief.mdp import bellman
from bellief.types import Transition

DISCOUNT, MDPS, BACKUPS, STRIDE = 0.95, 300, 90, 5
SIZES = (10, 100, 1000)


def walk(environment, steps, seed=0):
    """Transitions of random actions, drawn from the environment's table of outcomes."""
    generator, table, state, rows = np.random.default_rng(seed), environment.outcomes, 0, []
    for _ in range(steps):
        action = int(generator.integers(2))
        outcome = generator.choice(table.probability.shape[-1], p=table.probability[state, action])
        following = int(table.next_state[state, action, outcome])
        rows.append((state, action, table.reward[state, action, outcome], following, False))
        state = following
    state, action, reward, following, ended = (np.array(column) for column in zip(*rows, strict=True))
    return Transition(state, action, reward.astype(np.float32), following, ended)


def histories(environment):
    """For each size of data, the start values of all MDPs after 0, 1, 2, ... backups."""
    policy = jnp.full((5, 2), 0.5)
    draw = jax.jit(jax.vmap(lambda key, belief: tabular.sample(key, tabular.PAPER_PRIOR, belief, DISCOUNT), (0, None)))
    found = []
    for size in SIZES:
        data = Transition(*(jnp.asarray(part) for part in walk(environment, size)))
        mdps = draw(jax.random.split(jax.random.key(size), MDPS), tabular.update_batch(tabular.init(5, 2), data))
        transition, reward = (np.asarray(part) for part in jax.vmap(bellman.under_policy, (0, None))(mdps, policy))
        values = [np.zeros((MDPS, 5))]
        for _ in range(BACKUPS):
            values.append(reward + DISCOUNT * np.einsum("jst,jt->js", transition, values[-1]))
        found.append(np.array(values)[:, :, 0])
    truth = np.asarray(bellman.evaluate_exact(jax.tree.map(jnp.asarray, environment.mdp(DISCOUNT)), policy))[0]
    return found, truth


def main(path: str) -> None:
    """Draw it."""
    found, truth = histories(make("nchain"))
    figure, axes = plt.subplots(1, 3, figsize=(6.4, 2.6), sharex=True, sharey=True, layout="constrained")
    bins = np.linspace(-10, 80, 46)

    def frame(number):
        done = number * STRIDE
        for axis, size, values in zip(axes, SIZES, found, strict=True):
            axis.clear()
            axis.hist(values[done], bins, color="#3b6ea5")
            axis.axvline(truth, color="black", linewidth=1)
            axis.set(title=f"{size:,} steps", ylim=(0, 150), xlim=(bins[0], bins[-1]), yticks=[])
            axis.title.set_fontsize(9)
        axes[1].set_xlabel("value of the first state (line: the truth)", fontsize=8)
        figure.suptitle(f"V after {done} backups", fontsize=10)

    frames = [*range(BACKUPS // STRIDE + 1), *[BACKUPS // STRIDE] * 6]
    FuncAnimation(figure, frame, frames=frames).save(path, PillowWriter(fps=6), dpi=80)
    frame(BACKUPS // STRIDE)
    figure.savefig(path.replace(".gif", ".png"), dpi=80)


if __name__ == "__main__":
    main(sys.argv[1])
