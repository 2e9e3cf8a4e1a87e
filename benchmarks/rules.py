"""Compare BBI's action rules: reward per step in spans of a run, and the worst run, for a list of settings.

    python benchmarks/rules.py --env nchain --steps 1000000 --runs 50 "rule=mean" "rule=optimistic optimism=1"

Each quoted argument is one set of settings; a word without `=` names another agent (default bbi-paper).
"""

import argparse
import json
import time

import numpy as np

import bellief


def parse(text: str) -> tuple[str, dict[str, str]]:
    """An agent's name and its settings."""
    words = text.split()
    names = [word for word in words if "=" not in word]
    return (names[0] if names else "bbi-paper"), dict(word.split("=", 1) for word in words if "=" in word)


def main() -> None:
    """Run every set of settings and print one JSON line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+")
    parser.add_argument("--env", nargs="+", required=True)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=int, default=10)
    options = parser.parse_args()
    for env in options.env:
        edges = sorted({0, *(10**power for power in range(3, 9) if 10**power < options.steps), options.steps // 2})
        edges.append(options.steps)
        for text in options.variants:
            agent, settings = parse(text)
            began = time.perf_counter()
            result = bellief.run(
                env,
                agent,
                options.steps,
                options.runs,
                options.seed,
                settings=settings,
                width=options.width,
                readings=tuple(edges[1:]),
            )
            totals = [np.zeros(options.runs)] + [result.total[:, list(result.step).index(edge)] for edge in edges[1:]]
            spans = {
                f"{first}-{last}": round(float(np.mean(after - before)) / (last - first), 5)
                for first, last, before, after in zip(edges, edges[1:], totals, totals[1:], strict=False)
            }
            last_half = (totals[-1] - totals[-2]) / (edges[-1] - edges[-2])
            line = {
                "env": env,
                "variant": text,
                "spans": spans,
                "last_half": round(float(last_half.mean()), 5),
                "se": round(float(last_half.std(ddof=1) / np.sqrt(options.runs)), 5),
                "lowest": round(float(last_half.min()), 5),
                "seconds": round(time.perf_counter() - began, 1),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
