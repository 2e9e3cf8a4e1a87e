"""Random logs, good and bad, and random commands on them, for `benchmarks/soak_commands.py`.

Everything is drawn from one `random.Random`, so that a command's seed and number make it again.
"""

import gzip
import io
import json
import random
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.parquet

SPELLINGS = {
    "state": ["state", "obs", "observations", "STATE"],
    "action": ["action", "actions", "Action"],
    "reward": ["reward", "rewards"],
    "next_state": ["next_state", "next_obs", "Next State"],
    "terminated": ["terminated", "terminal", "done", "is_terminal"],
    "truncated": ["truncated", "timeouts"],
    "episode": ["episode", "trajectory_id"],
    "step": ["step", "t"],
}
HOSTILE = [
    "nan", "inf", "-inf", "1e308", "1e-308", "-1", "-0", "0.5", "", " ", "01", "1e3", "9" * 30, "=1+1", "@SUM(A1)",
    '"', "'", ",", ";", "\x00", "ü", "\U0001f600", "‮", "<script>alert(1)</script>", "[bold]", "x" * 5000, "true",
    "null", "None", "{}", "../../etc/passwd", "%s%n", "$(touch pwned)", "2026-11-18", "0x10", "1_000",
]  # fmt: skip


@dataclass
class Command:
    """Arguments, what is given on standard input, and the files that the command may write."""

    arguments: list[str]
    stdin: bytes = b""
    outputs: list[Path] = field(default_factory=list)
    uses_jax: bool = False
    # Exit code 1 is documented for a store with problems and for sweeps with failed cells.
    may_fail: bool = False


def random_rows(rng: random.Random) -> tuple[list[str], list[list]]:
    """Names and rows of a sound log: a walk in a small world, with the optional columns of a random choice."""
    states, actions = rng.randint(1, 12), rng.randint(1, 4)
    labels = rng.random() < 0.3
    state_name = (lambda n: f"ward {n}") if labels else (lambda n: n)
    action_name = (lambda n: f"a{n}") if labels else (lambda n: n)
    optional = [name for name in ("terminated", "truncated", "episode", "step") if rng.random() < 0.4]
    scale = 10 ** rng.uniform(-3, 3)
    state, rows, episode, step = rng.randrange(states), [], 0, 0
    for _ in range(rng.choice([1, 2, 5, 30, 200, 1000])):
        action, after = rng.randrange(actions), rng.randrange(states)
        terminated, truncated = rng.random() < 0.1, rng.random() < 0.05
        extra = {"terminated": terminated, "truncated": truncated, "episode": episode, "step": step}
        reward = round(rng.gauss(0, scale), 6)
        rows.append([state_name(state), action_name(action), reward, state_name(after), *(extra[n] for n in optional)])
        step += 1
        state = after
        if terminated or truncated:
            state, episode, step = rng.randrange(states), episode + 1, 0
    names = [
        rng.choice(SPELLINGS[name]) if rng.random() < 0.4 else name
        for name in ("state", "action", "reward", "next_state", *optional)
    ]
    return names, rows


def random_vectors(rng: random.Random) -> tuple[list[str], list[list]]:
    """Names and rows of a log whose states are vectors."""
    width = rng.randint(1, 3)
    names = [*(f"state_{n}" for n in range(width)), *(f"next_state_{n}" for n in range(width)), "action", "reward"]
    rows = [
        [*(round(rng.gauss(0, 1), 4) for _ in range(2 * width)), rng.randrange(2), round(rng.gauss(0, 1), 4)]
        for _ in range(rng.choice([3, 40, 200]))
    ]
    return names, rows


