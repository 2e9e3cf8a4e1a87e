"""Is this installation sound? Versions, devices, folders, and a short test of correctness and speed."""

import importlib.metadata
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SUPPORTED = ((3, 11), (3, 15))
# Seconds for 100,000 steps of PSRL on NChain, once compiled. An idle laptop takes a tenth of one second.
SLOW_RUN = 20.0


class Check(NamedTuple):
    """One thing looked at. `ok` is None where there is nothing to judge; `advice` says what to do about a problem."""

    name: str
    ok: bool | None
    found: str
    advice: str | None = None


def diagnose() -> list[Check]:
    """Look at everything. A check that fails does not stop those after it."""
    checks = [_python(), *_requirements(), _machine(), _scratch(), _pictures(), _compilation_cache()]
    for examine in (_devices, _correctness, _speed):
        try:
            checks.append(examine())
        except Exception as error:
            name = examine.__name__.strip("_")
            checks.append(Check(name, False, f"{type(error).__name__}: {error}", "Install Bellief again."))
    return checks


def _python() -> Check:
    low, high = (".".join(map(str, version)) for version in SUPPORTED)
    fine = SUPPORTED[0] <= sys.version_info[:2] < SUPPORTED[1]
    advice = None if fine else f"Use Python {low} or newer, below {high}."
    return Check("Python", fine, platform.python_version(), advice)


def _requirements() -> list[Check]:
    """Every package that Bellief needs, and whether its version will do."""
    from packaging.requirements import Requirement

    try:
        lines = importlib.metadata.requires("bellief") or []
        checks = [Check("Bellief", True, importlib.metadata.version("bellief"))]
    except importlib.metadata.PackageNotFoundError:
        advice = "Install it with 'pip install .' in its source folder."
        return [Check("Bellief", False, "running from a folder, not installed", advice)]
    for requirement in map(Requirement, lines):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            checks.append(Check(requirement.name, False, "missing", f"Run 'pip install \"{requirement}\"'."))
            continue
        fine = requirement.specifier.contains(version, prereleases=True)
        remedy = None if fine else f"Run 'pip install \"{requirement}\"'."
        checks.append(Check(requirement.name, fine, version, remedy))
    return checks


def _machine() -> Check:
    from bellief.sweeps.machine import hardware

    found = hardware()
    memory = f", {found['memory_gib']:.0f} GiB of memory" if found["memory_gib"] else ""
    return Check("machine", None, f"{platform.system()} {found['machine']}, {found['cores']} cores{memory}")


def _writable(folder: Path) -> str | None:
    """Why nothing can be written there, or None."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _scratch() -> Check:
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:
        return Check("temporary files", False, "no folder can be written", "Name a folder in TMPDIR.")
    return Check("temporary files", True, folder)


def _pictures() -> Check:
    named = os.environ.get("MPLCONFIGDIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(named) if named else home / "matplotlib"
    reason = _writable(folder)
    if reason is None:
        return Check("matplotlib's cache", True, str(folder))
    # Nothing is broken without it.
    found = f"{folder}: {reason}; pictures start slowly, unless MPLCONFIGDIR names a folder that can be written"
    return Check("matplotlib's cache", None, found)


def _compilation_cache() -> Check:
    folder = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    if not folder:
        found = "not used: switched off, or the cache folder cannot be written; every start compiles again"
        return Check("compilation cache", None, found)
    reason = _writable(Path(folder))
    advice = None if reason is None else "Name a writable folder in JAX_COMPILATION_CACHE_DIR, or unset it."
    return Check("compilation cache", reason is None, folder if reason is None else f"{folder}: {reason}", advice)


def _devices() -> Check:
    import jax

    devices = ", ".join(str(device) for device in jax.devices())
    precision = "double" if jax.config.read("jax_enable_x64") else "single"
    return Check("devices", True, f"{jax.default_backend()} ({devices}), {precision} precision")


def _correctness() -> Check:
    """Sampled values of a known chain against the exact solution, within six standard errors."""
    import jax
    import jax.numpy as jnp

    import bellief
    from bellief.beliefs import tabular
    from bellief.mdp import bellman

    environment = bellief.make("nchain")
    known = jax.tree.map(jnp.asarray, environment.mdp(discount=0.9))
    policy = jnp.full((5, 2), 0.5)
    exact = bellman.evaluate_exact(known, policy)
    residual = float(jnp.max(jnp.abs(bellman.evaluate_finite(known, policy, 200) - exact)))
    belief = tabular.init(5, 2, False)
    draw = jax.vmap(lambda key: tabular.sample(key, tabular.PAPER_PRIOR, belief, 0.9).transition[0, 0, 0])
    draws = jax.jit(draw)(jax.random.split(jax.random.key(0), 4000))
    # A component of Dirichlet(1/2, ..., 1/2) with five of them: mean 0.2, variance 0.2 * 0.8 / 3.5.
    off = abs(float(draws.mean()) - 0.2) / (0.2 * 0.8 / 3.5 / 4000) ** 0.5
    fine = residual < 1e-3 and off < 6
    found = f"two solvers differ by {residual:.1e}; sampled mean is {off:.1f} standard errors off"
    return Check("correctness", fine, found, None if fine else "Please report this, with the versions above.")


def _speed() -> Check:
    """How long 100,000 steps of posterior sampling take once compiled."""
    import bellief

    bellief.run("nchain", "psrl-paper", steps=200, runs=1)
    began = time.perf_counter()
    bellief.run("nchain", "psrl-paper", steps=100_000, runs=1, seed=1)
    seconds = time.perf_counter() - began
    fine = seconds < SLOW_RUN
    advice = "The machine may be busy; if it is not, see whether JAX uses the device you expect."
    return Check("speed", fine, f"100,000 steps of PSRL on NChain in {seconds:.2f} s", None if fine else advice)
