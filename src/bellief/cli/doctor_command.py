"""`bellief doctor`: versions, devices and folders, with advice for each problem."""

import typer

from bellief.cli import show
from bellief.cli.progress import progress

MARKS = {True: "ok", False: "problem", None: "-"}


def doctor(json: bool, quiet: bool) -> None:
    """Print every check; exit with 1 where one found a problem."""
    with progress("Examining", quiet):
        from bellief.doctor import diagnose

        checks = diagnose()
    problems = [check for check in checks if check.ok is False]
    if json:
        show.print_json({"ok": not problems, "checks": [check._asdict() for check in checks]})
    else:
        width = max(len(check.name) for check in checks)
        show.print_lines(*(f"{MARKS[check.ok]:8}{check.name:{width}}  {check.found}" for check in checks))
        show.print_lines(*(f"{check.name}: {check.advice}" for check in problems if check.advice))
        show.print_lines("Everything works." if not problems else f"{len(problems)} problem(s), see above.")
    if problems:
        raise typer.Exit(1)
