"""Everything that exists for speed: kernels, layouts, random bits, compiler options, placement on devices.

Algorithms are written plainly and never import this package. It lists replacements for functions that they mark with
`@replaceable`; the experiment loop makes these active, and so may other code:

>>> import jax, jax.numpy as jnp
>>> from bellief import fast
>>> from bellief.values import gaussian
>>> with fast.enabled("cpu"):
...     print(gaussian.semidefinite_root(jnp.array([[4.0, 0], [0, 0]])))
[[2. 0.]
 [0. 0.]]
>>> [entry.target for entry in fast.selected("cpu") if entry.replaces.endswith("semidefinite_root")]
['bellief.fast.layouts:unrolled_root']

Two environment variables switch it off: `BELLIEF_FAST=0` all of it, `BELLIEF_KERNELS=0` only kernels written by hand.
To add a replacement, write the function in a module here and add a row to `REPLACEMENTS`; the parity test runs every
row against what it replaces (docs/guides/add-a-kernel.md). Importing this package does not import JAX.
"""

import contextlib
import functools
import importlib
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from bellief.replaceable import using

__all__ = ["REPLACEMENTS", "Replacement", "enabled", "is_on", "selected", "using_for"]


class Replacement(NamedTuple):
    """One row: what is replaced, by what (`module:function`), on which platform, and for which arguments.

    `when` gets all of the function's arguments in their order, defaults filled in. `kernel` marks code for Pallas's
    Triton backend.
    """

    replaces: str
    target: str
    platform: str | None
    when: Callable[..., bool]
    kernel: bool = False

    def load(self) -> Callable:
        """Import the replacing function."""
        module, _, name = self.target.partition(":")
        return getattr(importlib.import_module(module), name)


def _always(*_: Any, **__: Any) -> bool:
    return True


def _samples_from_noise(key, settings, *_: Any) -> bool:
    # Other value beliefs are sampled step by step, as the plain functions do.
    from bellief.induction import method1

    return hasattr(method1.BELIEFS[settings.values], "sample_with")


def _is_single(array: Any) -> bool:
    return array.dtype == "float32"


def _few_states_and_paper_settings(key, settings, horizon, mdps, final, sigma, score) -> bool:
    # For nine states the kernel would compile for 15 seconds and more.
    return (
        final.shape[1] <= 8
        and settings.samples * final.shape[0] > 2 * final.shape[1]  # the belief's factor is triangular
        and (settings.values, settings.utilities, settings.likelihood) == ("gaussian", "values", "mixture")
        and score.__name__ == "mean_q"
        and _is_single(final)
    )


# For each function the first row that applies is used. Thresholds were measured: see benchmarks/NOTES.md.
REPLACEMENTS = (
    Replacement(
        "bellief.agents.bbi_paper.induce",
        "bellief.fast.bbi_kernel:induce",
        "gpu",
        _few_states_and_paper_settings,
        kernel=True,
    ),
    Replacement(
        "bellief.agents.bbi_paper.induce",
        "bellief.fast.gaussian_induction:induce_without_repair",
        "gpu",
        _samples_from_noise,
    ),
    Replacement(
        "bellief.agents.bbi_paper.induce", "bellief.fast.gaussian_induction:induce", "cpu", _samples_from_noise
    ),
    Replacement(
        "bellief.induction.evaluate.by_method1",
        "bellief.fast.gaussian_induction:evaluate",
        None,
        _samples_from_noise,
    ),
    Replacement(
        "bellief.agents.bbi_paper.backups",
        "bellief.fast.backup_kernel:backups",
        "gpu",
        # Below, gathering the chosen rows is faster; above, the kernel's samples do not fit into registers.
        lambda mdps, actions, values: len(actions) >= 128 and len(values) <= 64 and _is_single(values),
        kernel=True,
    ),
    Replacement(
        "bellief.values.gaussian.semidefinite_root",
        "bellief.fast.layouts:unrolled_root",
        None,
        # A long elimination would only lengthen compilation.
        lambda covariance: len(covariance) <= 12,
    ),
    Replacement(
        "bellief.values.gaussian.semidefinite_root",
        "bellief.fast.root_kernel:root",
        "gpu",
        lambda covariance: 12 < len(covariance) <= 128 and _is_single(covariance),
        kernel=True,
    ),
    Replacement(
        "bellief.values.gaussian.sample_with",
        "bellief.fast.layouts:gaussian_sample_on_tensor_cores",
        "gpu",
        lambda normals, belief: _is_single(normals),
    ),
    Replacement(
        "bellief.mdp.utilities.expected",
        "bellief.fast.layouts:expected_on_tensor_cores",
        "gpu",
        lambda transition, reward, discount, later: _is_single(transition),
    ),
    Replacement(
        "bellief.agents.mmbi.induce",
        "bellief.fast.layouts:induce_few_states",
        None,
        # Written out term by term: a product of tiny matrices costs more to set up.
        lambda mdps, discount, tie_breakers: mdps.reward.shape[1] <= 12,
    ),
    Replacement("bellief.agents.stored_key.restore", "bellief.fast.random_keys:wrap", None, _always),
    Replacement("bellief.beliefs.gamma.sample_log_gamma", "bellief.fast.layouts:sample_whole_vectors", None, _always),
)


def is_on() -> bool:
    """Whether this package is switched on: it is unless `BELLIEF_FAST=0`."""
    return os.environ.get("BELLIEF_FAST") != "0"


def selected(platform: str) -> tuple[Replacement, ...]:
    """The replacements for programs that run on `cpu` or `gpu`, as the environment variables allow."""
    if not is_on():
        return ()
    kernels = platform == "gpu" and os.environ.get("BELLIEF_KERNELS") != "0" and _has_triton()
    return tuple(row for row in REPLACEMENTS if row.platform in (None, platform) and (kernels or not row.kernel))


@contextlib.contextmanager
def enabled(platform: str | None = None) -> Iterator[None]:
    """Make the replacements for a platform active, by default for the one that JAX computes on.

    A compiled function keeps what it was traced with: enter this inside of it.
    """
    if platform is None:
        import jax

        platform = jax.default_backend()
    with using_for(selected(platform)):
        yield


def using_for(replacements: tuple[Replacement, ...]) -> Any:
    """A context in which these replacements are active."""
    return using(_by_name(replacements))


@functools.cache
def _by_name(replacements: tuple[Replacement, ...]) -> Mapping[str, tuple[Replacement, ...]]:
    names = dict.fromkeys(row.replaces for row in replacements)
    return {name: tuple(row for row in replacements if row.replaces == name) for name in names}


@functools.cache
def _has_triton() -> bool:
    """Whether JAX still has the Pallas backend for Triton, which it has announced to remove."""
    warnings.filterwarnings("ignore", message="The Pallas Triton backend is deprecated", category=DeprecationWarning)
    try:
        importlib.import_module("jax.experimental.pallas.triton")
    except ImportError:
        return False
    return True
