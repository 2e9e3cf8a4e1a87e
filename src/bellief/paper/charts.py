"""Items as charts and tables: plain data from the results, from which files, figures and the report are all made."""

import numpy as np

from bellief.paper import items
from bellief.paper.agents import BQL_VARIANTS, GPTD_PACES, OURS, VDQN_PACES
from bellief.paper.claims import plain
from bellief.paper.computations import READINGS, SIZES
from bellief.paper.computed_claims import INDUCTION, MEAN_MDP, PRINTED
from bellief.paper.computed_results import Missing, Results, Runs
from bellief.paper.items import Item
from bellief.paper.tasks import TASKS
from bellief.plots.statistics import bootstrap
from bellief.report.document import Chart, Curve, Table

FLOOR_AND_CEILING = ("Q-learning", "optimal")
# Variants have rows in tables, and no curves.
_TABLE_ONLY = tuple(
    label for label in (*BQL_VARIANTS, *VDQN_PACES, *GPTD_PACES) if label not in ("BQL", "VDQN", "GPTD")
)


def charts_of(item: Item, results: Results) -> list[Chart]:
    """The charts of an item; none where it is a table, or nothing was computed."""
    try:
        return _MAKERS[item.kind](item, results) if item.kind in _MAKERS else []
    except Missing:
        return []


