"""Posteriors in files and in other libraries' forms. Nothing is pickled."""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from bellief.errors import UserError
from bellief.files import write_whole
from bellief.offline.posterior import ValuePosterior

FORMAT = 1
ARRAYS = ("samples", "start", "sd_exists")
PLAIN = ("method", "discount", "actions", "transitions", "diagnostics", "level")


def save(posterior: ValuePosterior, path: str | os.PathLike) -> Path:
    """Write a NumPy archive: the arrays, and everything else as JSON text."""
    path = Path(path)
    if path.suffix != ".npz":
        raise UserError(f"A posterior is saved in a file that ends in .npz, not '{path.name}'.")
    plain = {name: getattr(posterior, name) for name in PLAIN} | {"format": FORMAT}
    plain["state_labels"] = None if posterior.state_labels is None else list(posterior.state_labels)
    content = io.BytesIO()
    arrays = {name: getattr(posterior, name) for name in ARRAYS}
    text = np.frombuffer(json.dumps(plain, allow_nan=False).encode(), dtype=np.uint8)
    np.savez_compressed(content, about=text, **arrays)
    return write_whole(path, content.getvalue())


def load(path: str | os.PathLike) -> ValuePosterior:
    """Read what `save` wrote."""
    path = Path(path)
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ARRAYS}
            plain = json.loads(archive["about"].tobytes())
        if plain.pop("format") != FORMAT:
            raise UserError(f"{path} was written by a newer version of Bellief; update to read it.")
        labels = plain.pop("state_labels")
        posterior = ValuePosterior(
            **arrays, **{name: plain[name] for name in PLAIN}, state_labels=None if labels is None else tuple(labels)
        )
        _check(posterior)
        return posterior
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; give a file that ValuePosterior.save wrote.") from None
    except UserError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError, EOFError, OSError, zipfile.BadZipFile, IndexError):
        raise UserError(f"{path} is not a saved value posterior, or is damaged.") from None


def _check(posterior: ValuePosterior) -> None:
    samples, states = posterior.samples, posterior.samples.shape[1]
    whole = samples.ndim == 2 and samples.dtype.kind == "f" and posterior.start.shape == (states,)
    if not whole or posterior.sd_exists.shape != (states,) or len(posterior.state_names) != states:
        raise ValueError("shapes do not fit")


def to_arviz(posterior: ValuePosterior) -> Any:
    """The draws as one chain, with the states' names as coordinates."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # 0.23 announces 1.0 whenever it is imported
            import arviz
    except ImportError:
        raise UserError("to_arviz needs ArviZ: pip install 'bellief[data]'.") from None
    draws = {"value": posterior.samples[None], "start_value": posterior.start_samples[None]}
    names: dict[str, Any] = {"coords": {"state": list(posterior.state_names)}, "dims": {"value": ["state"]}}
    # From 1.0 on groups are a level of the dictionary; before, they were arguments.
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": draws}, **names)
    return arviz.from_dict(posterior=draws, **names)