def spoil_rows(rng: random.Random, names: list[str], rows: list[list]) -> None:
    """Put one mistake into a table."""
    choice = rng.randrange(7)
    if choice == 0:
        names[rng.randrange(len(names))] = rng.choice(["colour", "", "state", "reward", "\x00", "x" * 3000])
    elif choice == 1:
        place = rng.randrange(len(names))
        del names[place]
        for row in rows:
            del row[place]
    elif choice == 2:
        rows.clear()
    elif choice == 3:
        rows.extend(rows[: len(rows) // 2])  # duplicated rows are no mistake, and must not be taken for one
    elif choice == 4:
        names.append(names[0])
        for row in rows:
            row.append(row[0])
    else:
        for _ in range(rng.choice([1, 1, 3, 20])):
            row = rng.choice(rows)
            row[rng.randrange(len(row))] = rng.choice(HOSTILE)


def encode(rng: random.Random, names: list[str], rows: list[list]) -> tuple[str, bytes]:
    """The ending of a file's name, and its content."""
    kind = rng.choice(["csv", "csv", "csv", "jsonl", "parquet"])
    if kind == "csv":
        quote = lambda cell: '"' + str(cell).replace('"', '""') + '"' if set(str(cell)) & set(',"\n') else str(cell)  # noqa: E731
        separator = rng.choice([","] * 18 + [";", "\t"])
        end = rng.choice(["\n", "\r\n"])
        lines = [separator.join(map(quote, line)) for line in [names, *rows]]
        content = (end.join(lines) + rng.choice(["", end, end * 3])).encode(errors="replace")
    elif kind == "jsonl":
        lines = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=rng.random() < 0.5) for row in rows]
        content = "\n".join(lines).encode(errors="replace")
    else:
        buffer = io.BytesIO()
        columns = list(zip(*rows, strict=True)) if rows else [[] for _ in names]
        try:
            arrays = [pyarrow.array(list(column)) for column in columns]
        except (pyarrow.ArrowException, TypeError):
            arrays = [pyarrow.array([str(cell) for cell in column]) for column in columns]
        pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, names=list(names)), buffer)
        content = buffer.getvalue()
    if kind != "parquet" and rng.random() < 0.2:
        return f".{kind}.gz", gzip.compress(content)
    return f".{kind}", content


def spoil_bytes(rng: random.Random, content: bytes) -> bytes:
    """Damage a file: bytes changed, the end or the beginning lost, another encoding, nothing at all."""
    choice = rng.randrange(6)
    if choice == 0 or not content:
        return b""
    if choice == 1:
        return content[: rng.randrange(len(content))]
    if choice == 2:
        return content[rng.randrange(len(content)) :]
    if choice == 3:
        return content.decode(errors="replace").encode("utf-16")
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 5, 50])):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)


def write_log(rng: random.Random, folder: Path, name: str, vectors: bool) -> Path:
    """A log, sound in about half the cases."""
    names, rows = random_vectors(rng) if vectors else random_rows(rng)
    if rows and rng.random() < 0.25:
        spoil_rows(rng, names, rows)
    ending, content = encode(rng, names, rows)
    if rng.random() < 0.08:
        content = spoil_bytes(rng, content)
    if rng.random() < 0.05:
        ending = rng.choice([".csv", ".parquet", ".jsonl", ".csv.gz", ".csv.zst", ".txt", ""])
    path = folder / f"{name}{ending}"
    path.write_bytes(content)
    return path