def curve_of(label: str, x: np.ndarray, values: np.ndarray) -> Curve:
    """Mean, 5th and 95th percentile and standard error over runs."""
    low, high = np.quantile(values, [0.05, 0.95], axis=0)
    error = values.std(0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.zeros(values.shape[1])
    step, mean, low, high, error = (array.tolist() for array in (np.asarray(x), values.mean(0), low, high, error))
    return Curve(label, step, mean, low, high, error, ours=label.startswith(OURS))


def _learning_curve(agent: str, runs: Runs) -> Curve:
    """The smoothed reward or, where episodes are the point, their smoothed length. Where there is more to see, the
    first steps are left out: an average of nine rewards says nothing.
    """
    shown = runs.smoothed if runs.survived is None else runs.survived
    kept = runs.step >= (10 if runs.step[-1] >= 1_000 else 1)
    return curve_of(agent, runs.step[kept], shown[:, kept])


def _axis(results: Results, sweep: str, agents: list[str]) -> str:
    survived = any(results.runs(sweep, agent).survived is not None for agent in agents)
    return "steps survived, smoothed" if survived else "reward per step, smoothed"


def _lines(results: Results, sweep: str) -> tuple[tuple[str, float], ...]:
    optimum = results.optimum(sweep)
    return () if optimum is None else (("optimum", optimum),)


def _learning(item: Item, results: Results) -> list[Chart]:
    (sweep,) = item.sweeps
    # The optimum is a line; the agent that knows it would only hide it.
    agents = [agent for agent in results.agents(sweep) if agent != "optimal" and agent not in _TABLE_ONLY]
    if not agents:
        return []
    found = [(agent, results.runs(sweep, agent)) for agent in agents]
    curves = [_learning_curve(agent, runs) for agent, runs in found]
    return [Chart(item.title, "step", _axis(results, sweep, agents), curves, True, _lines(results, sweep))]


def _panels(item: Item, results: Results) -> list[Chart]:
    """One chart for each agent of the paper's figure, and one for ours."""
    (sweep,) = item.sweeps
    lines = _lines(results, sweep)
    charts = []
    for agent in results.agents(sweep):
        if agent not in FLOOR_AND_CEILING and agent not in _TABLE_ONLY:
            runs = results.runs(sweep, agent)
            curves = [_learning_curve(agent, runs)]
            charts.append(Chart(agent, "step", _axis(results, sweep, [agent]), curves, True, lines))
    return charts


def _bounds(item: Item, results: Results) -> list[Chart]:
    del item
    found, charts = results.computed("bounds"), []
    for title, kind in (("for ever", ""), ("100 steps", ", H = 100")):
        curves = []
        for agent in ("BBI", OURS):
            step = found[f"{agent}/step"]
            curves.append(curve_of(f"{agent}: upper bound", step, found[f"{agent}/bound{kind}"]))
            curves.append(curve_of(f"{agent}: its policy", step, found[f"{agent}/policy{kind}"]))
        lines = (("optimum of the true MDP", float(found["optimum"])),) if not kind and "optimum" in found else ()
        charts.append(Chart(f"Value of the start state, {title}", "step", "value", curves, True, lines))
    return charts


def _weights(item: Item, results: Results) -> list[Chart]:
    """Share of plans with mended weights, in spans that double."""
    curves = []
    for sweep in item.sweeps:
        try:
            frame = results.plans(sweep, "BBI")
        except Missing:
            continue
        mended = ((frame["resamples"] > 0) | (frame["doublings"] > 0)).to_numpy(float)
        span = np.floor(np.log2(frame["step"].to_numpy())).astype(int)
        spans = np.unique(span)
        share = [float(mended[span == one].mean()) for one in spans]
        curves.append(Curve(TASKS[sweep].title, (1.5 * 2.0**spans).tolist(), share))
    if not curves:
        return []
    return [Chart(item.title, "step", "share of plans with mended weights", curves, True)]


_MAKERS = {items.CURVES: _learning, items.PANELS: _panels, items.BOUNDS: _bounds, items.WEIGHTS: _weights}


# Tables


def tables_of(item: Item, results: Results) -> list[Table]:
    """The tables of an item: the paper's own, or the numbers behind a figure."""
    try:
        if item.kind == items.DISTANCES:
            return [_distances(results, reading) for reading in READINGS]
        if item.kind == items.CURVES:
            return [_summary(item, results)]
    except Missing:
        pass
    return []


def _distances(results: Results, reading: str) -> Table:
    found = results.computed("wasserstein")
    methods = list(dict.fromkeys(name.split("/")[2] for name in found if name.startswith(f"{reading}/")))
    rows: list[list[object]] = []
    for method in methods:
        cells = []
        for steps in SIZES:
            values = found[f"{reading}/{steps}/{method}"]
            cells.append(f"{values.mean():.2f} ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}")
        rows.append([method, *cells])
        if method in (INDUCTION, MEAN_MDP):
            column = (INDUCTION, MEAN_MDP).index(method)
            rows.append([f"{method}, in the paper", *(f"{PRINTED[steps][column]:.2f}" for steps in SIZES)])
    number = len(found[f"{reading}/10/{MEAN_MDP}"])
    share = READINGS[reading]
    caption = (
        f"Wasserstein distance to the true value distribution, policy {reading} "
        f"(back {share[0]}, forward {share[1]}), mean ± standard error over {number} data sets"
    )
    return Table(caption, ["method", *(f"{steps:,} steps" for steps in SIZES)], rows)


def _summary(item: Item, results: Results) -> Table:
    (sweep,) = item.sweeps
    agents = results.agents(sweep)
    if not agents:
        raise Missing(sweep)
    rows: list[list[object]] = []
    survived = any(results.runs(sweep, agent).survived is not None for agent in agents)
    for agent in agents:
        runs = results.runs(sweep, agent)
        size = runs.size
        span = (size.steps // 2, size.steps)
        values = runs.steps_survived(*span) if survived else runs.reward(*span)
        low, high = np.quantile(values, [0.05, 0.95])
        rows.append([agent, f"{size.runs:,}", f"{size.steps:,}", plain(bootstrap(values)), f"{low:.4g} to {high:.4g}"])
    what = "Steps survived" if survived else "Reward per step"
    caption = f"{what} in the last half of the runs, {TASKS[sweep].title}: mean with 95% interval, and percentiles"
    return Table(caption, ["agent", "runs", "steps", "mean", "5th to 95th percentile of runs"], rows)
