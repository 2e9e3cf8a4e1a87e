"""`run_paper`: compute what items need and what is not there yet, then write what can be made from it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bellief.errors import UserError
from bellief.files import write_whole
from bellief.paper import readings
from bellief.paper.computations import COMPUTATIONS, adopt, compute, key_of
from bellief.paper.computed_results import Folder
from bellief.paper.item_files import write_item
from bellief.paper.items import ITEMS, Item, computations_of, sweeps_of
from bellief.paper.paper_report import build_document
from bellief.paper.summary import NAME as SUMMARY
from bellief.paper.summary import Summary, judgements_of, seen_at, summarise
from bellief.paper.summary import write as write_summary
from bellief.paper.tasks import TASKS, Size, is_computed, sweep_spec
from bellief.report.interactive import render

REPORT = "report.html"


class Request(NamedTuple):
    """What to make: items, scale, where, folders to take finished cells from, and sizes other than the scale's."""

    items: list[Item]
    scale: str
    out: Path
    reuse: list[Path]
    sizes: dict[str, Size]

    @property
    def folder(self) -> Path:
        """Each scale has a folder of its own."""
        return self.out / self.scale


def specs_of(request: Request) -> dict[str, Any]:
    """The sweeps that are needed, checked."""
    wanted = sweeps_of(request.items)
    names = [name for name in wanted if is_computed(name, request.scale, request.sizes)]
    if wanted and not names and not computations_of(request.items):
        raise UserError(
            f"{', '.join(item.label for item in request.items)}: not computed at scale {request.scale}; choose "
            f"standard or "
            f"full, or give a --size, for example {wanted[0]}=10x1000."
        )
    return {name: sweep_spec(name, request.scale, request.sizes) for name in names}


def stores_in(folders: Sequence[Path]) -> list[Path]:
    """All stores of sweeps in some folders: a store itself, sweeps side by side, or a folder of the paper's."""
    found = []
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"--reuse: there is no folder {folder}.")
        heads = sorted(
            {*folder.glob("config.yaml"), *folder.glob("*/config.yaml"), *folder.glob("**/sweeps/*/config.yaml")}
        )
        found += [head.parent for head in heads]
    return found


def _others(request: Request, name: str, given: list[Path]) -> list[Path]:
    """Stores that may hold cells of a sweep: those given, and the one it shares with, in either direction."""
    folder = Folder(request.folder)
    kin = [other for other, task in TASKS.items() if TASKS[name].shares == other or task.shares == name]
    mine = [folder.sweep(other) for other in kin]
    return [*given, *(path for path in mine if (path / "config.yaml").exists())]


