"""The readings that travel with the package: claims and tables can be made again from them by anyone."""

import numpy as np
import pytest

from bellief.paper import readings, summary
from bellief.paper.charts import tables_of
from bellief.paper.computed_results import Missing, Results, Runs, optimum_of
from bellief.paper.item_files import to_csv
from bellief.paper.items import ITEMS
from bellief.paper.tasks import MARKS

PUBLISHED = summary.published()
# The runs of the Maze were not kept; the summary's provenance says so.
NOT_KEPT = {"Maze"}


@pytest.mark.long
def test_every_published_number_is_measured_again():
    results, again, without = readings.published(), 0, set()
    for claim in (claim for item in ITEMS.values() for claim in item.claims):
        if claim.key in PUBLISHED.measured:
            try:
                found = claim.test.measure(results)
            except Missing:
                without.add(claim.subject)
                continue
            assert found == PUBLISHED.measured[claim.key], claim.key
            again += 1
    assert without == NOT_KEPT
    assert again > 75
    assert all(subject in PUBLISHED.provenance for subject in NOT_KEPT)


def test_tables_are_made_again():
    results, again = readings.published(), 0
    for item in ITEMS.values():
        if tables := tables_of(item, results):
            assert [*map(to_csv, tables)] == [*map(to_csv, PUBLISHED.tables[item.label])]
            again += len(tables)
    assert again >= 9


def two_runs(steps: int, survived: bool = False) -> Runs:
    step = np.arange(1, steps + 1)
    total = np.stack([step * 0.5, step * 0.25])
    return Runs(step, total, total / step, total if survived else None)


def test_what_is_kept_is_what_claims_look_at():
    """Rewards at the marks; all smoothed rewards of agents whose spread is judged; computed arrays as they are."""
    held = {("nchain", "BBI"): two_runs(300), ("nchain", "optimal"): two_runs(300)}

    def runs(sweep, agent):
        return held[sweep, agent]

    def nothing(*names):
        raise Missing(str(names))

    def computed(name):
        return {"width": np.array([1.5])} if name == "bounds" else nothing(name)

    def agents(sweep):
        return [agent for one, agent in held if one == sweep]

    again = readings.results_of(readings.keep(Results(runs, nothing, optimum_of, computed, agents)))
    assert again.agents("nchain") == ["BBI", "optimal"]
    assert again.agents("maze") == []
    np.testing.assert_array_equal(again.runs("nchain", "BBI").spread(200, 300), two_runs(300).spread(200, 300))
    marked = again.runs("nchain", "optimal")
    assert marked.step.tolist() == sorted({mark for mark in MARKS if mark <= 300} | {150, 300})
    assert marked.reward(150, 300).tolist() == [0.5, 0.25]
    assert again.computed("bounds")["width"] == 1.5
    for ask in (lambda: again.runs("maze", "BBI"), lambda: again.plans("nchain", "BBI"), lambda: again.computed("x")):
        with pytest.raises(Missing):
            ask()


def test_a_file_of_readings_comes_back(tmp_path):
    arrays = {"nchain/BBI/step": np.arange(3, dtype=np.int32), "nchain/BBI/total": np.ones((2, 3), np.float32)}
    path = readings.write(arrays | {"nchain/BBI/smoothed": np.ones((2, 3), np.float32)}, tmp_path / readings.NAME)
    from bellief.files import read_archive

    found = readings.results_of(read_archive(path.read_bytes())).runs("nchain", "BBI")
    assert found.total.dtype == np.float64
    assert found.size == (2, 2)
