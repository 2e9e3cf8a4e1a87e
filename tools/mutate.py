"""Break thirty lines of the maths, one at a time, and see whether the fast tests notice.

    python tools/mutate.py [--out docs/results/mutation.csv] [--only 0-9] [--check]

A copy of the source is broken, never the tree itself. A break counts as caught where the named tests fail, which must
pass with the source as it is. Lines that are in the file already are not run again; `--check` only looks whether every line
is still where it was.
"""

import argparse
import csv
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Break(NamedTuple):
    file: str
    line: str
    instead: str
    tests: str


BREAKS = [
    Break("mdp/bellman.py", "mdp.reward + mdp.discount * mdp.transition @ values", "mdp.reward + mdp.transition @ values", "mdp/test_bellman.py"),
    Break("mdp/bellman.py", "jnp.linalg.solve(identity - mdp.discount * transition, reward)", "jnp.linalg.solve(identity - mdp.discount * transition.T, reward)", "mdp/test_bellman.py"),
    Break("mdp/bellman.py", "return values[::-1], actions[::-1]", "return values, actions", "mdp/test_bellman.py"),
    Break("mdp/bellman.py", "chain = chain + ends[:, None] * start", "chain = chain + ends[:, None]", "mdp/test_bellman.py"),
    Break("mdp/bellman.py", "low, high = jnp.where(ends, jnp.minimum(low, 0), low), jnp.where(ends, jnp.maximum(high, 0), high)", "low, high = low, high", "mdp/test_bellman.py"),
    Break("mdp/utilities.py", "(transition @ (discount * later).T).T", "(transition.T @ (discount * later).T).T", "mdp/test_utilities.py"),
    Break("mdp/utilities.py", "jnp.where(goes_on, tail, 0)", "tail", "mdp/test_utilities.py"),
    Break("beliefs/dirichlet.py", "    concentration = prior + counts.astype(dtype)\n", "    concentration = counts.astype(dtype) + 1\n", "beliefs/test_dirichlet.py"),
    Break("beliefs/dirichlet.py", "jax.random.normal(key, (math.prod(shape),), dtype) ** 2 / 2", "jax.random.normal(key, (math.prod(shape),), dtype) ** 2", "beliefs/test_dirichlet.py"),
    Break("beliefs/dirichlet.py", "jnp.exp(-arrivals / (prior * outcomes))", "jnp.exp(-arrivals / outcomes)", "beliefs/test_dirichlet.py"),
    Break("beliefs/normal_gamma.py", "squares = before * (before - change)", "squares = before**2", "beliefs/test_normal_gamma.py"),
    Break("beliefs/normal_gamma.py", "shape=prior.shape + count / 2", "shape=prior.shape + count", "beliefs/test_normal_gamma.py"),
    Break("beliefs/normal_gamma.py", "prior.strength * count * gap**2 / (2 * strength)", "prior.strength * gap**2 / (2 * strength)", "beliefs/test_normal_gamma.py"),
    Break("beliefs/normal_gamma.py", "normal / jnp.sqrt(parameters.strength * precision)", "normal / jnp.sqrt(precision)", "beliefs/test_normal_gamma.py"),
    Break("beliefs/normal_gamma.py", "cross = gap**2 * first.count.astype(first.mean.dtype) * share", "cross = gap**2 * share", "beliefs/test_normal_gamma.py"),
    Break("beliefs/tabular.py", "return jnp.where(transition.terminated, states, transition.next_state)", "return transition.next_state", "beliefs/test_tabular.py"),
    Break("beliefs/tabular.py", "row_share = jnp.sqrt(visits /", "row_share = (visits /", "beliefs/test_tabular.py"),
    Break("induction/weights.py", "scale = math.sqrt(0.5) / sigma", "scale = 0.5 / sigma", "induction/test_weights.py"),
    Break("induction/weights.py", "jax.nn.softmax(log_weights, axis=0)", "jax.nn.softmax(log_weights, axis=1)", "induction/test_weights.py"),
    Break("induction/weights.py", "1 / jnp.sum(weights**2, axis=0)", "1 / jnp.sum(weights, axis=0)", "induction/test_weights.py"),
    Break("induction/method1.py", "sigma = jnp.where(number >= 2, 2 * sigma, sigma)", "sigma = 2 * sigma", "induction/test_method1.py"),
    Break("induction/method1.py", "log_weight = jnp.where(progress.informed, log_weight, 0)", "log_weight = log_weight", "induction/test_method1.py"),
    Break("values/gaussian.py", "mass = (weights / count).reshape(-1)", "mass = (weights / count / mdps).reshape(-1)", "values/test_gaussian.py"),
    Break("values/gaussian.py", "return rest - jnp.outer(row, row), root.at[index].set(row)", "return rest, root.at[index].set(row)", "values/test_gaussian.py"),
    Break("values/joint.py", "factor = discount * jnp.einsum(\"jst,jrt->jrs\", transition, belief.factor)", "factor = jnp.einsum(\"jst,jrt->jrs\", transition, belief.factor)", "values/test_joint.py"),
    Break("values/joint.py", "jnp.sqrt(jnp.mean(within, axis=0) + jnp.var(belief.mean, axis=0))", "jnp.sqrt(jnp.mean(within, axis=0))", "values/test_joint.py"),
    Break("agents/rules.py", "return centre + optimism * jnp.sqrt(variance)", "return centre + optimism * variance", "agents/test_rules.py"),
    Break("beliefs/normal_gamma.py", "return jnp.where((count >= MANY) & (turn < share), other, nearest)", "return nearest", "test_edges.py::test_the_mean_reward_does_not_drift_after_millions"),
    Break("agents/schedule.py", "number * (number + 1) // 2 for", "number * (number - 1) // 2 + 1 for", "agents/test_schedule.py"),
    Break("experiments/compiled_environments.py", "gain = reward - excess", "gain = reward", "test_edges.py::test_average_rewards_agree_with_double_precision"),
]  # fmt: skip


