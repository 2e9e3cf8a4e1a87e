"""What the fuzzers begin with: sound inputs of every target; logs, policies and sweeps that a test has refused."""

import functools
import importlib
import io
import sys
from pathlib import Path

import numpy as np
import targets


def _seeds_of_archive(members: dict[str, bytes], header: str) -> dict[str, bytes]:
    names = sorted(members)
    text = np.load(io.BytesIO(members[header])).tobytes()
    arrays = {name: b"M" + bytes([2 * place]) + members[name] for place, name in enumerate(names)}
    return {"header": b"J" + text} | arrays


def _seeds_of_parquet() -> dict[str, bytes]:
    import pyarrow
    import pyarrow.parquet as writer

    table = io.BytesIO()
    columns = {
        "state": [0, 1],
        "action": [0, 1],
        "reward": [0.5, 1.0],
        "next_state": [1, 0],
        "terminated": [False, True],
    }
    writer.write_table(pyarrow.table(columns), table)
    return {"plain": table.getvalue(), "types": b"T" + bytes(range(19)), "zeros": b"T" + bytes(19)}


@functools.cache
def _tests(module: str):
    """A module of tests, whose inputs are looked at; None where the tests are not here."""
    tests = Path(__file__).parents[1] / "tests"
    if not tests.is_dir():
        return None
    sys.path.insert(0, str(tests))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(str(tests))


def _refused(target: str) -> dict[str, bytes]:
    """Every CSV file, policy or sweep that a test has refused, where the tests are here."""
    if (mistakes := _tests("cli.test_mistakes")) is None:
        return {}
    texts: dict[str, str | bytes] = {}
    if target == "csv":
        texts |= {name: content for name, (content, _) in mistakes.DATA_MISTAKES.items()}
        broken = _tests("logs.test_fold").BROKEN
        texts |= {name: f"state,action,reward,next_state\n{rows}" for name, (rows, _) in broken.items()}
    elif target == "policy":
        rows = {name: rows for name, (rows, _) in mistakes.POLICY_MISTAKES.items()}
        texts |= {name: f"fstate,action,probability\n{content}" for name, content in rows.items()}
        texts |= {f"labels {name}": f"lstate,action,probability\n{content}" for name, content in rows.items()}
        texts["no probability"] = "fstate,action\n0,0\n"
    else:
        spec = _tests("sweeps.test_spec")
        texts |= {f"mistake {number}": text for number, (text, _) in enumerate(spec.MISTAKES)}
        texts |= {f"code {number}": f"{spec.BASE}seed: {tag}\n" for number, tag in enumerate(spec.CODE)}
        texts["grid"] = spec.BASE
    return {
        name.replace(" ", "-"): content if isinstance(content, bytes) else content.encode()
        for name, content in texts.items()
    }


QUERIES = (
    "select * from LOG",
    "select * from LOG where reward > 0.5 order by state limit 2",
    "with a as (select * from LOG) select * from a union all select * from a",
    "select state, action, sum(reward) as reward, any_value(next_state) as next_state from LOG group by all",
    "select 1; select 2",
    "copy (select 1) to 'x.csv'",
    "install httpfs",
    "select * from 'https://example.invalid/log.parquet'",
    "drop table log",
    "selec",
    "pragma version",
    "attach 'x.duckdb'",
    "from range(10)",
)


def seeds(target: str) -> dict[str, bytes]:
    """Sound inputs to begin with, and files that were refused; the corpus folder keeps only what the fuzzer found."""
    if target == "folded":
        rows = seeds("csv") | {"json-" + name: content for name, content in seeds("json_lines").items()}
        kinds = {name: b"j" if name.startswith("json-") else b"c" for name in rows}
        plain = {name: kinds[name] + b"0" + content for name, content in rows.items()}
        return plain | {f"z-{name}": b"z0" + content for name, content in seeds("csv").items()}
    if target == "query":
        return {str(number): text.encode() for number, text in enumerate(QUERIES)}
    if target in ("csv", "policy", "spec"):
        return _plain_seeds(target) | _refused(target)
    if target in ("logs", "archives"):
        first, second = ("csv", "parquet") if target == "logs" else ("posterior", "agent")
        return {f"{first}-{name}": b"0" + content for name, content in seeds(first).items()} | {
            f"{second}-{name}": b"\xff" + content for name, content in seeds(second).items()
        }
    if target == "parquet":
        return _seeds_of_parquet()
    if target == "posterior":
        return _seeds_of_archive(targets._posterior_members(), "about.npy")
    if target == "agent":
        return _seeds_of_archive(targets._agent_members(), "header.npy")
    return _plain_seeds(target)


def _plain_seeds(target: str) -> dict[str, bytes]:
    return {
        "csv": {
            "numbers": b"state,action,reward,next_state\n0,0,1.5,1\n1,1,-2e3,0\n",
            "labels": b"state,action,reward,next_state,terminated,episode\na,x,1,b,false,1\nb,y,0,,true,1\n",
        },
        "json_lines": {
            "numbers": b'{"state": 0, "action": 0, "reward": 1.5, "next_state": 1}\n',
            "labels": b'{"obs": "a", "action": "x", "reward": 1, "next_obs": null, "done": true}\n',
        },
        "tally": {
            "plain": b"state,action,next_state,terminated,n,reward_mean,reward_squares,reward_low,reward_high\n"
            b"0,0,1,false,3,0.5,0.5,0,1\n0,,,,2,,,,\n"
        },
        "policy": {
            "numbers": b"fstate,action,probability\n0,0,1\n1,1,1\n2,0,0.5\n2,1,0.5\n",
            "labels": b"lstate,action,probability\na,x,1\nb,y,1\n",
            "named": b"nalways:1",
        },
        "spec": {
            "plain": b"name: a\nsteps: 100\nruns: 2\nenvironments: [nchain]\nagents:\n  - name: bbi\n    label: B\n"
            b"    grid: {rule: [mean, optimistic]}\n  - psrl\n"
        },
    }[target]
