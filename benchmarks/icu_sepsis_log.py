"""A log of the clinicians in ICU-Sepsis as a CSV file, from the table in the wheel of the package `icu-sepsis`."""

import sys
from pathlib import Path

import numpy as np

DEATH = 713  # the last three states are death, survival and the absorbing one


def tables() -> dict[str, np.ndarray]:
    """`tx_mat`, `r_mat`, `d_0` and `expert_policy`; the package itself is not imported."""
    peers = Path(__file__).parents[1].glob(".venv-bench/lib/python*/site-packages")
    for folder in [*sys.path, *peers]:
        path = Path(folder) / "icu_sepsis" / "envs" / "assets" / "dynamics.npz"
        if path.exists():
            return dict(np.load(path))
    raise FileNotFoundError("icu-sepsis is not installed (pip install --no-deps icu-sepsis)")


def write(log: Path, policy: Path, patients: int, seed: int = 0) -> int:
    """Write the log and the clinicians' policy; the number of rows."""
    found, rng = tables(), np.random.default_rng(seed)
    following, choice = found["tx_mat"].cumsum(-1), found["expert_policy"].cumsum(-1)
    states, actions = choice.shape
    state, patient, parts = rng.choice(states, patients, p=found["d_0"]), np.arange(patients), []
    while len(state):
        action = (rng.random(len(state))[:, None] * choice[state, -1:] > choice[state]).sum(1).clip(max=actions - 1)
        row = following[state, action]
        after = (rng.random(len(state))[:, None] * row[:, -1:] > row).sum(1).clip(max=states - 1)
        ended = after >= DEATH
        parts.append(np.stack([patient, state, action, found["r_mat"][state, action, after], after, ended]))
        state, patient = after[~ended], patient[~ended]
    rows = np.concatenate(parts, axis=1)
    rows = rows[:, np.argsort(rows[0], kind="stable")]
    lines = [f"{int(p)},{int(s)},{int(a)},{r:g},{int(t)},{int(e)}" for p, s, a, r, t, e in rows.T]
    log.write_text("\n".join(["episode,state,action,reward,next_state,terminated", *lines]) + "\n")
    table = found["expert_policy"].copy()
    table[table.sum(-1) == 0] = 1.0
    table /= table.sum(-1, keepdims=True)
    cells = [f"{s},{a},{float(table[s, a])!r}" for s, a in zip(*np.nonzero(table), strict=True)]
    policy.write_text("\n".join(["state,action,probability", *cells]) + "\n")
    return rows.shape[1]
