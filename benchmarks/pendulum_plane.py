"""The value posterior over the pendulum's plane, and how it shrinks with data: docs/images/pendulum-plane.png.

    python benchmarks/pendulum_plane.py

Actions are taken at random, so that the data cover the plane (an agent that balances sees little of it). At each mark
BBI plans in our mode with 40 models, and we look at the plan's values under every model, V_j(s) = Q_j(s, pi(s)).
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bellief.agents import continuous_bbi as bbi
from bellief.agents import memory as memories
from bellief.envs.pendulum import pendulum
from bellief.plots import style
from bellief.plots.plane import plot_planes
from bellief.types import Transition

MARKS = (20, 200, 5000)


def main() -> None:
    """Run, look at the marks, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, default=Path("docs/images/pendulum-plane.png"))
    options = parser.parse_args()
    environment, config = pendulum(), bbi.Config(mdps=40)
    spaces = environment.spaces
    plan = jax.jit(lambda key, state: bbi.plan(key, config, spaces, state))
    update = jax.jit(lambda state, transition: bbi.update(config, state, transition))
    step = jax.jit(lambda state, action, noise: environment.step((), state, action, noise))
    features = bbi.value_map(config, 2)
    (left, bottom), (right, top) = spaces.low, spaces.high
    grid = np.stack(np.meshgrid(np.linspace(left, right, 81), np.linspace(bottom, top, 81)), axis=-1).reshape(-1, 2)

    @jax.jit
    def values(state):
        columns = jax.vmap(lambda point: features(point, state.bounds))(jnp.asarray(grid, jnp.float32)).T
        return jnp.sum((state.weights @ columns) * bbi.continuous.greedy(columns, state.weights), axis=1)

    key = jax.random.key(options.seed)
    state = bbi.init(key, config, spaces)
    observation, generator = jnp.zeros(2), np.random.default_rng(options.seed)
    means, spreads, visited = [], [], []
    for number in range(max(MARKS) + 1):
        if number in MARKS:
            state, _ = plan(jax.random.fold_in(key, number), state)
            draws = np.asarray(values(state))
            means.append(draws.mean(0).reshape(81, 81))
            spreads.append(draws.std(0).reshape(81, 81))
            visited.append(np.asarray(state.memory.states[: int(memories.known(state.memory))]))
            print(f"after {number} steps: mean sd over the plane {draws.std(0).mean():.4f}", flush=True)
        action = jnp.int32(generator.integers(3))
        noise = generator.random(2).astype(np.float32)
        outcome = step(observation, action, noise)
        seen = Transition(observation, action, outcome.reward, outcome.state, outcome.terminated)
        state = update(state, seen)
        observation = environment.start((), noise[::-1]) if bool(outcome.terminated) else outcome.state
    titles = [f"after {mark:,} random steps" for mark in MARKS]
    figure = plot_planes(
        (left, right, bottom, top), means, spreads, titles, "angle (rad)", "angular velocity (rad/s)", visited
    )
    options.write.parent.mkdir(parents=True, exist_ok=True)
    options.write.write_bytes(style.to_bytes(figure, "png"))


if __name__ == "__main__":
    main()
