"""The contestants that are not ours; runs in the environment of requirements/bench.txt."""

import logging

import numpy as np
import textbook
import yardstick


def rlberry_psrl(steps, seed):
    """rlberry's own sampling, planning, counting and updating, on the paper's schedule, in a run without resets."""
    logging.disable(logging.WARNING)
    from rlberry import spaces
    from rlberry.agents.dynprog.utils import backward_induction_in_place
    from rlberry.agents.psrl import PSRLAgent
    from rlberry.envs import Model

    class Chain(Model):
        name = "chain"

        def __init__(self):
            Model.__init__(self)
            self.observation_space, self.action_space = spaces.Discrete(5), spaces.Discrete(2)
            self.reward_range = (0.0, 1.0)
            self.chain = textbook.Chain(np.random.default_rng(seed))

        def reset(self, seed=None, options=None):
            return self.chain.state, {}

        def step(self, action):
            state, reward = self.chain.step(action)
            return state, reward / 10, False, False, {}

    class Scheduled(PSRLAgent):
        def fit(self, budget, **kwargs):
            number, due = 1, 1
            observation, _ = self.env.reset()
            for step in range(1, budget + 1):
                if step == due:
                    number, due = number + 1, due + number + 1
                    self.R_sample = self.rng.beta(self.M_sa[..., 0], self.M_sa[..., 1])
                    sampled = self.rng.gamma(self.N_sas)
                    self.P_sample = sampled / sampled.sum(-1, keepdims=True)
                    backward_induction_in_place(
                        self.Q, self.V, self.R_sample, self.P_sample, self.horizon, self.gamma, self.v_max[0]
                    )
                action = self._get_action(observation)
                after, reward, _, _, _ = self.env.step(action)
                self.counter.update(observation, action)
                self._update(observation, action, after, reward, 0)
                observation = after

    Scheduled(Chain(), gamma=0.99, horizon=100).fit(steps)


def quantecon_solver(rows, reward):
    from quantecon.markov import DiscreteDP

    states = len(reward)
    process = DiscreteDP(reward[:, None], rows[:, None], textbook.DISCOUNT)
    return process.evaluate_policy(np.zeros(states, int))


def mdptoolbox_solver(rows, reward):
    from mdptoolbox.mdp import PolicyIteration

    # One action: policy iteration evaluates it by a linear solve and is done.
    solver = PolicyIteration(rows[None], reward[:, None], textbook.DISCOUNT)
    solver.run()
    return solver.V


def numba_update(states, weighted):
    actions, samples = (2 if states < 35 else 4), (50 if states < 100 else 20)
    made = yardstick.problem(states, actions, samples)
    return lambda seed: yardstick.update(*made, np.float32(10.0), weighted)


def contestants(workload, size):
    """Functions of a seed, by name."""
    if workload == "psrl":
        return {
            "rlberry 0.6": lambda seed: rlberry_psrl(size, seed),
            "textbook NumPy": lambda seed: textbook.psrl(size, seed),
        }
    if workload == "mmbi":
        return {"textbook NumPy": lambda seed: textbook.mmbi(size, seed)}
    if workload == "bbi update":
        return {"Numba": numba_update(size, True), "Numba, no weights": numba_update(size, False)}
    if workload == "posterior":
        solvers = {
            "NumPy loop": textbook.solve_linear,
            "quantecon": quantecon_solver,
            "pymdptoolbox": mdptoolbox_solver,
        }
        return {name: lambda seed, one=one: textbook.posterior(size, seed, one) for name, one in solvers.items()}
    if workload == "dirichlet":
        return {"NumPy": textbook.dirichlet}
    if workload == "stepping":
        return {
            "plain class": lambda seed: textbook.step_class(size, seed),
            "NumPy, 50 runs": lambda seed: textbook.step_lockstep(size, seed),
            "Numba": lambda seed: yardstick.step_chain(size, seed),
        }
    if workload == "offline":
        return {"NumPy": lambda seed: textbook.offline(size, seed)}
    return {}