def log_arguments(rng: random.Random, folder: Path, vectors: bool) -> tuple[list[str], bytes]:
    """What is given as DATA, with the options that go with it, and standard input."""
    folder.mkdir()
    paths = [write_log(rng, folder, f"log{n}", vectors) for n in range(rng.choice([1, 1, 1, 2, 4]))]
    way = rng.randrange(14)
    if way == 0:
        return ["-"], paths[0].read_bytes()
    if way == 1:
        return [str(folder / "*")], b""
    if way == 2:
        return [str(folder)], b""
    if way == 3:
        query = rng.choice(
            [
                f"select * from '{paths[0]}'",
                f"select * from '{paths[0]}' limit 5",
                f"select * from '{paths[0]}' order by reward",
                f"from '{paths[0]}' where reward is not null",
                f"select *, 1 as extra from '{paths[0]}'",
                "select 1",
                "drop table log",
                f"copy (select 1) to '{folder}/written.csv'",
                "selec",
                f"select * from '{paths[0]}'; select 1",
            ]
        )
        return ["--query", query], b""
    if way == 4:
        database = folder / "base.duckdb"
        with duckdb.connect(str(database)) as base:
            base.execute("create table log (state int, action int, reward double, next_state int)")
            base.execute("insert into log select i % 3, i % 2, i * 0.1, (i + 1) % 3 from range(20) t(i)")
        return [
            "--database",
            str(database),
            "--query",
            rng.choice(["select * from log", "from log", "select * from log where reward > 0.5", "from other"]),
        ], b""
    if way == 5 and rng.random() < 0.5:
        nowhere = [str(folder / "none.csv"), "/dev/zero", "/dev/null", str(folder / "[.csv"), "minari:none"]
        return [rng.choice(nowhere)], b""
    return [str(paths[0])], b""


GOOD_OPTIONS = {
    "evaluate": [
        ["--policy", "behaviour"], ["--policy", "always:0"], ["--discount", "0.9"], ["--horizon", "5"],
        ["--prior", "sparse"], ["--prior", "paper"], ["--level", "0.5"], ["--start", "0"], ["--method", "mean-mdp"],
        ["--method", "monte-carlo"], ["--discount", "1"], ["--features", "constant+raw"], ["--horizon", "1000000000"],
    ],
    "compare": [["--discount", "0.9"], ["--simulations", "0"], ["--target", "0.8"], ["--horizon", "5"]],
    "improve": [["--objective", "quantile"], ["--objective", "cvar"], ["--min-visits", "0"], ["--discount", "0.5"]],
    "collect": [["--visits", "3"], ["--top", "2"], ["--policy", "behaviour"], ["--discount", "0.9"]],
    "check": [["--permutations", "99"]],
    "sensitivity": [["--threshold", "0"], ["--against", "behaviour"], ["--discount", "0.9"]],
    "tally": [["--threads", "1"]],
}  # fmt: skip
BAD_OPTIONS = [
    ["--discount", "2"], ["--discount", "nan"], ["--level", "1"], ["--draws", "0"], ["--draws", "1" + "0" * 10],
    ["--horizon", "9" * 30], ["--seed", "-1"], ["--policy", "best"], ["--policy", "always:99"], ["--prior", "flat"],
    ["--start", "99"], ["--method", "guess"], ["--states", "-3"], ["--states", "1"], ["--nonsense"],
    ["--engine", "moon"], ["--support", "none.csv"], ["--columns", "state"], ["--columns", "colour=red"],
    ["--columns", "state=reward,reward=reward"],
    ["--threads", "0"], ["--address", "nowhere:1"], ["--database", "none.duckdb"], ["--reward-scale", "-1"],
]  # fmt: skip
READING = [
    ["--labels"], ["--states", "50"], ["--actions", "5"], ["--columns", "state=state,next_state=next_state"],
    ["--threads", "2"], ["--states", "ward 0,ward 1"],
]  # fmt: skip
WRITES = {
    "evaluate": [("--save", ".npz"), ("--report", ".html"), ("--plot", ".svg")],
    "compare": [("--report", ".html"), ("--plot", ".png")],
    "improve": [("--out", ".csv"), ("--report", ".html")],
    "collect": [("--report", ".html"), ("--plot", ".svg")],
    "tally": [("--out", ".parquet")],
}
JAX_METHODS = ["gaussian", "histogram", "method2", "method3"]


