"""Set before JAX is imported: the device, and where compiled programs are kept.

Both go through environment variables, which the processes that Bellief starts inherit.
"""

import contextlib
import os
import tempfile
from pathlib import Path

from bellief.cli.failures import OptionError
from bellief.errors import UserError
from bellief.processors import INSIST

DEVICES = ("auto", "cpu", "gpu")
# Set to "off", compiled programs are not kept.
SWITCH = "BELLIEF_COMPILATION_CACHE"
FOLDER = "JAX_COMPILATION_CACHE_DIR"
LEAST_SECONDS = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


def take_device(arguments: list[str]) -> tuple[list[str], str]:
    """Take `--device NAME` or `--device=NAME` out of the arguments, wherever it stands; the last one counts."""
    kept: list[str] = []
    device = "auto"
    rest = iter(arguments)
    for argument in rest:
        if argument == "--device":
            device = next(rest, "")
        elif argument.startswith("--device="):
            device = argument.partition("=")[2]
        else:
            kept.append(argument)
            continue
        if device not in DEVICES:
            raise OptionError(f"--device needs one of {', '.join(DEVICES)}, not '{device}'.")
    return kept, device


def use_device(device: str) -> None:
    """Show JAX only the requested kind of device; `auto` leaves the choice to JAX."""
    if device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    elif device == "gpu":
        import jax

        with contextlib.suppress(RuntimeError):
            if jax.default_backend() == "gpu":
                os.environ[INSIST] = "gpu"
                return
        raise UserError("JAX finds no GPU here: install 'bellief[cuda]' where there is one, or leave out --device.")


def keep_compiled_programs() -> None:
    """Keep compiled programs in the user's cache folder, unless that is switched off, done already or impossible."""
    if os.environ.get(SWITCH, "").lower() in ("off", "0", "no") or os.environ.get(FOLDER):
        return
    with contextlib.suppress(OSError, RuntimeError):
        home = os.environ.get("XDG_CACHE_HOME")
        folder = (Path(home) if home else Path.home() / ".cache") / "bellief" / "compiled"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            os.environ[FOLDER] = str(folder)
            # JAX would keep only programs that took a second to compile; a short run consists of many small ones.
            os.environ.setdefault(LEAST_SECONDS, "0")
