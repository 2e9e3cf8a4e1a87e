"""A small log, and the posterior over its values computed with NumPy's own generators and nothing of Bellief."""

from types import SimpleNamespace

import numpy as np
import pytest

from bellief.logs import Transitions

STATES, ACTIONS, STEPS = 3, 2, 80
DRAWS = 4000  # the same everywhere, so that one compilation serves many tests


def random_log(seed, ends=0.0):
    """Columns of a log in which every pair occurs and rewards differ between pairs."""
    generator = np.random.default_rng(seed)
    state = np.arange(STEPS) % STATES
    action = np.arange(STEPS) // STATES % ACTIONS
    return {
        "state": state,
        "action": action,
        "reward": generator.normal(state - 2.0 * action, 1.0),
        "next_state": generator.choice(STATES, STEPS, p=[0.5, 0.3, 0.2]),
        "terminated": generator.random(STEPS) < ends,
    }


def counts_of(log, terminates):
    counts = np.zeros((STATES, ACTIONS, STATES + int(terminates)))
    for state, action, after, end in zip(
        log["state"], log["action"], log["next_state"], log["terminated"], strict=True
    ):
        counts[state, action, STATES if end else after] += 1
    return counts


def reward_parameters(log):
    """NormalGamma posterior of every pair under the paper's prior [0, 1, 1, 1]: mean, strength, shape, rate."""
    parameters = np.zeros((4, STATES, ACTIONS))
    for state in range(STATES):
        for action in range(ACTIONS):
            rewards = log["reward"][(log["state"] == state) & (log["action"] == action)]
            count, total = len(rewards), rewards.sum()
            mean = total / (1 + count)
            rate = 1 + 0.5 * ((rewards**2).sum() - (1 + count) * mean**2)
            parameters[:, state, action] = mean, 1 + count, 1 + count / 2, rate
    return parameters


def solve(transition, reward, policy, discount, horizon):
    """Values of a policy in MDPs along a leading axis."""
    chain = np.einsum("sa,nsat->nst", policy, transition)
    gain = np.einsum("sa,nsa->ns", policy, reward)
    if horizon is None:
        return np.linalg.solve(np.eye(STATES) - discount * chain, gain[..., None])[..., 0]
    values = np.zeros_like(gain)
    for _ in range(horizon):
        values = gain + discount * np.einsum("nst,nt->ns", chain, values)
    return values


def mean_values(log, policy, discount, dirichlet=0.5, horizon=None, terminates=False):
    counts = counts_of(log, terminates) + dirichlet
    transition = (counts / counts.sum(-1, keepdims=True))[..., :STATES]
    return solve(transition[None], reward_parameters(log)[0][None], policy, discount, horizon)[0]


def draw_values(log, policy, discount, dirichlet=0.5, horizon=None, terminates=False, seed=99):
    generator = np.random.default_rng(seed)
    gammas = generator.gamma(counts_of(log, terminates) + dirichlet, size=(DRAWS, STATES, ACTIONS, STATES + terminates))
    transition = (gammas / gammas.sum(-1, keepdims=True))[..., :STATES]
    mean, strength, shape, rate = reward_parameters(log)
    precision = generator.gamma(shape, size=(DRAWS, STATES, ACTIONS)) / rate
    reward = mean + generator.normal(size=precision.shape) / np.sqrt(strength * precision)
    return solve(transition, reward, policy, discount, horizon)


@pytest.fixture(scope="session")
def log():
    return random_log(3)


@pytest.fixture(scope="session")
def ending_log():
    return random_log(4, ends=0.2)


@pytest.fixture(scope="session")
def data(log):
    return Transitions.from_arrays(**log)


@pytest.fixture(scope="session")
def policy():
    return np.array([[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]])


@pytest.fixture(scope="session")
def numpy_posterior():
    """The functions above."""
    return SimpleNamespace(draw_values=draw_values, mean_values=mean_values)
