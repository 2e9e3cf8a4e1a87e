"""Learning curves while runs are computed together, or one after the other."""

import numpy as np

from bellief.app.experiment import Experiment
from bellief.experiments.event_loop import Reading


def reading(step, *smoothed):
    return Reading(step, np.zeros(len(smoothed)), np.array(smoothed))


def test_runs_one_after_the_other_make_one_curve():
    given = {"env": "nchain", "agents": ["bbi"], "steps": 100, "runs": 2, "seed": 0}
    experiment = Experiment(given, lambda name, told: None)
    assert experiment.add_readings("bbi", range(1), [reading(10, 1.0), reading(20, 2.0)]) == [
        (10, 1.0, 1.0, 1.0),
        (20, 2.0, 2.0, 2.0),
    ]
    # The second run goes through the same steps; a third one, computed along, is not asked for.
    assert experiment.add_readings("bbi", range(1, 3), [reading(10, 3.0, 99.0)]) == [(10, 2.0, 1.0, 3.0)]
    assert experiment.table().decode().splitlines() == ["agent,step,smoothed", "bbi,10,2.0", "bbi,20,2.0"]
