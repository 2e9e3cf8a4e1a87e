"""Random commands on random logs, good and bad, for as long as asked: nothing may crash, hang, grow or leave remains.

    python benchmarks/soak_commands.py --minutes 60 --seed 0 --log soak.jsonl
    python benchmarks/soak_commands.py --seed 0 --only 17 --show      # command 17 of seed 0 again

After each command:

- the exit code is 0 or 2 (1 where that is documented), with a sentence on standard error where it is not 0, without
  a traceback and without "bug in Bellief";
- with `--json`, standard output is one valid document, or nothing;
- inputs are as they were; a command that failed left old outputs alone and wrote no new ones; no temporary file stays.

Most commands about logs go to one long-lived process, whose memory must not grow; one in seven, and whatever
needs JAX, runs in a process of its own, a few of which are killed in the middle. Prints one line of JSON; exit code 1
with findings.
"""

import argparse
import hashlib
import itertools
import json
import os
import random
import resource
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from soak_cases import Command, experiment_command, log_command

MOST_MEMORY = 3 * 2**30  # of a process, on logs of a thousand rows
GROWTH = 1.15  # of the long-lived process: median of the last quarter over median of the second
KILLED = -9


def make_command(seed: int, number: int, folder: Path, stores: Path) -> tuple[Command, bool, bool]:
    """Command `number` of a seed, whether it gets a process of its own, and whether it is killed."""
    rng = random.Random(f"{seed}-{number}")
    kind = rng.random()
    command = experiment_command(rng, folder, stores) if kind < 0.06 else log_command(rng, folder, jax=kind < 0.08)
    alone = command.uses_jax or rng.random() < 0.15
    return command, alone, alone and rng.random() < 0.05


class Server:
    """A process that runs one command after another through `bellief.cli.main`."""

    def __init__(self, environment: dict[str, str]):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self.memory: list[int] = []

    def run(self, command: Command, folder: Path, limit: float) -> tuple[int | None, float]:
        """Exit code (None: over a limit, or the process died) and seconds of processor time."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"arguments": command.arguments, "folder": str(folder)}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        began, used = time.monotonic(), processor_seconds(self.process.pid)
        while not select.select([self.process.stdout], [], [], 0.2)[0]:
            if over_limits(self.process.pid, began, used, limit):
                self.process.kill()
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            return None, limit
        reply = json.loads(line)
        self.memory.append(reply["memory"])
        return reply["code"], reply["seconds"]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def resident(process: int) -> int:
    """Bytes of memory of a process, 0 where it is gone."""
    try:
        with open(f"/proc/{process}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def processor_seconds(process: int) -> float:
    """User and system time of a process so far, 0 where it is gone."""
    try:
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


def over_limits(process: int, began: float, used: float, limit: float) -> bool:
    """More processor time since `used`, or ten times as much time since `began`, or more memory than a command may."""
    if time.monotonic() - began > 10 * limit or processor_seconds(process) - used > limit:
        return True
    return resident(process) > MOST_MEMORY


def serve() -> None:
    """The long-lived process: requests on standard input, replies on what was standard output."""
    from bellief.cli import main

    requests, replies = os.dup(0), os.dup(1)
    with os.fdopen(requests) as lines:
        for line in lines:
            request = json.loads(line)
            folder = Path(request["folder"])
            for number, name, flags in ((0, "stdin", os.O_RDONLY), (1, "stdout", 577), (2, "stderr", 577)):
                opened = os.open(folder / name, flags, 0o600)
                os.dup2(opened, number)
                os.close(opened)
            os.chdir(folder)
            began = time.process_time()
            code = main(request["arguments"])
            sys.stdout.flush()
            sys.stderr.flush()
            reply = {"code": code, "seconds": time.process_time() - began, "memory": resident(os.getpid())}
            os.write(replies, json.dumps(reply).encode() + b"\n")


def run_alone(command: Command, folder: Path, environment: dict, limit: float, kill_after: float | None):
    """Exit code (None: over a limit), processor seconds and the most memory of a process of its own."""
    with open(folder / "stdin") as stdin, open(folder / "stdout", "w") as out, open(folder / "stderr", "w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "bellief", *command.arguments],
            stdin=stdin, stdout=out, stderr=err, env=environment, cwd=folder, start_new_session=True,
        )  # fmt: skip
    began, code = time.monotonic(), None
    while True:
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            break
        over = over_limits(process.pid, began, 0.0, limit)
        if over or (kill_after is not None and time.monotonic() - began > kill_after):
            os.killpg(process.pid, signal.SIGKILL)
            _, _, usage = os.wait4(process.pid, 0)
            code = None if over else KILLED
            break
        time.sleep(0.02)
    process.returncode = 0 if code is None else code
    return code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def contents(folder: Path) -> dict[str, str]:
    """Hash of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def complete(path: Path) -> bool:
    """Whether an output is whole, by what its format ends with."""
    if path.is_dir():
        return True  # checked by the tests of run folders
    content = path.read_bytes()
    if content == b"what was there before\n":
        return True
    if path.suffix == ".npz":
        return zipfile.is_zipfile(path)
    ends = {".html": b"</html>", ".svg": b"</svg>", ".parquet": b"PAR1", ".csv": b"\n", ".png": b"IEND\xaeB`\x82"}
    return content.rstrip(b" \n").endswith(ends[path.suffix].rstrip()) if content else False


