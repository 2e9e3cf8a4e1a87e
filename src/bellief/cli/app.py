"""The commands. Each reads its options, calls the Python API and shows what comes back."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bellief.cli import logs, paper, report, serve_command, show, store_commands, sweeps, tally_command, trust
from bellief.cli.options import Json, Plot, Quiet, Seed, between, count, split_settings
from bellief.cli.progress import progress
from bellief.cli.run_folder import save_run, unfinished_run
from bellief.errors import UserError
from bellief.registry import AGENTS, ENVIRONMENTS, VALUES, find, looks_like_gymnasium

app = typer.Typer(
    name="bellief",
    help="Bayesian reinforcement learning: posterior distributions over values, from logs or from interaction.",
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

LONGEST_RUN = 2**31 - 1


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="Compute on cpu, gpu or auto.")] = "auto",
) -> None:
    del debug, device  # taken care of before the command line is read
    if version:
        from bellief import __version__

        typer.echo(f"bellief {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


for _command in (
    logs.evaluate,
    logs.compare,
    logs.improve,
    logs.collect,
    trust.check,
    trust.sensitivity,
    trust.certify,
):
    app.command()(_command)
app.command()(tally_command.tally)
app.command(name="app")(serve_command.serve)

EnvironmentName = Annotated[
    str,
    typer.Option(metavar="NAME", show_default=False, help="Environment: see 'bellief list envs', or a Gymnasium id."),
]
Steps = Annotated[int, count("--steps", "Steps of each run.", LONGEST_RUN)]
Runs = Annotated[int, count("--runs", "Independent runs.")]


@app.command()
def run(
    env: EnvironmentName,
    agent: Annotated[str, typer.Option(metavar="NAME", help="Agent; see 'bellief list agents'.")] = "bbi",
    steps: Steps = 10_000,
    runs: Runs = 10,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the agent (horizon=50) or of the environment (env.slip=0.1); may be repeated.",
        ),
    ] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Read a Gymnasium environment's transition table and run compiled.")
    ] = False,
    bins: Annotated[
        int | None, count("--bins", "Cut Box observations of a Gymnasium environment into so many bins a dimension.")
    ] = None,
    half_life: Annotated[
        float,
        typer.Option(
            parser=between("--half-life", 0, float("inf")),
            metavar="STEPS",
            help="Half-life of a reward in the smoothed curves, in steps.",
        ),
    ] = 1000.0,
    longest_gap: Annotated[
        int | None, count("--longest-gap", "Plan at least every so many steps; without it, at the agent's own.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Save curves, plans, policies and a picture in a new folder; an interrupted run resumes from it.",
        ),
    ] = None,
    seed: Seed = 0,
    plot: Plot = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an agent in an environment, several times."""
    agent_settings, environment_settings = split_settings(settings or [])
    if not looks_like_gymnasium(env):
        find(ENVIRONMENTS, "environment", env)
    find(AGENTS, "agent", agent)
    arguments: dict[str, Any] = {
        "env": env,
        "agent": agent,
        "steps": steps,
        "runs": runs,
        "seed": seed,
        "settings": agent_settings,
        "env_settings": environment_settings,
        "table": table,
        "bins": bins,
        "half_life": half_life,
        "longest_gap": longest_gap,
    }
    with unfinished_run(out, arguments, quiet) as checkpoints:
        with progress(f"{agent} in {env}", quiet) as report:
            from bellief import experiments
            from bellief.experiments.settings import convert_text

            converted = {name: convert_text(value) for name, value in environment_settings.items()}
            arguments["env_settings"] = converted
            result = experiments.run(**arguments, progress=report, checkpoints=checkpoints)
        try:
            if out is not None:
                save_run(result, out)
            if plot is not None:
                show.write_picture(result.plot(), plot)
        finally:  # what took long to compute is shown even where it cannot be saved
            if json:
                show.print_json(result.to_dict())
            else:
                show.print_run(result.to_dict())
    if out is not None and not json:
        show.print_lines(f"Saved in {out}")


@app.command(name="compare-agents")
def compare_agents(
    agents: Annotated[
        list[str],
        typer.Argument(
            metavar="AGENT...",
            show_default=False,
            help="Names, with settings as bbi:rule=optimistic,horizon=50; the others are compared with the first.",
        ),
    ],
    env: EnvironmentName,
    steps: Steps = 10_000,
    runs: Runs = 10,
    seed: Seed = 0,
    plot: Plot = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare agents in one environment, run by run on the same random numbers, with intervals."""
    if not looks_like_gymnasium(env):
        find(ENVIRONMENTS, "environment", env)
    with progress(f"{len(agents)} agents in {env}", quiet) as report:
        from bellief import experiments

        comparison = experiments.compare_agents(env, agents, steps, runs, seed, progress=report)
        if plot is not None:
            show.write_picture(comparison.plot(), plot)
    if json:
        show.print_json(comparison.to_dict())
    else:
        show.print_comparison(comparison.to_dict())


app.command()(sweeps.sweep)
app.command()(sweeps.resume)
app.add_typer(store_commands.app, name="store")
app.command()(paper.paper)
app.command()(report.report)


KINDS = {"envs": ENVIRONMENTS, "agents": AGENTS, "values": VALUES}


@app.command(name="list")
def list_names(
    kind: Annotated[
        str | None, typer.Argument(metavar="[envs|agents|values]", show_default=False, help="Without it, all three.")
    ] = None,
    json: Json = False,
) -> None:
    """List environments, agents and value beliefs."""
    if kind is not None and kind not in KINDS:
        raise UserError(f"There is no list of '{kind}'; choose one of {', '.join(KINDS)}.")
    listed = {
        name: [
            {"name": entry.name, "summary": entry.summary}
            | ({} if name == "values" else {"states": ", ".join(entry.kinds)})
            for entry in entries.values()
        ]
        for name, entries in KINDS.items()
        if kind in (None, name)
    }
    if json:
        show.print_json(listed if kind is None else listed[kind])
        return
    for name, entries in listed.items():
        show.print_entries(name, entries)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the page and its pictures.")] = Path(
        "bellief-demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer data sets and runs.")] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Run two experiments in two minutes (a value posterior, an agent that learns) and print the path of a page."""
    from bellief.demo import run_demo

    page = run_demo(out, quick, seed, (lambda text: None) if quiet else (lambda text: typer.echo(text, err=True)))
    typer.echo(page)


@app.command()
def doctor(json: Json = False, quiet: Quiet = False) -> None:
    """Check versions, devices and folders, run a short self-test, and say how to solve each problem."""
    from bellief.cli.doctor_command import doctor as examine

    examine(json, quiet)
