"""`bellief paper`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bellief.cli import show
from bellief.cli.options import Json, grouped
from bellief.cli.sweeps import Computing, Quiet, check_engine, compute_sweeps
from bellief.errors import UserError


@grouped
def paper(
    *,
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Compute at a scale: tiny, quick (minutes), standard (hours) or full. Without it, show what was "
            "computed at full size.",
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="LABELS", help="Labels of items, with commas: fig:full_chain,tab:wasserstein.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the scales' own folders.")] = Path(
        "runs/paper"
    ),
    reuse: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Reuse finished cells of sweeps in another folder; repeatable."),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", metavar="SWEEP=RUNSxSTEPS", help="Override a size: maze/VDQN=5x1000; repeatable."),
    ] = None,
    list_items: Annotated[bool, typer.Option("--list", help="Show the items and their claims.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is missing and its cost, from short trials; write nothing.")
    ] = False,
    write_spec: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the sweeps' YAML files for 'bellief sweep', and compute nothing."),
    ] = None,
    draw_only: Annotated[
        bool, typer.Option("--draw-only", help="Compute nothing: draw and judge finished cells, also those of --reuse.")
    ] = False,
    docs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write the pages with pictures, numbers and verdicts into a folder."),
    ] = None,
    readme: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the table of verdicts into a README.")
    ] = None,
    computing: Computing,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the paper's figures and tables as computed at full size, or compute them again, with verdicts."""
    check_engine(computing)
    from bellief.paper.items import choose
    from bellief.paper.tasks import check_scale, read_size

    chosen = choose(only)
    if list_items:
        _list(chosen, json)
        return
    if scale is None:
        _check_published(reuse, sizes, dry_run, write_spec, draw_only)
        _published(chosen, only is not None, out, docs, readme, json)
        return
    check_scale(scale)
    changes = dict(read_size(text) for text in sizes or [])
    from bellief.paper import run_paper

    request = run_paper.Request(chosen, scale, out, reuse or [], changes)
    if write_spec is not None:
        _write_specs(run_paper.specs_of(request), write_spec, json)
        return
    if dry_run:
        document = run_paper.estimate(request, computing.workers)
        show.print_json(document) if json else _print_estimate(document)
        return
    if draw_only and reuse:
        run_paper.take_over(request)
    elif draw_only and not request.folder.is_dir():
        raise UserError(f"--draw-only has nothing to draw: there is no folder {request.folder}.")
    if not draw_only:
        _compute(request, computing, json or quiet)
    written = run_paper.write_everything(request)
    if docs is not None or readme is not None:
        _write_pages(run_paper.summarise(run_paper.Folder(request.folder), scale), docs, readme, written)
    show.print_json(written) if json else _print_verdicts(written)


def _check_published(*options: Any) -> None:
    names = ("--reuse", "--size", "--dry-run", "--write-spec", "--draw-only")
    for name, value in zip(names, options, strict=True):
        if value:
            raise UserError(f"{name} needs a --scale: tiny, quick, standard or full.")


def _published(chosen: list[Any], named: bool, out: Path, docs: Path | None, readme: Path | None, json: bool) -> None:
    """Results that are part of the package; nothing is computed."""
    from bellief.paper import run_paper
    from bellief.paper.summary import published

    # The page has every picture; files of single items are written for those that are named.
    written = run_paper.write_report(published(), chosen if named else [], out / "published")
    _write_pages(published(), docs, readme, written)
    show.print_json(written) if json else _print_verdicts(written)


def _write_pages(summary: Any, docs: Path | None, readme: Path | None, written: dict[str, Any]) -> None:
    from bellief.paper import documentation_pages

    more = [] if docs is None else documentation_pages.write_pages(summary, docs)
    more += [] if readme is None else [documentation_pages.fill_readme(summary, readme)]
    written["files"] += [str(path) for path in more]


def _compute(request: Any, computing: Computing, quiet: bool) -> None:
    from bellief.paper import run_paper

    def tell(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    def go(wanted: list[Any]) -> None:
        tell(f"sweeps {', '.join(spec.name for spec, *_ in wanted)}")
        compute_sweeps(
            wanted, request.folder, computing, None, False, False, quiet, again="the same command", conclude=False
        )

    with run_paper.computations_beside(request, computing.engine, computing.workers):
        run_paper.run_sweeps(request, go)
    run_paper.run_computations(request, tell)


def _list(chosen: list[Any], json: bool) -> None:
    rows = [
        {
            "label": item.label,
            "title": item.title,
            "sweeps": list(item.sweeps),
            "computations": list(item.computations),
            "claims": [f"{claim.subject}: {claim.sentence}" for claim in item.claims],
        }
        for item in chosen
    ]
    if json:
        show.print_json(rows)
        return
    table = show.make_table("label", "title", "sweeps and computations", "claims", left=4)
    for row in rows:
        parts = ", ".join([*row["sweeps"], *row["computations"]])
        table.add_row(row["label"], row["title"], parts, str(len(row["claims"])))
    show.print_table(table)


def _write_specs(specs: dict[str, Any], folder: Path, json: bool) -> None:
    from bellief.files import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(f"--write-spec: {folder} is no folder; choose another name.") from error
    paths = [str(write_whole(folder / f"{name}.yaml", spec.to_yaml().encode())) for name, spec in specs.items()]
    show.print_json(paths) if json else show.print_lines(*paths)


def _print_estimate(document: dict[str, Any]) -> None:
    table = show.make_table("sweep", "cells", "missing", "about")
    for sweep in document["sweeps"]:
        table.add_row(sweep["name"], str(sweep["cells"]), str(sweep["missing"]), show.duration(sweep["seconds"]))
    show.print_table(table)
    for other in document["others"]:
        settings = ", ".join(f"{name} {value}" for name, value in other.items() if name not in ("name", "missing"))
        state = "to compute, not in the estimate" if other["missing"] else "there"
        show.print_lines(f"{other['name']} ({settings}): {state}")
    show.print_lines(
        f"All sweeps: about {show.duration(document['seconds'])}",
        f"Nothing was written; without --dry-run the results go to {document['folder']}",
    )


def _print_verdicts(document: dict[str, Any]) -> None:
    """The report's path first, then the claims by verdict; those that were not decided are counted."""
    from bellief.paper.paper_report import ORDER
    from bellief.report.document import TOO_SMALL

    pictures = [path for path in document["files"] if path.endswith(".png")]
    show.print_lines(f"Pictures, numbers and verdicts: {document['report']}")
    if pictures:
        show.print_lines(f"{len(pictures)} pictures in {Path(pictures[0]).parent}")
    for verdict in ORDER:
        rows = [row for row in document["claims"] if row["verdict"] == verdict]
        if not rows:
            continue
        count = "1 claim" if len(rows) == 1 else f"{len(rows)} claims"
        if verdict == TOO_SMALL:
            show.print_lines(f"{count} {verdict}; the report lists them.")
            continue
        show.print_lines(f"{count} {verdict}:")
        table = show.make_table("claim", "tasks", left=2)
        for claim in dict.fromkeys(row["claim"] for row in rows):
            table.add_row(claim, "; ".join(row["subject"] for row in rows if row["claim"] == claim))
        show.print_table(table)