def apply(one: Break, source: Path) -> None:
    """Break the copy under `source`."""
    path = source / "bellief" / one.file
    text = path.read_text()
    found = text.count(one.line)
    if found != 1:
        raise SystemExit(f"{one.file}: the line is there {found} times, not once: {one.line!r}")
    path.write_text(text.replace(one.line, one.instead))


def passes(tests: str, broken: Break | None = None) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        if broken:
            apply(broken, source)
        environment = os.environ | {"PYTHONPATH": str(source), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
        options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow and not kills"]
        command = [sys.executable, "-m", "pytest", *options, f"tests/{tests}"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"the tests could not be run:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "mutation.csv")
    parser.add_argument("--only", default=f"0-{len(BREAKS) - 1}", help="first and last number")
    parser.add_argument("--check", action="store_true", help="only look whether the lines are there")
    options = parser.parse_args()
    if options.check:
        for one in BREAKS:
            text = (ROOT / "src" / "bellief" / one.file).read_text()
            assert text.count(one.line) == 1, one
        return 0
    known = {}
    if options.out.exists():
        with open(options.out, newline="") as file:
            known = {(row["file"], row["line"]): row for row in csv.DictReader(file)}
    # A line that has been rewritten since is broken, and tested, anew.
    present = {(one.file, one.line.strip()) for one in BREAKS}
    known = {key: row for key, row in known.items() if key in present}
    whole = functools.cache(passes)
    first, last = (int(part) for part in options.only.split("-"))
    for number, one in list(enumerate(BREAKS))[first : last + 1]:
        key = one.file, one.line.strip()
        if key not in known:
            if not whole(one.tests):
                raise SystemExit(f"tests/{one.tests} fails already, with nothing broken")
            caught = "no" if passes(one.tests, one) else "yes"
            known[key] = dict(
                zip(("file", "line", "instead", "tests", "caught"), (*key, *one[2:], caught), strict=True)
            )
            print(
                f"{number} {one.file}: {'caught' if caught == 'yes' else 'NOT CAUGHT'}: {one.instead.strip()}",
                flush=True,
            )
            with open(options.out, "w", newline="") as file:
                writer = csv.DictWriter(file, ["file", "line", "instead", "tests", "caught"], lineterminator="\n")
                writer.writeheader()
                writer.writerows(known.values())
    caught = sum(row["caught"] == "yes" for row in known.values())
    print(f"{caught} of {len(known)} caught")
    return 0 if caught >= 0.9 * len(known) else 1


if __name__ == "__main__":
    sys.exit(main())