def run_sweeps(request: Request, go: Callable[[list[tuple[Any, Path, list[Path]]]], None]) -> None:
    """Compute the sweeps; `go` takes all of them, each with its folder and the folders that may hold cells of it."""
    given = stores_in(request.reuse)
    folder = Folder(request.folder)
    wanted = []
    # Large tasks first: at the end, when processes wait for the last one, cells should be short.
    for name, spec in sorted(specs_of(request).items(), key=lambda pair: -TASKS[pair[0]].weight):
        path = folder.sweep(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        others = [other for other in _others(request, name, given) if other.resolve() != path.resolve()]
        wanted.append((spec, path, others))
    if wanted:
        go(wanted)


class _Idle:
    """An engine that computes nothing: what other folders have is taken over, the rest stays missing."""

    name = "none"

    def run(self, cells: Any, job: Any) -> Iterator[Any]:
        """No events."""
        del cells, job
        return iter(())

    def close(self) -> None:
        """Nothing to end."""


def take_over(request: Request) -> None:
    """Fill in what the folders to reuse have finished, and compute nothing."""
    from bellief.sweeps import sweep

    def go(wanted: list[Any]) -> None:
        sweep.run_sweeps([sweep.Wanted(*one) for one in wanted], engine=_Idle)

    run_sweeps(request, go)
    folder, others = Folder(request.folder), _computed_elsewhere(request)
    for name in computations_of(request.items):
        adopt(name, request.scale, folder.computation(name), others)


def _computed_elsewhere(request: Request) -> list[Path]:
    return [path for one in request.reuse for path in (one, one / "computed", *one.glob("*/computed"))]


@contextlib.contextmanager
def computations_beside(request: Request, engine: str, workers: int | None) -> Iterator[None]:
    """Let a process of its own work at what is no sweep while sweeps are computed. Whatever becomes of it,
    `run_computations` afterwards makes what is not there yet.
    """
    from bellief.processors import cores, processors_only

    missing = [name for name in computations_of(request.items) if not Folder(request.folder).computation(name).exists()]
    # A GPU is not for two processes.
    alone = engine != "local" or min(workers or cores(), cores()) == 1 or not processors_only()
    if alone or not missing or not sweeps_of(request.items):
        yield
        return
    order = {"names": missing, "scale": request.scale, "out": str(request.out), "reuse": [*map(str, request.reuse)]}
    command = [sys.executable, "-m", "bellief.paper.beside", json.dumps(order)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        process.wait()
    finally:
        process.kill()
        process.wait()


def run_computations(request: Request, tell: Callable[[str], None]) -> None:
    """Compute what is no sweep."""
    folder = Folder(request.folder)
    others = _computed_elsewhere(request)
    for name in computations_of(request.items):
        compute(name, request.scale, folder.computation(name), others, tell)


def estimate(request: Request, workers: int | None) -> dict[str, Any]:
    """What is missing and what it may cost, from short trials; writes nothing."""
    from bellief.sweeps.cells import expand
    from bellief.sweeps.plan import dry_run

    folder = Folder(request.folder)
    sweeps, counted, others = [], frozenset[str](), []
    for name, spec in specs_of(request).items():
        sweeps.append(dry_run(spec, folder.sweep(name), workers, elsewhere=counted))
        # Cells that sweeps have in common are computed once.
        counted |= {cell.id for setup in expand(spec) for cell in setup.cells}
    for name in computations_of(request.items):
        there = folder.computation(name).exists() and str(folder.computed(name)["key"]) == key_of(name, request.scale)
        others.append({"name": name, "missing": not there, **COMPUTATIONS[name].settings[request.scale]})
    seconds = sum(sweep["seconds"] for sweep in sweeps)
    return {
        "scale": request.scale,
        "folder": str(request.folder),
        "seconds": seconds,
        "sweeps": sweeps,
        "others": others,
    }


def write_everything(request: Request) -> dict[str, Any]:
    """Figures, tables, verdicts, readings, the summary and the report, from what is in the folder."""
    folder = Folder(request.folder)
    arrays = readings.keep(folder.results())
    readings.write(arrays, request.folder / readings.NAME)
    summary = summarise(folder, request.scale, readings.results_of(arrays))
    write_summary(summary, request.folder / SUMMARY)
    return write_report(summary, request.items, request.folder)


def write_report(summary: Summary, chosen: list[Item], folder: Path) -> dict[str, Any]:
    """The same from a summary. Files are those of the chosen items; the report has everything that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [path for item in chosen for path in write_item(item, summary, folder / "items")]
    rows = [
        {
            "item": one.claim.item,
            "subject": one.claim.subject,
            "claim": one.claim.sentence,
            "quote": one.claim.quoted.text,
            "place": one.claim.quoted.place,
            "verdict": one.verdict,
            "statistic": one.statistic,
            "size": seen_at(one),
            "note": one.note,
        }
        for one in judgements_of(summary)
    ]
    document = {"scale": summary.scale, "claims": rows}
    write_whole(folder / "verdicts.json", (json.dumps(document, indent=1) + "\n").encode())
    page = render(build_document(summary, list(ITEMS.values())))
    write_whole(folder / REPORT, page.encode())
    return {**document, "files": [str(path) for path in files], "report": str(folder / REPORT)}