def judge(command: Command, code: int | None, folder: Path, before: dict, after: dict) -> list[str]:
    """What is wrong with how a command ended."""
    out, err = ((folder / name).read_text(errors="replace") for name in ("stdout", "stderr"))
    if code is None:
        return ["over its limit of time or memory, or its process died"]
    found = []
    written = {str(path.relative_to(folder)) for path in command.outputs}
    kept = {name: value for name, value in before.items() if name not in written}
    changed = [name for name, value in kept.items() if after.get(name) != value]
    new = [name for name in after if name not in before and not any(name.startswith(one) for one in written)]
    found += [f"changed or removed {name}" for name in changed]
    found += [f"half-written {path.name}" for path in command.outputs if path.exists() and not complete(path)]
    if code == KILLED:
        return found
    found += [f"left {name}" for name in new if not name.startswith("home/")]
    if code not in ((0, 1, 2) if command.may_fail else (0, 2)):
        found.append(f"exit code {code}")
    if "Traceback" in out + err or "bug in Bellief" in err:
        found.append("a bug")
    if code != 0:
        if not err.strip().endswith((".", "?")):
            found.append("no sentence")
        found += [f"failed, and wrote {name}" for name in sorted(written) if after.get(name) != before.get(name)]
    if "--json" in command.arguments and command.arguments[0] not in ("sweep", "resume"):
        try:
            json.loads(out, parse_constant=lambda name: 1 / 0) if code == 0 or out else None
        except (ValueError, ZeroDivisionError):
            found.append("standard output is not one JSON document")
    if len(err) > 10_000:
        found.append("more than 10,000 characters of messages")
    return found


def make_stores(stores: Path, environment: dict[str, str]) -> None:
    """Two finished sweeps to look into, one of them damaged afterwards."""
    stores.mkdir()
    for name in ("tiny", "damaged"):
        text = f"name: {name}\nsteps: 20\nruns: 2\nenvironments: [nchain]\nagents: [q-learning]\n"
        (stores / f"{name}.yaml").write_text(text)
        command = [sys.executable, "-m", "bellief", "sweep", str(stores / f"{name}.yaml"), "--out", str(stores)]
        subprocess.run([*command, "--engine", "batch", "--quiet"], env=environment, check=True, capture_output=True)
    for path in (stores / "damaged" / "cells").rglob("*.json"):
        path.write_text('{"files": {}}')


