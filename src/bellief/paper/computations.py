"""What is no sweep: the value posteriors on NChain, their Wasserstein distances, and the Bayes bounds.

Each computation is a list of parts, every part a file of its own, so that an interrupted one goes on where it was; the
arrays of all parts make the result. Files are keyed by the settings that decide their numbers.
"""

import hashlib
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bellief.files import DamagedArchive, read_archive, write_whole
from bellief.paper.agents import OURS
from bellief.paper.tasks import SCALES, SEED

GENERATION = 1
READINGS = {"back-heavy": (0.8, 0.2), "forward-heavy": (0.2, 0.8)}
SIZES = (10, 100, 1000)
DISCOUNT = 0.99
# As the paper does it: five runs of its algorithm on the same data, the truth from 1,000 values.
REPEATS = 5


class Computation(NamedTuple):
    """Settings at every scale, and the function that yields the parts: a name and how to compute its arrays."""

    title: str
    settings: dict[str, dict[str, Any]]
    parts: Callable[[dict[str, Any]], Iterator[tuple[str, Callable[[], dict[str, np.ndarray]]]]]


def simulate(rng: np.random.Generator, policy: tuple[float, float], steps: int) -> Any:
    """A log of the fixed policy in NChain."""
    from bellief.envs import make
    from bellief.logs.transitions import Transitions

    outcomes = make("nchain").outcomes
    state, rows = 0, []
    for _ in range(steps):
        action = int(rng.random() < policy[1])
        outcome = int(rng.random() >= outcomes.probability[state, action, 0])
        following = int(outcomes.next_state[state, action, outcome])
        rows.append((state, action, outcomes.reward[state, action, outcome], following))
        state = following
    return Transitions.from_arrays(*map(np.array, zip(*rows, strict=True)), states=5, actions=2)


def data_set(reading: str, steps: int, number: int, seed: int = SEED) -> Any:
    """Data set number n of a reading of the policy, the same wherever it is asked for."""
    rng = np.random.default_rng([seed, steps, number, reading == "back-heavy"])
    return simulate(rng, READINGS[reading], steps)


def value_samples(data: Any, reading: str, seed: int, **options: Any) -> np.ndarray:
    """Draws of the value function under the paper's prior."""
    from bellief.evaluation.policy_value import evaluate

    policy = np.tile(READINGS[reading], (5, 1))
    return np.asarray(evaluate(data, policy, DISCOUNT, prior="paper", seed=seed, **options).samples)


def distance(truth: np.ndarray, samples: np.ndarray) -> float:
    """Mean over states of the one-dimensional Wasserstein distances."""
    from scipy.stats import wasserstein_distance

    return float(np.mean([wasserstein_distance(truth[:, state], samples[:, state]) for state in range(5)]))


def distances(data: Any, reading: str, truth_size: int, seed: int) -> dict[str, float]:
    """Distance to the true value posterior on one data set: the paper's two columns, Monte Carlo and ours.

    The truth is Monte Carlo over many MDPs; the paper's algorithm is run five times, each on its own MDPs.
    """
    truth = value_samples(data, reading, 10**6 + seed, method="monte-carlo", mdps=truth_size)

    def one(seed: int = seed, **options: Any) -> float:
        return distance(truth, value_samples(data, reading, seed, **options))

    return {
        "mean MDP": one(method="mean-mdp"),
        "inferential induction": float(
            np.mean([one(10**7 + REPEATS * seed + run, method="gaussian") for run in range(REPEATS)])
        ),
        "Monte Carlo, 100 MDPs": one(method="monte-carlo", mdps=100),
        "joint (ours), 100 MDPs": one(method="joint", mdps=100, final="zero", draws=100),
    }


def _wasserstein(settings: dict[str, Any]) -> Iterator[tuple[str, Callable[[], dict[str, np.ndarray]]]]:
    for reading in READINGS:
        for steps in SIZES:

            def part(reading: str = reading, steps: int = steps) -> dict[str, np.ndarray]:
                rows = [
                    distances(data_set(reading, steps, number), reading, settings["truth"], number)
                    for number in range(settings["data_sets"])
                ]
                return {
                    f"{reading}/{steps}/{method}": np.array([row[method] for row in rows], np.float64)
                    for method in rows[0]
                }

            yield f"{reading}-{steps}", part


def _posteriors(settings: dict[str, Any]) -> Iterator[tuple[str, Callable[[], dict[str, np.ndarray]]]]:
    """The values of the start state, which is what the paper's picture seems to show (it does not say)."""
    for reading in READINGS:
        for steps in SIZES:

            def part(reading: str = reading, steps: int = steps) -> dict[str, np.ndarray]:
                data = data_set(reading, steps, 0)
                draws = settings["draws"]
                runs = [
                    value_samples(data, reading, 10**7 + run, method="gaussian", draws=draws)[:, 0]
                    for run in range(REPEATS)
                ]
                place = f"{reading}/{steps}"
                return {
                    f"{place}/truth": value_samples(data, reading, 1, method="monte-carlo", mdps=settings["truth"])[
                        :, 0
                    ],
                    f"{place}/induction": np.stack(runs),
                    f"{place}/joint": value_samples(data, reading, 2, method="joint", mdps=100, draws=draws)[:, 0],
                    f"{place}/mean": value_samples(data, reading, 3, method="mean-mdp")[:1, 0],
                }

            yield f"{reading}-{steps}", part


