"""One update of BBI in paper mode by hand in Numba: the yardstick for ours, not part of the library.

The same arithmetic as `bellief.agents.bbi` with the paper's settings (Gaussian value belief, mixture weights, third
utility formula), in single precision: J MDPs, K value samples, L utilities, H steps; drawing the MDPs is left out.
"""

import math

import numba
import numpy as np

FAST = {"fastmath": True, "nogil": True}


@numba.njit(**FAST)
def root(covariance):
    """Upper triangular R with R^T R = covariance, which may be singular."""
    states = len(covariance)
    rest, found = covariance.copy(), np.zeros_like(covariance)
    for index in range(states):
        if rest[index, index] > 1e-6 * covariance[index, index]:
            scale = np.float32(1) / math.sqrt(rest[index, index])
            for column in range(index, states):
                found[index, column] = rest[index, column] * scale
            for row in range(index, states):
                for column in range(index, states):
                    rest[row, column] -= found[index, row] * found[index, column]
    return found


@numba.njit(**FAST)
def weigh(values, utilities, sigma, weight):
    """w_jk: sums of Gaussian densities over states and utility samples, normalised over j."""
    mdps, later, states = utilities.shape
    scale = np.float32(-0.5) / (sigma * sigma)
    for j in range(mdps):
        for k in range(len(values)):
            weight[j, k] = 0
        for s in range(states):
            for u in range(later):
                own = utilities[j, u, s]
                for k in range(len(values)):
                    gap = values[k, s] - own
                    weight[j, k] += math.exp(scale * gap * gap)
    for k in range(len(values)):
        total = np.float32(0)
        for j in range(mdps):
            total += weight[j, k]
        for j in range(mdps):
            weight[j, k] /= total


@numba.njit(**FAST)
def update(transition, reward, normals, sigma, weighted, later=10):
    """H steps back from zero; returns the first-step actions and the mean values."""
    mdps, states, actions, _ = transition.shape
    horizon, samples, _ = normals.shape
    discount = np.float32(0.99)
    mean, factor = np.zeros(states, np.float32), np.zeros((states, states), np.float32)
    utilities = np.zeros((mdps, later, states), np.float32)
    weight = np.full((mdps, samples), np.float32(1 / mdps))
    pushed = np.zeros((mdps, samples, states), np.float32)
    best = np.zeros(states, np.int64)
    for step in range(horizon):
        values = mean + normals[step] @ factor
        if weighted and step > 0:
            weigh(values, utilities, sigma, weight)
        mixed = (weight @ values) / np.float32(samples)
        for s in range(states):
            top = np.float32(-1e30)
            for a in range(actions):
                q_value = np.float32(0)
                for j in range(mdps):
                    mass = np.float32(0)
                    for k in range(samples):
                        mass += weight[j, k]
                    q_value += mass / np.float32(samples) * reward[j, s, a]
                    for after in range(states):
                        q_value += discount * transition[j, s, a, after] * mixed[j, after]
                if q_value > top:
                    top, best[s] = q_value, a
        mean[:] = 0
        for j in range(mdps):
            rows = np.empty((states, states), np.float32)
            for s in range(states):
                rows[s] = transition[j, s, best[s]]
            pushed[j] = discount * (values @ rows.T)
            for k in range(samples):
                for s in range(states):
                    pushed[j, k, s] += reward[j, s, best[s]]
                    mean[s] += weight[j, k] / np.float32(samples) * pushed[j, k, s]
            utilities[j] = pushed[j, :later]
        covariance = np.zeros((states, states), np.float32)
        for j in range(mdps):
            centred = (pushed[j] - mean) * np.sqrt(weight[j] / np.float32(samples)).reshape(-1, 1)
            covariance += centred.T @ centred
        factor = root(covariance)
    return best, mean


@numba.njit(**FAST)
def step_chain(steps, seed):
    """Steps of NChain under a fixed policy."""
    np.random.seed(seed)  # noqa: NPY002 (Numba's own generator)
    state, total = 0, 0.0
    for _ in range(steps):
        if np.random.random() < 0.2:  # noqa: NPY002
            total += 2.0
            state = 0
        elif state < 4:
            state += 1
        else:
            total += 10.0
    return total


def problem(states, actions, samples, horizon=100, mdps=10, seed=0):
    """Sampled MDPs and normals of one update."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(states, 0.5), (mdps, states, actions)).astype(np.float32)
    reward = rng.normal(size=(mdps, states, actions)).astype(np.float32)
    return transition, reward, rng.standard_normal((horizon, samples, states)).astype(np.float32)