def run_one(number: int, options, places: dict, server: Server | None) -> dict:
    """Make, run and judge a command."""
    folder = places["root"] / f"{number}"
    folder.mkdir()
    command, alone, killed = make_command(options.seed, number, folder, places["stores"])
    (folder / "stdin").write_bytes(command.stdin)
    for name in ("stdout", "stderr"):
        (folder / name).touch()
    ignored = ("stdin", "stdout", "stderr")
    before = {name: value for name, value in contents(folder).items() if name not in ignored}
    memory = None
    if alone or server is None:
        kill_after = random.Random(number).uniform(0.2, 6) if killed else None
        code, seconds, memory = run_alone(command, folder, places["environment"], options.limit, kill_after)
    else:
        code, seconds = server.run(command, folder, options.limit)
    after = {name: value for name, value in contents(folder).items() if name not in ignored}
    findings = judge(command, code, folder, before, after)
    left = list(places["temporary"].iterdir())
    if left and code != KILLED:
        findings.append(f"left {left[0].name} in the temporary folder")
    for path in left:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    error = (folder / "stderr").read_text(errors="replace")[-500:]
    record = {
        "number": number, "code": code, "alone": alone, "seconds": round(seconds, 2), "memory": memory,
        "arguments": command.arguments, "findings": findings, "error": error,
    }  # fmt: skip
    if not findings and not options.show:
        shutil.rmtree(folder)
    return record


def summary(records: list[dict], servers: list[list[int]], seconds: float) -> dict:
    """Counts of everything, and whether memory grew."""
    growth = []
    for memory in servers:
        quarter = len(memory) // 4
        if quarter >= 50:
            growth.append(statistics.median(memory[-quarter:]) / statistics.median(memory[quarter : 2 * quarter]))
    codes = sorted({str(record["code"]) for record in records})
    return {
        "minutes": round(seconds / 60, 1),
        "commands": len(records),
        "in_processes_of_their_own": sum(record["alone"] for record in records),
        "codes": {code: sum(str(record["code"]) == code for record in records) for code in codes},
        "slowest_seconds": max(record["seconds"] for record in records),
        "most_memory_mb": max((record["memory"] or 0) for record in records) // 2**20,
        "long_lived_memory_mb": [memory[-1] // 2**20 for memory in servers if memory],
        "growth": [round(one, 3) for one in growth],
        "findings": sum(bool(record["findings"]) for record in records),
    }


def soak(options) -> int:
    """Commands until the time is over."""
    root = Path(tempfile.mkdtemp(prefix="bellief-soak-"))
    temporary = root / "tmp"
    temporary.mkdir()
    (root / "home").mkdir()
    source = str(Path(__file__).parents[1] / "src")
    environment = os.environ | {
        "TMPDIR": str(temporary), "HOME": str(root / "home"), "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")])),
    }  # fmt: skip
    places = {"root": root, "stores": root / "stores", "temporary": temporary, "environment": environment}
    make_stores(places["stores"], environment)
    began, records, server, servers = time.monotonic(), [], None, []
    for number in options.only or itertools.count(options.begin):
        if not options.only and (server is None or not server.alive):
            server = Server(environment)
            servers.append(server.memory)
        record = run_one(number, options, places, server)
        records.append(record)
        if record["findings"] or options.show:
            print(json.dumps(record), file=sys.stderr, flush=True)
        if options.log:
            with open(options.log, "a") as file:
                file.write(json.dumps(record) + "\n")
        if not options.only and time.monotonic() - began > 60 * options.minutes:
            break
    if server is not None:
        server.close()
    report = summary(records, servers, time.monotonic() - began)
    print(json.dumps(report))
    if not report["findings"] and not options.show:
        shutil.rmtree(root)
    else:
        print(f"What was found is in {root}", file=sys.stderr)
    return int(report["findings"] > 0 or any(one > GROWTH for one in report["growth"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--begin", type=int, default=0, help="number of the first command")
    parser.add_argument("--only", type=int, nargs="+", help="these commands again, each in a process of its own")
    parser.add_argument("--show", action="store_true", help="print every record and keep the files")
    parser.add_argument(
        "--limit", type=float, default=60.0, help="processor seconds that a command may take, and a tenth of the time"
    )
    parser.add_argument("--log", default=None, help="append every record to this file")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    return soak(options)


if __name__ == "__main__":
    sys.exit(main())
