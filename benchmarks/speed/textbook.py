"""Textbook NumPy, as one would write it from the papers: agents on NChain, value posteriors, samplers, stepping."""

import numpy as np

STATES, ACTIONS, SLIP, DISCOUNT = 5, 2, 0.2, 0.99


class Chain:
    """The NChain environment as a plain class."""

    def __init__(self, rng):
        self.rng, self.state = rng, 0

    def step(self, action):
        if self.rng.random() < SLIP:
            action = 1 - action
        if action == 1:
            reward, self.state = 2.0, 0
        elif self.state < STATES - 1:
            reward, self.state = 0.0, self.state + 1
        else:
            reward = 10.0
        return self.state, reward


class Belief:
    """Dirichlet(1/2) rows and NormalGamma(0, 1, 1, 1) rewards."""

    def __init__(self, states=STATES, actions=ACTIONS):
        self.counts = np.zeros((states, actions, states))
        self.number, self.total, self.squares = (np.zeros((states, actions)) for _ in range(3))

    def update(self, state, action, reward, after):
        self.counts[state, action, after] += 1
        self.number[state, action] += 1
        self.total[state, action] += reward
        self.squares[state, action] += reward**2

    def sample(self, rng):
        rows = rng.standard_gamma(0.5 + self.counts)
        rows /= rows.sum(-1, keepdims=True)
        return rows, sample_rewards(rng, self.number, self.total, self.squares)


def sample_rewards(rng, number, total, squares):
    """Mean rewards from the NormalGamma posterior."""
    mean = total / np.maximum(number, 1)
    rate = 1 + (squares - number * mean**2) / 2 + number * mean**2 / (2 * (1 + number))
    precision = rng.standard_gamma(1 + number / 2) / rate
    return total / (1 + number) + rng.standard_normal(mean.shape) / np.sqrt((1 + number) * precision)


def solve(transition, reward, tolerance=0.1):
    """Value iteration; `tolerance` is one ten-thousandth of the span of values, as ours has it."""
    values = np.zeros(len(reward))
    while True:
        q_values = reward + DISCOUNT * transition @ values
        new = q_values.max(-1)
        if np.abs(new - values).max() < tolerance * (1 - DISCOUNT):
            return q_values.argmax(-1)
        values = new


def plan_psrl(rng, belief):
    return solve(*belief.sample(rng))


def plan_mmbi(rng, belief, mdps=10, horizon=100):
    rows, rewards = map(np.stack, zip(*(belief.sample(rng) for _ in range(mdps)), strict=True))
    values = np.zeros((mdps, STATES))
    for _ in range(horizon):
        q_values = rewards + DISCOUNT * np.einsum("jsat,jt->jsa", rows, values)
        actions = q_values.mean(0).argmax(-1)
        values = q_values[:, np.arange(STATES), actions]
    return actions


def learn(plan, steps, seed):
    """One run: update the belief at every step, plan before steps 1, 3, 6, 10, ..."""
    rng = np.random.default_rng(seed)
    chain, belief, number, due, total = Chain(rng), Belief(), 1, 1, 0.0
    state, actions = 0, np.zeros(STATES, int)
    for step in range(1, steps + 1):
        if step == due:
            actions = plan(rng, belief)
            number += 1
            due += number
        action = int(actions[state])
        after, reward = chain.step(action)
        belief.update(state, action, reward, after)
        state, total = after, total + reward
    return total


def psrl(steps, seed):
    return learn(plan_psrl, steps, seed)


def mmbi(steps, seed):
    return learn(plan_mmbi, steps, seed)


def sparse_counts(states, actions, rng, support=3):
    """A log's counts: every pair has led to a few states."""
    counts = np.zeros((states, actions, states), np.int32)
    for state in range(states):
        for action in range(actions):
            after = rng.choice(states, min(support, states), replace=False)
            counts[state, action, after] = rng.integers(1, 20, len(after))
    return counts


def posterior(states, seed, solver, mdps=1000):
    """Values of one policy in `mdps` posterior draws, one after another; only the policy's rows are drawn."""
    rng = np.random.default_rng(seed)
    counts = sparse_counts(states, 1, rng)[:, 0]
    number = counts.sum(-1).astype(float)
    values = np.empty((mdps, states))
    for number_of_mdp in range(mdps):
        rows = rng.standard_gamma(0.5 + counts)
        rows /= rows.sum(-1, keepdims=True)
        values[number_of_mdp] = solver(rows, sample_rewards(rng, number, number * 0.5, number * 0.5))
    return values


def solve_linear(rows, reward):
    return np.linalg.solve(np.eye(len(reward)) - DISCOUNT * rows, reward)


def dirichlet(seed, mdps=10, states=264, actions=4):
    rng = np.random.default_rng(seed)
    counts = sparse_counts(states, actions, np.random.default_rng(0))
    rows = rng.standard_gamma(0.5 + counts, (mdps, *counts.shape))
    return rows / rows.sum(-1, keepdims=True)


def step_class(steps, seed):
    """A million steps of the plain class under a fixed policy."""
    chain, total = Chain(np.random.default_rng(seed)), 0.0
    for _ in range(steps):
        total += chain.step(0)[1]
    return total


def step_lockstep(steps, seed, runs=50):
    """The same number of steps, 50 runs at once."""
    rng = np.random.default_rng(seed)
    state, total = np.zeros(runs, int), 0.0
    for _ in range(steps // runs):
        back = rng.random(runs) < SLIP
        end = state == STATES - 1
        total += np.where(back, 2.0, np.where(end, 10.0, 0.0)).sum()
        state = np.where(back, 0, np.where(end, state, state + 1))
    return total


def offline(transitions, seed, states=100, actions=2, mdps=1000):
    """Counts from a log of transitions, then values of 1,000 sampled MDPs under the uniform policy."""
    rng = np.random.default_rng(seed)
    state, action, reward, after = log(transitions, states, actions)
    counts = np.zeros((states, actions, states))
    np.add.at(counts, (state, action, after), 1)
    sums = [np.zeros((states, actions)) for _ in range(3)]
    for table, added in zip(sums, (1, reward, reward**2), strict=True):
        np.add.at(table, (state, action), added)
    values = np.empty((mdps, states))
    for number in range(mdps):
        rows = rng.standard_gamma(0.5 + counts)
        rows /= rows.sum(-1, keepdims=True)
        values[number] = solve_linear(rows.mean(1), sample_rewards(rng, *sums).mean(1))
    return values


def log(transitions, states, actions):
    """A log of random moves to nearby states."""
    rng = np.random.default_rng(1)
    state, action = rng.integers(states, size=transitions), rng.integers(actions, size=transitions)
    after = (state + rng.integers(-1, 2, transitions)) % states
    return state, action, rng.random(transitions), after
