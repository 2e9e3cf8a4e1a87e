"""Exact solvers for the tests, in NumPy and float64, that share no code with Bellief's own."""

from types import SimpleNamespace

import numpy as np
import pytest


def gain_and_bias(transition, reward, start):
    """Average reward and relative values of a Markov chain that returns to `start` from everywhere.

    Solves g + h = r + P h with h(start) = 0.
    """
    states = len(reward)
    system = np.zeros((states + 1, states + 1))
    system[:states, :states] = np.eye(states) - transition
    system[:states, states] = 1.0
    system[states, start] = 1.0
    solution = np.linalg.solve(system, np.append(reward, 0.0))
    return solution[states], solution[:states]


def of_policy(mdp, policy):
    """Transitions and rewards under probabilities `policy[s, a]`."""
    return np.einsum("sa,sat->st", policy, mdp.transition), (policy * mdp.reward).sum(1)


def optimal_gain(mdp):
    """Howard's policy iteration for the average reward; returns the gain and the greedy actions."""
    states, actions = mdp.reward.shape
    start = int(np.argmax(mdp.start))
    # Every state reaches the start under the uniform policy, and improvement keeps it so in these environments.
    choice = np.full((states, actions), 1.0 / actions)
    for _ in range(100):
        gain, bias = gain_and_bias(*of_policy(mdp, choice), start)
        quality = mdp.reward + mdp.transition @ bias
        kept = (choice * quality).sum(1) >= quality.max(1) - 1e-9
        if kept.all():
            return gain, quality.argmax(1)
        choice = np.where(kept[:, None], choice, np.eye(actions)[quality.argmax(1)])
    raise AssertionError("policy iteration did not settle")


def average_of(mdp, policy):
    """Average reward of a policy given as probabilities [s, a]."""
    return gain_and_bias(*of_policy(mdp, policy), int(np.argmax(mdp.start)))[0]


def discounted_values(mdp, policy):
    """Values of a policy given as probabilities [s, a]."""
    transition, reward = of_policy(mdp, policy)
    return np.linalg.solve(np.eye(len(reward)) - mdp.discount * transition, reward)


def optimal_values(mdp):
    """Optimal discounted values by value iteration, run until nothing moves."""
    values = np.zeros(len(mdp.reward))
    for _ in range(10_000):
        new = (mdp.reward + mdp.discount * mdp.transition @ values).max(1)
        if np.abs(new - values).max() < 1e-10:
            return new
        values = new
    raise AssertionError("value iteration did not settle")


@pytest.fixture(scope="session")
def exact():
    """The solvers above."""
    return SimpleNamespace(
        average_of=average_of,
        discounted_values=discounted_values,
        optimal_gain=optimal_gain,
        optimal_values=optimal_values,
    )
