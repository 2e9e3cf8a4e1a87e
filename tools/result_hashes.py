"""SHA-256 hashes of the results of short runs, to check that a change leaves every number as it was.

    python tools/result_hashes.py before.json            # with the code before the change
    python tools/result_hashes.py after.json before.json # with the code after it: lists what differs, exit code 1

Hashes belong to one machine and one version of JAX: elsewhere sums are rounded differently. Options of XLA change
results as well, so set XLA_FLAGS to the same value for both calls.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

SMALL_BBI = {"horizon": 20, "mdps": 4, "samples": 8, "utility_samples": 3}
TABULAR = {
    "bbi": ("bbi-paper", SMALL_BBI),
    "bbi-default": ("bbi-paper", {}),
    "bbi-gaussian-thompson": ("bbi-paper", SMALL_BBI | {"rule": "thompson", "values": "gaussian"}),
    "bbi-gaussian-own": ("bbi-paper", SMALL_BBI | {"final": "own", "utilities": "sampled"}),
    "bbi-gaussian-expected": ("bbi-paper", SMALL_BBI | {"utilities": "expected", "likelihood": "product"}),
    "bbi-optimistic": ("bbi-paper", SMALL_BBI | {"rule": "optimistic"}),
    "bbi-joint-draws": ("bbi-paper", SMALL_BBI | {"rule": "optimistic", "draw_every": 4, "foresight_growth": 1.0}),
    "bbi-thompson": ("bbi-paper", SMALL_BBI | {"rule": "thompson"}),
    "bbi-cautious": ("bbi-paper", SMALL_BBI | {"rule": "cautious"}),
    "psrl": ("psrl-paper", {}),
    "psrl-sparse": ("psrl-paper", {"prior": "sparse"}),
    "mmbi": ("mmbi", {"horizon": 30}),
    "bss": ("bss", {}),
    "bql": ("bql", {}),
    "vdqn": ("vdqn", {}),
    "q-learning": ("q-learning", {}),
    "oracle": ("oracle", {}),
}
CONTINUOUS = {
    "bbi": ("bbi", {}),
    "bbi-own": ("bbi", {"mode": "own"}),
    "psrl": ("psrl", {}),
    "vdqn": ("vdqn", {}),
    "gptd": ("gptd", {}),
}
# Linear solves of two batches at once may wait for each other on a machine with two cores.
SLOW_CASE = ("bbi-gaussian-own", 12)
CASES = [("nchain", label, runs, {}) for label in TABULAR for runs in (1, 3, 12) if (label, runs) != SLOW_CASE]
CASES += [
    (env, label, 3, {})
    for env in ("doubleloop", "lavalake")
    for label in ("bbi", "bbi-optimistic", "psrl", "mmbi", "bss", "bql", "q-learning", "vdqn")
]
CASES += [(env, label, 3, {}) for env in ("pendulum", "linear-model") for label in CONTINUOUS]
CASES += [("lavalake", "psrl", 12, {}), ("pendulum", "psrl", 12, {})]
CASES += [("nchain", label, 3, {"width": 1}) for label in ("psrl", "bbi", "bbi-optimistic", "mmbi")]
CASES += [("maze", label, 2, {}) for label in ("psrl", "bbi")]
CASES += [("FrozenLake-v1", label, 2, {}) for label in ("psrl", "bbi", "q-learning")]
CASES += [("CartPole-v1", label, 2, {}) for label in ("psrl", "gptd")]
STEPS = {"maze": 60, "pendulum": 150, "linear-model": 150, "FrozenLake-v1": 120, "CartPole-v1": 120}


def fingerprint(result) -> dict[str, str]:
    """A hash of every array of a result."""
    arrays = {name: getattr(result, name) for name in ("step", "total", "smoothed", "policies", "gain")}
    arrays |= {name: getattr(result, name, None) for name in ("over", "falls", "length", "survived")}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    arrays["info"] = result.info.to_numpy(np.float64)
    if result.episodes is not None:
        arrays["episodes"] = result.episodes.to_numpy(np.float64)
    return {
        name: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16] for name, array in arrays.items()
    }


def main(target: str, reference: str | None = None, only: str = "") -> int:
    import bellief

    found = {}
    for env, label, runs, options in CASES:
        agents = CONTINUOUS if env in ("pendulum", "linear-model", "CartPole-v1") else TABULAR
        agent, settings = agents[label]
        name = " ".join([env, label, f"runs={runs}", *(f"{key}={value}" for key, value in options.items())])
        if only not in name:
            continue
        print(name, flush=True)
        result = bellief.run(env, agent, steps=STEPS.get(env, 250), runs=runs, settings=settings, **options)
        found[name] = fingerprint(result)
        Path(target).write_text(json.dumps(found, indent=1) + "\n")
    if reference is None:
        return 0
    known = json.loads(Path(reference).read_text())
    differing = [
        f"{name}: {', '.join(part for part in parts if known[name].get(part) != parts[part])}"
        for name, parts in found.items()
        if name in known and known[name] != parts
    ]
    print("\n".join(["DIFFERENT", *differing]) if differing else f"all {len(found)} equal")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
