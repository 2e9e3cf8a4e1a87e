"""A clinic's treatment log, made up: `python examples/clinic_log.py log.csv` writes about 900 seeded visits.

Patients with a chronic illness come once a month. Their condition is mild, moderate or severe; the doctor waits, gives
a pill or an infusion. Each month costs: symptoms by condition, and the treatment itself. A patient recovers and is
discharged (the episode terminates), or is still ill when the study ends (the episode is truncated). Doctors do what
seems natural: they wait with mild cases and hardly ever give infusions before a case is severe. That habit is what
makes the question hard: early infusions might pay, and the log has few of them.
"""

import argparse
import csv
from pathlib import Path

import numpy as np

STATES, ACTIONS = ("mild", "moderate", "severe"), ("wait", "pill", "infusion")
RECOVERED = "recovered"

# Chance of the next month's condition: mild, moderate, severe, recovered.
NEXT = {
    ("mild", "wait"): (0.66, 0.22, 0.02, 0.10),
    ("mild", "pill"): (0.62, 0.10, 0.01, 0.27),
    ("mild", "infusion"): (0.50, 0.06, 0.01, 0.43),
    ("moderate", "wait"): (0.12, 0.63, 0.25, 0.00),
    ("moderate", "pill"): (0.38, 0.49, 0.13, 0.00),
    ("moderate", "infusion"): (0.66, 0.24, 0.06, 0.04),
    ("severe", "wait"): (0.00, 0.10, 0.90, 0.00),
    ("severe", "pill"): (0.01, 0.27, 0.72, 0.00),
    ("severe", "infusion"): (0.08, 0.47, 0.45, 0.00),
}
SYMPTOMS = {"mild": 1.0, "moderate": 4.0, "severe": 10.0}
PRICE = {"wait": 0.0, "pill": 1.0, "infusion": 4.0}

# What doctors do: wait, pill, infusion.
HABIT = {"mild": (0.80, 0.19, 0.01), "moderate": (0.25, 0.69, 0.06), "severe": (0.05, 0.45, 0.50)}
FIRST = (0.5, 0.4, 0.1)
MONTHS = 12


def visits(patients, seed):
    """Rows of the log, patient by patient."""
    rng = np.random.default_rng(seed)
    for patient in range(patients):
        state = str(rng.choice(STATES, p=FIRST))
        for month in range(1, MONTHS + 1):
            action = str(rng.choice(ACTIONS, p=HABIT[state]))
            cost = SYMPTOMS[state] + PRICE[action] + rng.normal(0, 0.5)
            after = str(rng.choice((*STATES, RECOVERED), p=NEXT[state, action]))
            recovered = after == RECOVERED
            yield {
                "patient": f"P{patient:04d}",
                "month": month,
                "state": state,
                "action": action,
                "reward": round(-cost, 2),
                "next_state": after,
                "terminated": recovered,
                "truncated": month == MONTHS and not recovered,
                "episode": f"P{patient:04d}",
            }
            if recovered:
                break
            state = after


def true_value(policy, discount):
    """Value of a policy (action by state) from a patient's first visit, by a linear solve."""
    chain = np.array([NEXT[state, policy[state]][:3] for state in STATES])
    reward = -np.array([SYMPTOMS[state] + PRICE[policy[state]] for state in STATES])
    return float(FIRST @ np.linalg.solve(np.eye(3) - discount * chain, reward))


def write(path, patients=120, seed=0):
    """Write the log as CSV and return the number of rows."""
    rows = list(visits(patients, seed))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--patients", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{write(options.path, options.patients, options.seed):,} visits in {options.path}")


if __name__ == "__main__":
    main()