def _bounds(settings: dict[str, Any]) -> Iterator[tuple[str, Callable[[], dict[str, np.ndarray]]]]:
    from bellief.paper.bounds import bayes_bounds, optimum

    yield "optimum", lambda: {"optimum": np.array(optimum())}
    for label, rule in (("BBI", "mean"), (OURS, "optimistic")):

        def part(label: str = label, rule: str = rule) -> dict[str, np.ndarray]:
            found = bayes_bounds(rule, settings["steps"], settings["runs"], settings["mdps"])
            return {f"{label}/{name}": values for name, values in found.items()}

        yield label, part


def _identities(settings: dict[str, Any]) -> Iterator[tuple[str, Callable[[], dict[str, np.ndarray]]]]:
    from bellief.paper import identities

    for reading, shares in READINGS.items():
        policy = np.tile(shares, (5, 1))
        for steps in SIZES:

            def part(reading: str = reading, policy: np.ndarray = policy, steps: int = steps) -> dict[str, np.ndarray]:
                rows = [
                    identities.distributions_and_mean_field(data_set(reading, steps, number), policy, number)
                    for number in range(settings["data_sets"])
                ]
                return {f"{reading}/{steps}/{name}": np.stack([row[name] for row in rows]) for name in rows[0]}

            yield f"{reading}-{steps}", part

    def one_sample() -> dict[str, np.ndarray]:
        found = identities.one_sample(data_set("back-heavy", 100, 0), settings["mdps"], 0)
        return {f"one sample/{name}": values for name, values in found.items()}

    def memory() -> dict[str, np.ndarray]:
        beliefs = identities.information_states(settings["depth"])
        return {"memory/beliefs": beliefs, "memory/kept": np.array(identities.numbers_kept())}

    yield "one-sample", one_sample
    yield "memory", memory


def _scales(*settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return dict(zip(SCALES, settings, strict=True))


COMPUTATIONS: dict[str, Computation] = {
    "wasserstein": Computation(
        "Wasserstein distances, NChain",
        _scales(
            {"data_sets": 2, "truth": 200},
            {"data_sets": 10, "truth": 2_000},
            {"data_sets": 20, "truth": 20_000},
            {"data_sets": 50, "truth": 20_000},
        ),
        _wasserstein,
    ),
    "posteriors": Computation(
        "value posteriors, NChain",
        _scales(*({"truth": 200 if scale == "tiny" else 1_000, "draws": 1_000} for scale in SCALES)),
        _posteriors,
    ),
    "bounds": Computation(
        "Bayes bounds, NChain",
        _scales(
            {"steps": 200, "runs": 2, "mdps": 5},
            {"steps": 6_000, "runs": 10, "mdps": 100},
            {"steps": 100_000, "runs": 10, "mdps": 100},
            {"steps": 100_000, "runs": 30, "mdps": 100},
        ),
        _bounds,
    ),
    "identities": Computation(
        "statements beside the figures, NChain",
        _scales(
            {"data_sets": 2, "mdps": 20, "depth": 3},
            *({"data_sets": number, "mdps": 1_000, "depth": 5} for number in (20, 20, 20)),
        ),
        _identities,
    ),
}


def key_of(name: str, scale: str) -> str:
    """A hash of sixteen digits of everything that decides the numbers."""
    told = {"generation": GENERATION, "name": name, "seed": SEED, **COMPUTATIONS[name].settings[scale]}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def compute(name: str, scale: str, path: Path, reuse: list[Path], tell: Callable[[str], None]) -> bool:
    """Make the file of a computation from its parts, computing those that are missing; false where it was there.

    `reuse` are folders of finished computations; one with the same key is taken over.
    """
    if adopt(name, scale, path, reuse):
        return False
    key = key_of(name, scale)
    computation = COMPUTATIONS[name]
    settings, files = computation.settings[scale], []
    arrays: dict[str, np.ndarray] = {}
    for label, part in computation.parts(settings):
        file = path.with_name(f"{path.stem}-{key}-{label.replace(' ', '_')}.npz")
        found = _read(file)
        if found is None:
            tell(f"{computation.title}: {label}")
            found = part()
            write_whole(file, _pack(found))
        files.append(file)
        arrays |= found
    told = {"key": key, "settings": json.dumps(settings), "day": datetime.now(UTC).date().isoformat()}
    write_whole(path, _pack({**arrays, **{name: np.array(text) for name, text in told.items()}}))
    for file in files:
        file.unlink()
    return True


def adopt(name: str, scale: str, path: Path, reuse: list[Path]) -> bool:
    """Whether a computation is there, or could be taken over from one of the folders."""
    key = key_of(name, scale)
    if _key_in(path) == key:
        return True
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in reuse:
        if _key_in(other / path.name) == key:
            write_whole(path, (other / path.name).read_bytes())
            return True
    return False


def _key_in(path: Path) -> str | None:
    found = _read(path) or {}
    return str(found["key"]) if "key" in found else None


def _read(path: Path) -> dict[str, np.ndarray] | None:
    """What a file holds; nothing where there is none or it is damaged, and then it is computed again."""
    try:
        return read_archive(path.read_bytes())
    except (FileNotFoundError, DamagedArchive):
        return None


def _pack(arrays: dict[str, np.ndarray]) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()
