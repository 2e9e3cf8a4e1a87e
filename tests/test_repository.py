"""The repository itself: a lock file that works anywhere, one version number, nothing that belongs to one machine."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "lock.txt"

# Put together from pieces, so that this file does not contain what it looks for.
MACHINE_PATHS = tuple(
    re.compile(rf"(?<![\w.~$}})/-])/{folder}/".encode()) for folder in ("work", "root", r"home/\w+", r"Users/\w+")
)
SKIPPED_FOLDERS = {".git", "node_modules", "__pycache__", "_build", "runs", "bellief-demo", "build", "dist"}


def tracked_files():
    """Files known to git, new ones too unless ignored; without git, those in folders that are not made by tools."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
        )
        if listing.returncode == 0:
            paths = [ROOT / os.fsdecode(name) for name in listing.stdout.split(b"\0") if name]
            return [path for path in paths if path.is_file()]
    found = []
    for folder, folders, names in os.walk(ROOT):
        hidden_tools = {name for name in folders if name.startswith(".") and name != ".ci"}
        environments = {name for name in folders if (Path(folder) / name / "pyvenv.cfg").exists()}
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS - hidden_tools - environments)
        found += [Path(folder) / name for name in names]
    return found


def lock_requirements():
    """The lock file's requirements, each with its continuation lines joined to it and comments left out."""
    lines = [line for line in LOCK.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip()]


@pytest.mark.parametrize("address", ["://", "file:", " @ ", "--index-url", "--find-links", "--trusted-host"])
def test_lock_has_no_addresses(address):
    assert address not in LOCK.read_text()


def test_lock_pins_and_hashes_every_requirement():
    requirements = lock_requirements()
    assert len(requirements) > 20
    for requirement in requirements:
        assert re.match(r"[a-z0-9][a-z0-9._-]*==\S+\s", requirement), f"not pinned: {requirement[:80]}"
        assert re.search(r"--hash=sha256:[0-9a-f]{64}(\s|$)", requirement), f"no hash: {requirement[:80]}"


def test_lock_holds_every_direct_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = list(project["dependencies"])
    for extra in ("nn", "ray", "tensorboard", "app", "test", "docs", "dev"):
        wanted += extras[extra]
    names = {re.match(r"[A-Za-z0-9._-]+", requirement).group().lower() for requirement in wanted}
    locked = {requirement.partition("==")[0] for requirement in lock_requirements()}
    assert names <= locked, f"run `make lock`: {sorted(names - locked)}"


def test_citation_has_the_version_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    assert cited is not None
    assert cited.group(1) == project["version"]


def test_changelog_has_an_entry_for_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize(
    "text", [b"see /" + b"work/x", b'"/' + b'home/me/data"', b"(/" + b"root/x)", b"/" + b"Users/me/x"]
)
def test_machine_paths_are_recognised(text):
    assert any(pattern.search(text) for pattern in MACHINE_PATHS)


def test_no_file_names_a_path_of_one_machine():
    files = tracked_files()
    assert LOCK in files
    offenders = [
        str(path.relative_to(ROOT))
        for path in files
        if any(pattern.search(path.read_bytes()) for pattern in MACHINE_PATHS)
    ]
    assert offenders == []


def test_diagram_of_the_layers_is_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "Layers")
    page = (ROOT / "docs" / "architecture.md").read_text()
    drawn = re.search(r"```text\n(.*?)```", page, re.S).group(1).splitlines()
    assert [line.split() for line in drawn] == [re.findall(r"bellief\.(\w+)", layer) for layer in layers]


def test_lines_of_the_mutation_sample_are_where_they_were():
    done = subprocess.run([sys.executable, ROOT / "tools" / "mutate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def promised_tests():
    """Tests that the page on hardening names, as file and function."""
    text = (ROOT / "docs" / "results" / "hardening.md").read_text()
    return sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)))


def test_tests_that_the_documentation_names_are_there():
    found = promised_tests()
    assert len(found) > 20
    for path, name in found:
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path} has no {name}"


def test_every_promise_on_reliability_is_in_the_readme():
    """The table of promises quotes the README; who changes a sentence there looks for its test here."""
    table = (ROOT / "docs" / "results" / "hardening.md").read_text().partition("## What the README promises")[2]
    readme = " ".join((ROOT / "README.md").read_text().replace("*", "").split())
    sentences = [line.split("|")[1].strip() for line in table.splitlines() if "`tests/" in line]
    assert len(sentences) >= 4
    for sentence in sentences:
        assert sentence in readme, f"the README does not say '{sentence}'"
