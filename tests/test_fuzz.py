"""What the fuzzers found, and the inputs they keep: every target ends quietly or with the declared error."""

import importlib
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from bellief import UserError, load_agent
from bellief.evaluation.posterior import ValuePosterior
from bellief.files import DamagedArchive, read_archive

FUZZ = Path(__file__).parents[1] / "fuzz"


def load(name):
    sys.path.insert(0, str(FUZZ))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FUZZ))


@pytest.fixture(scope="module")
def targets():
    if not FUZZ.is_dir():
        pytest.skip("the fuzzers are not in a source distribution")
    return load("targets")


@pytest.mark.parametrize(
    "name",
    [
        "csv", "parquet", "json_lines", "tally", "folded", "query", "policy", "spec", "posterior", "agent", "logs",
        "archives",
    ],
)  # fmt: skip
def test_seeds_and_corpus(targets, name):
    for content in load("seeds").seeds(name).values():
        targets.TARGETS[name](content)
    for file in sorted((FUZZ / "corpus" / name).glob("*")):
        targets.TARGETS[name](file.read_bytes())


def with_header(members, member, change):
    """A saved file with its JSON header changed."""
    arrays = {name.removesuffix(".npy"): np.load(io.BytesIO(content)) for name, content in members.items()}
    header = json.loads(arrays[member].tobytes())
    change(header)
    arrays[member] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(agent=3),
        lambda header: header.update(spaces=[1, 2]),
        lambda header: header.update(spaces=["3", 2, False, 0.0, 1.0, None]),
        lambda header: header.update(spaces=[0, 2, False, 0.0, 1.0, None]),
        lambda header: header.update(config=[]),
        lambda header: header["leaves"][0].pop("shape"),
        lambda header: header["leaves"][0].update(name=[]),
        lambda header: header["config"].update(discount={"number": []}),
        lambda header: header["config"].update(prior="heavy"),
    ],
)
def test_headers_of_agents(targets, tmp_path, change):
    path = tmp_path / "agent.npz"
    path.write_bytes(with_header(targets._agent_members(), "header", lambda header: None))
    load_agent(path)
    path.write_bytes(with_header(targets._agent_members(), "header", change))
    with pytest.raises(UserError, match=r"agent\.npz"):
        load_agent(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about.update(level=2),
        lambda about: about.update(discount="0.9"),
        lambda about: about.update(method=None),
        lambda about: about.update(diagnostics=[]),
        lambda about: about.update(diagnostics={"effective_sample_size": 1.0}),
        lambda about: about.update(diagnostics={"warnings": 3}),
        lambda about: about.update(state_labels=[1, 2, 3]),
    ],
)
def test_headers_of_posteriors(targets, tmp_path, change):
    path = tmp_path / "posterior.npz"
    path.write_bytes(with_header(targets._posterior_members(), "about", lambda about: None))
    ValuePosterior.load(path)
    path.write_bytes(with_header(targets._posterior_members(), "about", change))
    with pytest.raises(UserError, match="is not a saved value posterior, or is damaged"):
        ValuePosterior.load(path)


def test_a_posterior_without_dimensions(targets, tmp_path):
    content = io.BytesIO()
    members = {
        name.removesuffix(".npy"): np.load(io.BytesIO(one)) for name, one in targets._posterior_members().items()
    }
    np.savez(content, **(members | {"samples": np.float64(1.0)}))
    (tmp_path / "posterior.npz").write_bytes(content.getvalue())
    with pytest.raises(UserError, match="is not a saved value posterior, or is damaged"):
        ValuePosterior.load(tmp_path / "posterior.npz")


def archive(**members):
    import zipfile

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, member in members.items():
            file.writestr(f"{name}.npy", member)
    return content.getvalue()


def array_header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "member",
    [
        b"",
        b"no array at all",  # NumPy hands such a member out as bytes
        array_header(b"{'descr': '|b1', 'fortran_order : False, ("),  # the tokeniser's own error
        array_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"),  # no such memory
        array_header(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }") + b"cos\nsystem\n(S'true'\ntR.",
    ],
)
def test_archives(member):
    with pytest.raises(DamagedArchive):
        read_archive(archive(header=member))


class Dangerous:
    def __reduce__(self):
        return Path.touch, (Path("executed"),)


def test_pickles_are_not_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arrays = {
        name: np.array([Dangerous()], dtype=object) for name in ("samples", "start", "sd_exists", "about", "header")
    }
    np.savez(tmp_path / "trap.npz", **arrays)
    with pytest.raises(UserError):
        ValuePosterior.load(tmp_path / "trap.npz")
    with pytest.raises(UserError):
        load_agent(tmp_path / "trap.npz")
    assert not Path("executed").exists()
    np.load(tmp_path / "trap.npz", allow_pickle=True)["about"]  # the trap does work
    assert Path("executed").exists()


def test_nothing_on_the_load_path_can_pickle():
    """Words that would bring code out of a file; comments and sentences that mention pickle are fine."""
    forbidden = re.compile(
        r"import (pickle|dill|cloudpickle|joblib|shelve|marshal)|allow_pickle=True|read_pickle"
        r"|yaml\.(unsafe_load|full_load)|yaml\.load\((?!text, Loader=_Loader)"
        r"|np\.load\((?!io\.BytesIO\(content\), allow_pickle=False\))|\beval\(|\bexec\("
    )
    found = [
        f"{file.name}: {match.group()}"
        for file in (FUZZ.parent / "src" / "bellief").rglob("*.py")
        for match in forbidden.finditer(file.read_text())
    ]
    assert found == []
