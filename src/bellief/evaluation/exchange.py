"""Posteriors in files and as objects of other libraries. Nothing is pickled."""

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from bellief.errors import UserError
from bellief.evaluation.posterior import ValuePosterior
from bellief.evaluation.start_law import StartLaw
from bellief.files import read_archive, write_whole

FORMAT = 1
ARRAYS = ("samples", "start", "sd_exists")
OPTIONAL = ("start_draws", "ends")
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
    arrays |= {name: getattr(posterior, name) for name in OPTIONAL if getattr(posterior, name) is not None}
    law = posterior.start_law
    if law is not None:
        arrays["start_law"] = np.stack([law.points, law.errors, np.full(len(law.points), law.mean_error)])
    text = np.frombuffer(json.dumps(plain, allow_nan=False).encode(), dtype=np.uint8)
    np.savez_compressed(content, about=text, **arrays)
    return write_whole(path, content.getvalue())


def load(path: str | os.PathLike) -> ValuePosterior:
    """Read what `save` wrote."""
    path = Path(path)
    damaged = UserError(f"{path} is not a saved value posterior, or is damaged.")
    try:
        arrays = read_archive(path.read_bytes())
        plain = json.loads(arrays["about"].tobytes())
        if plain.pop("format") != FORMAT:
            raise UserError(f"{path} was written by a newer version of Bellief; update to read it.")
        kept: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
        kept |= {name: arrays.get(name) for name in OPTIONAL} | {"start_law": _read_law(arrays.get("start_law"))}
        return _build(kept, plain)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; give a file that ValuePosterior.save wrote.") from None
    except UserError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError, OSError, RecursionError):
        raise damaged from None


def _build(arrays: dict[str, Any], plain: dict[str, Any]) -> ValuePosterior:
    """The posterior, if every part has the type and shape that summaries and sentences need; else an error."""
    samples, start, labels = arrays["samples"], arrays["start"], plain["state_labels"]
    states = samples.shape[1]
    kinds = {"method": str, "discount": int | float, "actions": int, "transitions": int, "diagnostics": dict}
    if (
        samples.ndim != 2
        or len(samples) == 0
        or [array.dtype.kind for array in (samples, start, arrays["sd_exists"])] != ["f", "f", "b"]
        or start.shape != (states,)
        or arrays["sd_exists"].shape != (states,)
        or not _is_array(arrays["start_draws"], "f", len(samples))
        or not _is_array(arrays["ends"], "b", states)
        or not all(isinstance(plain[name], kind) for name, kind in kinds.items())
        or not isinstance(plain["level"], float)
        or not 0 < plain["level"] < 1
        or (labels is not None and (len(labels) != states or not all(isinstance(label, str) for label in labels)))
    ):
        raise ValueError("parts do not fit together")
    known = {name: plain[name] for name in PLAIN}
    posterior = ValuePosterior(**arrays, **known, state_labels=None if labels is None else tuple(labels))
    posterior.explain()  # fails where the diagnostics are not what `evaluate` writes
    return posterior


def _read_law(table: Any) -> StartLaw | None:
    if table is None:
        return None
    if table.dtype.kind != "f" or table.ndim != 2 or len(table) != 3 or table.shape[1] == 0:
        raise ValueError("not a law")
    return StartLaw(table[0], table[1], float(table[2, 0]))


def _is_array(values: Any, kind: str, count: int) -> bool:
    return values is None or (values.dtype.kind == kind and values.shape == (count,))


def to_arviz(posterior: ValuePosterior) -> Any:
    """The draws as one chain, with the states' names as coordinates."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # 0.23 announces 1.0 whenever it is imported
            import arviz
    except ImportError:
        raise UserError("to_arviz needs ArviZ: pip install 'bellief[data]'.") from None
    listed, names_of = posterior.listed, posterior.state_names
    draws = {"value": posterior.samples[None][..., listed], "start_value": posterior.start_samples[None]}
    names: dict[str, Any] = {"coords": {"state": [names_of[state] for state in listed]}, "dims": {"value": ["state"]}}
    # From 1.0 on groups are a level of the dictionary; before, they were arguments.
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": draws}, **names)
    return arviz.from_dict(posterior=draws, **names)
