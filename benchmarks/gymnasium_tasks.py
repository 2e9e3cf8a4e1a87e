"""Agents in Gymnasium's own environments, stepped for real: what an episode returns, against the exact optimum.

    python benchmarks/gymnasium_tasks.py --out docs/results

The optimum is the best expected return of an episode under the environment's time limit, by backward induction on its
transition table, which the agents never see.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import bellief
from bellief.envs.discrete import read_table
from bellief.mdp.bellman import backward_induction

TASKS = {"FrozenLake-v1": (50_000, 10), "CliffWalking-v1": (20_000, 10), "Taxi-v4": (50_000, 3)}
# Few successors per pair, and rewards that vary little: the paper's prior expects neither.
PRIOR = {"prior": "sparse", "prior.reward_rate": 0.01}
AGENTS = {
    "psrl": ("psrl", PRIOR),
    "bbi, optimistic": ("bbi", {**PRIOR, "rule": "optimistic"}),
    "q-learning": ("q-learning", {}),
}
# Where there is no time limit an optimal episode is over long before this.
LONG = 500


def optimum(name: str) -> float:
    """Best expected return of an episode."""
    environment = read_table(name)
    with jax.enable_x64(True):
        mdp = jax.tree.map(jnp.asarray, environment.mdp(discount=1.0))
        values, _ = backward_induction(mdp, environment.time_limit or LONG)
        return float(environment.outcomes.start @ np.asarray(values[0]))


def main() -> None:
    """Run every agent in every task and write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", nargs="+", default=list(TASKS))
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    lines = [
        "# Gymnasium's own environments",
        "",
        "Return of an episode, mean over the last tenth of the steps and over runs (standard error), with the real "
        "environments stepped (FrozenLake 4x4, slippery; there the return is the success rate). The optimum is exact, "
        "under the same time limit. PSRL and BBI have the sparse prior with `prior.reward_rate=0.01`; with the paper's "
        "rate of 1, rewards of 0 and 1 drown in what the prior expects, and FrozenLake takes far longer. Q-learning "
        "explores with epsilon 0.1 to the end. Command: `python benchmarks/gymnasium_tasks.py`.",
        "",
        "| environment | steps x runs | optimum | " + " | ".join(AGENTS) + " |",
        "|---|---|---|" + "---|" * len(AGENTS),
    ]
    for env in options.env:
        steps, runs = TASKS[env]
        cells = []
        for agent, settings in AGENTS.values():
            result = bellief.run(env, agent, steps, runs, settings=settings, width=runs)
            final = result.episode_summary()["final_return"]
            cells.append("none finished" if final is None else f"{final['mean']:.3f} ({final['se']:.3f})")
            print(env, agent, cells[-1], f"{result.seconds:.0f} s", flush=True)
        lines.append(f"| {env} | {steps:,} x {runs} | {optimum(env):.3f} | {' | '.join(cells)} |")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "gymnasium.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