def log_command(rng: random.Random, folder: Path, jax: bool) -> Command:
    """A command about a log; `jax` asks for what compiles: one of the paper's methods, or states that are vectors."""
    name = "evaluate" if jax else rng.choice([*GOOD_OPTIONS, "evaluate", "tally"])
    vectors = jax and rng.random() < 0.4
    data, stdin = log_arguments(rng, folder / "data", vectors)
    options: list[str] = []
    if name in ("evaluate", "compare", "improve", "collect", "sensitivity"):
        options += ["--draws", str(rng.choice([1, 2, 50, 200]))]
    for choices, chance in ((GOOD_OPTIONS[name], 0.7), (READING, 0.2), (BAD_OPTIONS, 0.12)):
        if rng.random() < chance:
            options += rng.choice(choices)
    if jax and not vectors:
        options += ["--method", rng.choice(JAX_METHODS), "--mdps", "3"]
    if name == "compare":
        policies = rng.sample(
            ["uniform", "behaviour", "always:0", "uniform", "behaviour", "none.csv"], k=rng.choice([2, 2, 2, 3, 1])
        )
        data = [*(data if len(data) == 1 else ["-", *data]), *policies]
    outputs = []
    for option, ending in WRITES.get(name, []):
        if rng.random() < 0.2:
            outputs.append(folder / f"out{len(outputs)}{ending}")
            if rng.random() < 0.5:
                outputs[-1].write_text("what was there before\n")
            options += [option, str(outputs[-1])]
    options += rng.choice([["--json"], ["--quiet"], []])
    return Command([name, *data, *options], stdin, outputs, uses_jax=jax)


def experiment_command(rng: random.Random, folder: Path, stores: Path) -> Command:
    """A tiny run, a sweep, or a look into a sweep's folder."""
    name = rng.choice(["run", "run", "sweep", "sweep", "resume", "ls", "verify", "export", "report", "certify", "list"])
    bad = rng.choice([["--steps", "-1"], ["--agent", "none"], ["--set", "depth=3"], ["--env", "none"]])
    bad = bad if rng.random() < 0.2 else []
    output = folder / "out.csv"
    store = rng.choice([*[stores / "tiny"] * 5, stores / "damaged", stores / "damaged", folder / "none", stores])
    if name == "run":
        where = ["--out", str(folder / "run")] if rng.random() < 0.3 else []
        agent = rng.choice(["q-learning", "psrl", "bql"])
        arguments = ["run", "--env", "nchain", "--agent", agent, "--steps", "20", "--runs", "2", "--json", *where, *bad]
        return Command(arguments, outputs=[folder / "run"], uses_jax=True)
    if name == "sweep":
        text = "name: tiny\nsteps: 20\nruns: 2\nenvironments: [nchain]\nagents: [q-learning]\n"
        lines = text.splitlines()
        if rng.random() < 0.6:
            lines[rng.randrange(len(lines))] = rng.choice(
                ["", "steps: many", "x: {a", "agents: [none]", "- 1", "runs: -1"]
            )
        (folder / "sweep.yaml").write_text("\n".join(lines))
        how = rng.choice([["--dry-run"], ["--engine", "batch", "--quiet"], ["--workers", "1", "--json"]])
        arguments = ["sweep", str(folder / "sweep.yaml"), "--out", str(stores), *how]
        return Command(arguments, uses_jax=True, may_fail=True)
    if name == "resume":
        return Command(["resume", str(store), "--engine", "batch"], uses_jax=True, may_fail=True)
    if name == "export":
        return Command(["store", "export", str(store), "--to", str(output)], outputs=[output], may_fail=True)
    if name == "report":
        page = folder / "page.html"
        return Command(["report", str(store), "--out", str(page)], outputs=[page], may_fail=True)
    if name == "certify":
        arguments = [
            "certify",
            "--states",
            "3",
            "--transitions",
            "20",
            "--simulations",
            str(rng.choice([20, 1])),
            "--json",
        ]
        return Command(arguments)
    if name == "list":
        return Command(["list", rng.choice(["agents", "envs", "values", "none"]), "--json"])
    return Command(["store", name, str(store)], uses_jax=name == "verify", may_fail=True)
