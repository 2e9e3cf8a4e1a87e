"""Bootstrap fitted-Q evaluation (Hao et al. 2021), the method that is compared with the value posterior.

Transitions are drawn again with replacement, fitted-Q evaluation is run on each such sample, and the quantiles of its
results are the interval. The function class is the table, for which the fitted-Q iteration Q <- r + discount * P Q_pi
has one fixed point, found here by a linear solve; a pair that is not in the sample keeps Q = 0, as in the iteration.
"""

import numpy as np

from logs import DISCOUNT, Tally, Task


def bootstrap_values(task: Task, log: Tally, draws: int, rng: np.random.Generator) -> np.ndarray:
    """Start value of the target policy in `draws` bootstrap samples of a log.

    Only the pairs that a deterministic policy uses take part; how many of the drawn transitions are of those pairs, and
    of which, has the same law as if all had been drawn.
    """
    states = len(task.target)
    total, used = log.times.sum(), log.action == task.target[log.state]
    shares = np.append(log.times[used], total - log.times[used].sum()) / total
    times = rng.multinomial(total, shares, size=draws)[:, :-1].astype(float)
    state, ended = log.state[used], log.terminated[used]
    visits, reward, chain = np.zeros((draws, states)), np.zeros((draws, states)), np.zeros((draws, states, states))
    for row, where in enumerate(state):
        visits[:, where] += times[:, row]
        reward[:, where] += times[:, row] * log.reward[used][row]
        if not ended[row]:
            chain[:, where, log.next_state[used][row]] += times[:, row]
    visits = np.maximum(visits, 1)
    system = np.eye(states) - DISCOUNT * chain / visits[..., None]
    values = np.linalg.solve(system, (reward / visits)[..., None])[..., 0]
    return values @ np.asarray(task.mdp.start)
