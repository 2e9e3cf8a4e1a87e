"""A long run: 10^7 steps of Q-learning and of PSRL's belief in ten lanes, with memory, counts and numbers looked at.

    python benchmarks/soak.py [--steps 10000000]

Prints one line of JSON and ends with code 1 where memory grows by more than 5%, a count is off by one, or a number is
not finite.
"""

import argparse
import json
import resource
import sys
import time

import jax
import numpy as np

from bellief.agents import psrl_paper
from bellief.envs import make
from bellief.experiments import compiled_environments, compiled_loop, compiled_steps, event_loop


def resident() -> int:
    """Megabytes now, not at most."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000_000)
    parser.add_argument("--lanes", type=int, default=2)
    steps = parser.parse_args().steps
    lanes = parser.parse_args().lanes
    environment = make("nchain")
    keys = jax.vmap(lambda number: compiled_steps.run_keys(0, "nchain", "psrl", number))(np.arange(lanes))
    readings = list(np.linspace(steps / 20, steps, 20).astype(int))
    plans = [t * (t + 1) // 2 for t in range(1, 200)]
    events = compiled_loop.run_batch(
        keys,
        compiled_environments.make_tables(environment.outcomes),
        psrl_paper,
        psrl_paper.Config(),
        environment.spaces(),
        plans,
        readings,
        1000.0,
    )
    began, memory, last, totals = time.monotonic(), [], None, []
    for event in events:
        if isinstance(event, event_loop.Reading):
            memory.append(resident())
            totals.append(event.total / event.step)
        last = event
    belief = jax.tree.map(np.asarray, last.agent.belief)
    counted = belief.counts.sum((1, 2, 3)).tolist()
    finite = all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(last.agent) if np.asarray(leaf).dtype.kind == "f")
    # Rewards of NChain are whole numbers, so the sums are exact, and means must agree with them.
    means = (belief.rewards.mean.astype(np.float64) * belief.rewards.count).sum((1, 2)) / steps
    report = {
        "steps": steps,
        "seconds": round(time.monotonic() - began, 1),
        "memory_mb": [memory[2], memory[-1]],
        "counts_exact": counted == [steps] * lanes,
        "finite": bool(finite),
        "average_reward": totals[-1].tolist(),
        "average_by_the_belief": means.tolist(),
    }
    print(json.dumps(report))
    flat = memory[-1] <= 1.05 * memory[2]
    agree = np.abs(means - totals[-1]).max() < 1e-3
    return 0 if report["counts_exact"] and finite and flat and agree else 1


if __name__ == "__main__":
    sys.exit(main())
