"""The commands. Each reads its options, calls the Python API and shows what comes back."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bellief.cli import show
from bellief.cli.options import between, picture, split_settings, whole
from bellief.cli.progress import progress
from bellief.errors import UserError
from bellief.registry import AGENTS, ENVIRONMENTS, VALUES, find, looks_like_gymnasium

app = typer.Typer(
    name="bellief",
    help="Bayesian reinforcement learning that keeps its uncertainty.",
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

SEEDS = 2**32 - 1
LONGEST_RUN = 2**31 - 1

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Seed = Annotated[
    int, typer.Option(parser=whole("--seed", 0, SEEDS), metavar="N", help="Same seed, same result, bit for bit.")
]
Plot = Annotated[
    Path | None,
    typer.Option(parser=picture, metavar="FILE", help="Draw into a .png, .svg or .pdf file (replaced if it exists)."),
]


def _count(option: str, text: str, most: int | None = None) -> Any:
    return typer.Option(option, parser=whole(option, 1, most), metavar="N", help=text)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
) -> None:
    del debug  # taken care of before the command line is read
    if version:
        from bellief import __version__

        typer.echo(f"bellief {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), nl=False)


@app.command()
def evaluate(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="CSV file with state, action, reward, next_state; optionally terminated, episode.",
        ),
    ],
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="uniform, behaviour (as seen in the data), or a CSV file with state, action, probability.",
        ),
    ] = "uniform",
    discount: Annotated[
        float,
        typer.Option(
            parser=between("--discount", 0, 1, includes_high=True), metavar="NUMBER", help="In (0, 1]; 1 needs an end."
        ),
    ] = 0.99,
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="One of joint, gaussian, histogram, monte-carlo and mean-mdp."),
    ] = "joint",
    prior: Annotated[str, typer.Option(metavar="NAME", help="Prior over MDPs: paper or sparse.")] = "paper",
    level: Annotated[
        float, typer.Option(parser=between("--level", 0, 1), metavar="NUMBER", help="Mass of the credible intervals.")
    ] = 0.9,
    horizon: Annotated[int | None, _count("--horizon", "Steps that count; without it, for ever.")] = None,
    states: Annotated[int | None, _count("--states", "Number of states, if more than the data show.")] = None,
    actions: Annotated[int | None, _count("--actions", "Number of actions, if more than the data show.")] = None,
    start: Annotated[
        int | None,
        typer.Option(parser=whole("--start"), metavar="S", help="First state; without it, those seen in the data."),
    ] = None,
    draws: Annotated[int, _count("--draws", "Value functions to draw.")] = 1000,
    mdps: Annotated[
        int | None, _count("--mdps", "MDPs to sample; without it as many as draws, or 10 for gaussian and histogram.")
    ] = None,
    lookahead: Annotated[
        int | None, _count("--lookahead", "Induction steps without a horizon; without it enough for 99.9%.")
    ] = None,
    final: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where the induction starts: zero, own or pooled.")
    ] = None,
    seed: Seed = 0,
    plot: Plot = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What a policy is worth, and how sure the data make us of it."""
    with progress("Evaluating", quiet):
        from bellief.offline import Transitions
        from bellief.offline import evaluate as evaluate_policy

        posterior = evaluate_policy(
            Transitions.from_csv(data, states=states, actions=actions),
            policy,
            discount,
            method=method,
            prior=prior,
            horizon=horizon,
            start=start,
            level=level,
            seed=seed,
            mdps=mdps,
            draws=draws,
            lookahead=lookahead,
            final=final,
        )
        if plot is not None:
            show.write_picture(posterior.plot(), plot)
    if json:
        show.print_json(posterior.to_dict())
    else:
        show.print_posterior(posterior.to_dict(), policy)


@app.command()
def run(
    env: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=False, help="Environment: see 'bellief list envs', or a Gymnasium id."
        ),
    ],
    agent: Annotated[str, typer.Option(metavar="NAME", help="Agent; see 'bellief list agents'.")] = "bbi",
    steps: Annotated[int, _count("--steps", "Steps of each run.", LONGEST_RUN)] = 10_000,
    runs: Annotated[int, _count("--runs", "Independent runs.")] = 10,
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
        int | None, _count("--bins", "Cut Box observations of a Gymnasium environment into so many bins a dimension.")
    ] = None,
    half_life: Annotated[
        float,
        typer.Option(
            parser=between("--half-life", 0, float("inf")),
            metavar="STEPS",
            help="Steps after which a reward counts half in the smoothed curves.",
        ),
    ] = 1000.0,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Save curves, plans, policies and a picture in a new folder.")
    ] = None,
    seed: Seed = 0,
    plot: Plot = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Let an agent learn in an environment, many times over."""
    agent_settings, environment_settings = split_settings(settings or [])
    if not looks_like_gymnasium(env):
        find(ENVIRONMENTS, "environment", env)
    find(AGENTS, "agent", agent)
    with progress(f"{agent} in {env}", quiet) as report:
        from bellief import experiments
        from bellief.experiments.results import check_new_folder
        from bellief.experiments.settings import convert_text

        if out is not None:
            check_new_folder(out)
        result = experiments.run(
            env,
            agent,
            steps,
            runs,
            seed,
            settings=agent_settings,
            env_settings={name: convert_text(value) for name, value in environment_settings.items()},
            table=table,
            bins=bins,
            half_life=half_life,
            progress=report,
        )
    try:
        if out is not None:
            result.save(out)
            show.write_picture(result.plot(), out / "curve.png")
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
    env: Annotated[
        str,
        typer.Option(
            metavar="NAME", show_default=False, help="Environment: see 'bellief list envs', or a Gymnasium id."
        ),
    ],
    steps: Annotated[int, _count("--steps", "Steps of each run.", LONGEST_RUN)] = 10_000,
    runs: Annotated[int, _count("--runs", "Independent runs.")] = 10,
    seed: Seed = 0,
    plot: Plot = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Several agents in one environment, on the same luck, with intervals of their differences."""
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


KINDS = {"envs": ENVIRONMENTS, "agents": AGENTS, "values": VALUES}


@app.command(name="list")
def list_names(
    kind: Annotated[
        str | None, typer.Argument(metavar="[envs|agents|values]", show_default=False, help="Without it, all three.")
    ] = None,
    json: Json = False,
) -> None:
    """The environments, agents and value beliefs that can be named."""
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
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the page and its pictures go.")] = Path(
        "bellief-demo"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer data sets and runs.")] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Two experiments in two minutes: a value posterior, and an agent that learns. Prints the path of a page."""
    from bellief.demo import run_demo

    page = run_demo(out, quick, seed, (lambda text: None) if quiet else (lambda text: typer.echo(text, err=True)))
    typer.echo(page)
