"""How close value posteriors come to the truth on the chain, by the Wasserstein distance of every state's values."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

import bellief

DATA_SETS = 20
MOST = {10: 0.45, 100: 0.3, 1000: 0.3}


def log_of(generator, policy, steps):
    """What a fixed policy does in the chain."""
    outcomes = bellief.make("nchain").outcomes
    state, rows = 0, []
    for _ in range(steps):
        action = generator.choice(2, p=policy)
        outcome = generator.choice(outcomes.probability.shape[-1], p=outcomes.probability[state, action])
        rows.append(
            (state, action, outcomes.reward[state, action, outcome], outcomes.next_state[state, action, outcome])
        )
        state = int(rows[-1][-1])
    return bellief.Transitions.from_arrays(*map(np.array, zip(*rows, strict=True)), states=5, actions=2)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [(0.8, 0.2), (0.2, 0.8)], ids=["back", "forward"])
@pytest.mark.parametrize("steps", MOST)
def test_the_joint_belief_is_much_closer_than_the_mean_mdp(request, policy, steps):
    distances = {"mean-mdp": [], "joint": [], "monte-carlo": []}
    for number in range(DATA_SETS):
        seed = 1000 * request.config.getoption("--statistics-seed") + number
        data = log_of(np.random.default_rng([seed, steps]), policy, steps)

        def values(method, seed=seed, data=data, **options):
            return bellief.evaluate(
                data, np.tile(policy, (5, 1)), 0.99, prior="paper", method=method, seed=seed, **options
            ).samples

        truth = values("monte-carlo", seed=10**6 + seed, mdps=20_000)
        found = {
            "mean-mdp": values("mean-mdp"),
            "joint": values("joint", mdps=100, draws=100, final="zero"),
            "monte-carlo": values("monte-carlo", mdps=100),
        }
        for method, samples in found.items():
            each = [wasserstein_distance(truth[:, state], samples[:, state]) for state in range(5)]
            distances[method].append(np.mean(each))
    mean = {method: np.mean(found) for method, found in distances.items()}
    assert mean["joint"] <= MOST[steps] * mean["mean-mdp"]
    assert mean["joint"] <= 1.05 * mean["monte-carlo"]
