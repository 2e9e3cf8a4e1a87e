"""What a user would write instead of `bellief evaluate`: pandas reads the log, NumPy draws and solves 1,000 MDPs.

python benchmarks/numpy_interval.py log.csv
"""

import sys

import numpy as np
import pandas as pd

log = pd.read_csv(sys.argv[1])
S, A = int(max(log.state.max(), log.next_state.max())) + 1, int(log.action.max()) + 1
counts, totals, squares = np.zeros((S, A, S + 1)), np.zeros((S, A)), np.zeros((S, A))
np.add.at(counts, (log.state, log.action, np.where(log.terminated == 1, S, log.next_state)), 1)
np.add.at(totals, (log.state, log.action), log.reward)
rng, visits, policy = np.random.default_rng(0), counts.sum(-1), np.full((S, A), 1 / A)
weights = rng.standard_gamma(counts + 0.1 / (S + 1), size=(1000, S, A, S + 1))
rows = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300)
noise = log.reward.std() * rng.standard_normal((1000, S, A)) / np.sqrt(visits + 1)
rewards = (policy * (totals / np.maximum(visits, 1) + noise)).sum(-1)
chain = np.einsum("sa,nsat->nst", policy, rows[..., :S])
values = np.linalg.solve(np.eye(S) - 0.99 * chain, rewards[..., None])[..., 0]
print(values[:, 0].mean(), np.quantile(values[:, 0], [0.05, 0.95]))
