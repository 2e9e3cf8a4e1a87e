"""The two parts of a return's variance, against enumeration and simulation in NumPy."""

import numpy as np
import pytest

from bellief.decisions import variance_split
from bellief.decisions.preposterior import draw_worlds
from bellief.decisions.return_variance import _values_and_variances
from bellief.errors import UserError
from bellief.evaluation.problem import prepare
from bellief.evaluation.sampled import SampledMDPs
from bellief.logs import Transitions

DISCOUNT = 0.5


def by_enumeration(rows, rewards, noise, policy, state, steps):
    """Distribution of the return of so many steps as (probability, mean, variance of the noise) of every path."""
    if steps == 0 or state >= rows.shape[0]:
        return [(1.0, 0.0, 0.0)]
    paths = []
    for action in range(policy.shape[1]):
        for outcome in range(rows.shape[2]):
            chance = policy[state, action] * rows[state, action, outcome]
            if chance > 0:
                for rest, mean, variance in by_enumeration(rows, rewards, noise, policy, outcome, steps - 1):
                    paths.append(
                        (
                            chance * rest,
                            rewards[state, action, outcome] + DISCOUNT * mean,
                            noise[state, action] ** 2 + DISCOUNT**2 * variance,
                        )
                    )
    return paths


@pytest.mark.parametrize("prior", ["logged", "paper"])
def test_return_variance_by_enumeration(prior):
    """Of sampled MDPs in which reward and next state go together, and an episode may end."""
    data = Transitions.from_arrays(
        [0, 0, 0, 1, 1, 1], [0] * 6, [3.0, -1.0, 2.5, 2.0, 5.0, 1.0], [1, 1, 1, 0, 0, 0],
        terminated=[False, True, False, False, True, False],
    )  # fmt: skip
    problem = prepare(data, DISCOUNT, prior=prior)
    policy = np.ones((2, 1))
    values, variances = _values_and_variances(SampledMDPs(problem, 3, 4), policy)
    for world, value, variance in zip(draw_worlds(problem, 3, 4), values, variances, strict=True):
        for state in range(2):
            paths = np.array(by_enumeration(world.rows, world.reward, world.noise, policy, state, 11))
            mean = paths[:, 0] @ paths[:, 1]
            spread = paths[:, 0] @ (paths[:, 2] + (paths[:, 1] - mean) ** 2)
            # Eleven steps leave a two-thousandth of what is far.
            np.testing.assert_allclose(value[state], mean, atol=5e-3)
            np.testing.assert_allclose(variance[state], spread, rtol=5e-3)


def test_known_chain():
    """One state, endless data: rewards of variance 4 give 4 / (1 - discount^2), and nothing is left to learn."""
    reward = np.random.default_rng(0).normal(1.0, 2.0, 40_000)
    zeros = np.zeros(len(reward), int)
    split = variance_split(Transitions.from_arrays(zeros, zeros, reward, zeros), discount=DISCOUNT)
    np.testing.assert_allclose(split.aleatoric, reward.var() / (1 - DISCOUNT**2), rtol=0.02)
    np.testing.assert_allclose(split.epistemic, reward.var() / 40_000 / (1 - DISCOUNT) ** 2, rtol=0.25)
    assert split.share[0] < 0.01
    assert split.total[0] == split.epistemic[0] + split.aleatoric[0]


def test_parts_and_start(data, policy, log):
    few = Transitions.from_arrays(**{name: column[:12] for name, column in log.items()})
    start = np.array([0.5, 0.0, 0.5])
    much, little = (variance_split(one, policy, 0.9, start=start) for one in (data, few))
    assert (little.share > much.share).all()
    document = much.to_dict()
    assert document["start"]["epistemic"] == much.start_epistemic
    assert len(document["per_state"]) == 3
    # Chance in the first state adds to the variance of a return from the start.
    assert much.start_aleatoric > 0.999 * (much.aleatoric @ start)


def test_no_variance_where_the_prior_has_none(log, policy):
    kept = ~((log["state"] == 2) & (log["action"] == 1))
    data = Transitions.from_arrays(**{name: column[kept] for name, column in log.items()})
    assert variance_split(data, policy, 0.9, prior="paper").to_dict()["start"]["epistemic"] is None
    assert np.isfinite(variance_split(data, policy, 0.9).epistemic).all()


def test_mistakes(data):
    with pytest.raises(UserError, match="discount 1"):
        variance_split(data, discount=1.0)


def test_labels_and_reward_scale(log, policy):
    named = log | {
        "state": np.array(["a", "b", "c"])[log["state"]],
        "next_state": np.array(["a", "b", "c"])[log["next_state"]],
    }
    data = Transitions.from_arrays(**named)
    found = variance_split(data, policy, 0.9, prior="sparse", reward_scale=3.0, draws=20)
    assert [row["state"] for row in found.to_dict()["per_state"]] == ["a", "b", "c"]
    assert found.epistemic[0] != variance_split(data, policy, 0.9, prior="sparse", draws=20).epistemic[0]
