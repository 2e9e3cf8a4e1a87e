"""Every item is there, at the paper's sizes, and its sweeps fit together."""

import pytest

from bellief.errors import UserError
from bellief.paper import run_paper, tasks
from bellief.paper.items import ITEMS, choose
from bellief.paper.quotes import QUOTES
from bellief.paper.tasks import SCALES, TASKS, Size, sweep_document, sweep_spec
from bellief.sweeps.cells import expand

LABELS = [
    *("fig:full_chain", "fig:full_loop", "fig:full_lava_small", "fig:full_lava_big", "fig:full_maze"),
    *("fig:linear_model", "fig:inverted_pendulum", "fig:chainhorizon", "fig:mazehorizon", "fig:bayes_bounds"),
    *("fig:posterior_plots", "tab:wasserstein", "fig:ci_chain", "fig:ci_loop", "fig:ci_lava_lake_small"),
    *("fig:ci_lava_lake", "fig:ci_maze"),
]


def test_every_item_of_the_paper_is_there():
    assert set(LABELS) <= set(ITEMS)
    assert all(item.claims and (item.sweeps or item.computations) for item in ITEMS.values())


def test_full_sizes_of_discrete_tasks_are_the_papers():
    sizes = {name: TASKS[name].sizes["full"] for name in TASKS}
    million = 1_000_000
    assert sizes["nchain"] == sizes["doubleloop"] == sizes["nchain-horizons"] == Size(50, million)
    assert sizes["lavalake"] == Size(100, million)  # the paper's 20 decide nothing
    assert sizes["lavalake10"] == sizes["maze"] == sizes["maze-horizons"] == Size(30, million)
    assert tasks.size_of("nchain", "BSS", "full") == Size(50, 10_000)


@pytest.mark.parametrize("scale", SCALES)
def test_horizons_and_formulas_share_cells_with_the_task(scale):
    from bellief.sweeps.cells import expand

    def cells(name):
        return {setup.agent: {cell.id for cell in setup.cells} for setup in expand(sweep_spec(name, scale))}

    chain = cells("nchain")
    assert cells("nchain-horizons")["BBI, H = 100"] == chain["BBI"]
    assert cells("nchain-horizons")["BBI (ours), H = 100"] == chain["BBI (ours)"]
    assert cells("nchain-rollouts")["BBI, formula 3"] == chain["BBI"]


@pytest.mark.parametrize(
    ("name", "scale"), [(name, scale) for name in TASKS for scale in SCALES if tasks.is_computed(name, scale)]
)
def test_claims_find_their_readings(name, scale):
    document = sweep_document(name, scale)
    for agent in document["agents"]:
        length = agent.get("steps", document["steps"])
        assert length // 2 in document["readings"] or length // 2 == 0
        assert length in document["readings"]


def test_the_estimate_counts_shared_cells_once(tmp_path, monkeypatch):
    """Two of six conditions of the horizons are the task's own: BBI as printed and ours, both at H = 100."""
    told = {}

    def dry_run(spec, folder, workers, elsewhere):
        cells = {cell.id for setup in expand(spec) for cell in setup.cells}
        told[spec.name] = len(cells), len(cells - elsewhere)
        return {"seconds": 1.5}

    monkeypatch.setattr("bellief.sweeps.plan.dry_run", dry_run)
    request = run_paper.Request(choose("fig:full_chain,fig:chainhorizon"), "tiny", tmp_path, [], {})
    assert run_paper.estimate(request, None)["seconds"] == 3
    assert told == {"nchain": (18, 18), "nchain-horizons": (6, 4)}
    assert not list(tmp_path.iterdir())


def test_every_claim_quotes_the_paper():
    claims = [claim for item in ITEMS.values() for claim in item.claims]
    assert all(claim.quoted.text.endswith(".") and claim.quoted.place for claim in claims)
    assert {claim.quote for claim in claims} == set(QUOTES)
    assert len({claim.key for claim in claims}) == len(claims)


def test_quick_leaves_long_tasks_out_and_says_so(tmp_path):
    left = {name for name in TASKS if not tasks.is_computed(name, "quick")}
    assert left == {"lavalake10", "maze", "maze-horizons", "linear-model", "pendulum"}
    request = run_paper.Request(choose("fig:full_chain,fig:full_maze"), "quick", tmp_path, [], {})
    assert list(run_paper.specs_of(request)) == ["nchain"]
    alone = request._replace(items=choose("fig:full_maze"))
    with pytest.raises(UserError, match="not computed at scale quick"):
        run_paper.specs_of(alone)
    assert list(run_paper.specs_of(alone._replace(sizes={"maze": Size(2, 20)}))) == ["maze"]
