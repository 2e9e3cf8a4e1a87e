"""Fixtures shared by the tests of the numerical layers. Oracles are written in NumPy and share no code with Bellief."""

import contextlib
import ctypes
import gc
import resource
import signal
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy import stats

from bellief.mdp.tabular_mdp import TabularMDP

# Chance that a correct program fails one statistical comparison.
FALSE_FAILURE = 1e-5


def pytest_addoption(parser):
    parser.addoption(
        "--statistics-seed", type=int, default=0, help="seed of the statistical tests, to try them on other keys"
    )


# Compiled programs stay in memory; beyond these limits they are dropped, at the end of a file and after a test.
MOST_RESIDENT = 600 * 2**20
MOST_WITHIN_FILE = 1200 * 2**20


def pytest_configure(config):
    """Compiled programs are shared by the workers and kept for the next session, unless a folder was chosen."""
    # A shell that starts a command in the background makes it, and all that it starts, deaf to interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if jax.config.jax_compilation_cache_dir is None and getattr(config, "cache", None) is not None:
        jax.config.update("jax_compilation_cache_dir", str(config.cache.mkdir("jax-programs")))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def resident():
    """Bytes of memory in use now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def drop_programs(most):
    """Drop what is compiled if more memory than that is in use, and give the freed memory back to the system."""
    if resident() > most:
        jax.clear_caches()
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):  # other C libraries than GNU's have no such function
            ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(autouse=True, scope="module")
def bounded_memory():
    """A worker's memory does not grow with the number of files."""
    yield
    drop_programs(MOST_RESIDENT)


@pytest.fixture(autouse=True)
def bounded_memory_within_file(bounded_memory):
    """Nor beyond measure within one."""
    yield
    drop_programs(MOST_WITHIN_FILE)


@pytest.fixture
def key(request):
    """Root key of a statistical test."""
    return jax.random.key(request.config.getoption("--statistics-seed"))


@pytest.fixture
def double():
    """Double precision, for oracles that should agree to rounding."""
    with jax.enable_x64(True):
        yield


def random_mdp(seed, states, actions, ends=0.0, discount=0.9, count=None):
    """A random MDP in float64, or `count` of them along a leading axis; pairs end with probability up to `ends`."""
    generator = np.random.default_rng(seed)
    batch = () if count is None else (count,)
    termination = ends * generator.random((*batch, states, actions))
    transition = generator.dirichlet(np.full(states, 0.7), (*batch, states, actions))
    return TabularMDP(
        transition=transition * (1 - termination)[..., None],
        reward=generator.normal(size=(*batch, states, actions)),
        termination=termination,
        start=np.broadcast_to(generator.dirichlet(np.ones(states)), (*batch, states)),
        discount=np.full(batch, discount),
    )


def random_policy(seed, states, actions):
    """Random action probabilities."""
    return np.random.default_rng(1000 + seed).dirichlet(np.ones(actions), states)


def chain_of(mdp, policy):
    """Transition matrix and reward under a policy, by loops over a single MDP."""
    states, actions = policy.shape
    transition, reward = np.zeros((states, states)), np.zeros(states)
    for state in range(states):
        for action in range(actions):
            reward[state] += policy[state, action] * mdp.reward[state, action]
            for after in range(states):
                transition[state, after] += policy[state, action] * mdp.transition[state, action, after]
    return transition, reward


def exact_values(mdp, policy):
    """Infinite-horizon values of a policy."""
    transition, reward = chain_of(mdp, policy)
    return np.linalg.solve(np.eye(len(reward)) - mdp.discount * transition, reward)


def finite_values(mdp, policy, horizon):
    """Values of `horizon` steps of a policy."""
    transition, reward = chain_of(mdp, policy)
    values = np.zeros(len(reward))
    for _ in range(horizon):
        values = reward + mdp.discount * transition @ values
    return values


def one_of(mdps, index):
    """MDP number `index` of a batch."""
    return TabularMDP(*(None if field is None else np.asarray(field)[index] for field in mdps))


@pytest.fixture(scope="session")
def oracle():
    """The functions above."""
    return SimpleNamespace(
        chain_of=chain_of,
        exact_values=exact_values,
        finite_values=finite_values,
        one_of=one_of,
        random_mdp=random_mdp,
        random_policy=random_policy,
    )


def assert_same_law(draws, distribution):
    """Kolmogorov-Smirnov test of draws against a SciPy distribution."""
    assert np.isfinite(draws).all()
    assert stats.kstest(np.asarray(draws, np.float64), distribution.cdf).pvalue > FALSE_FAILURE


def assert_same_laws(first, second):
    """Kolmogorov-Smirnov test of two sets of draws."""
    assert stats.ks_2samp(np.asarray(first, np.float64), np.asarray(second, np.float64)).pvalue > FALSE_FAILURE


def assert_mean(draws, expected, slack=0.0):
    """Means of independent draws along the first axis, with a tolerance from their own standard errors.

    The rate is shared by all the means that are compared at once; Student's quantile allows for few draws.
    """
    draws, expected = np.asarray(draws, np.float64), np.asarray(expected, np.float64)
    assert draws.shape[1:] == expected.shape
    error = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    reach = stats.t.isf(FALSE_FAILURE / 2 / max(expected.size, 1), len(draws) - 1)
    difference = np.abs(np.mean(draws, axis=0) - expected)
    assert (difference <= reach * error + slack).all(), f"{difference} beyond {reach} standard errors of {error}"


def assert_frequencies(counts, probabilities):
    """Chi-square test of counts; outcomes of probability zero must not occur."""
    counts, probabilities = np.asarray(counts), np.asarray(probabilities, np.float64)
    assert (counts[probabilities == 0] == 0).all()
    possible = probabilities > 0
    expected = probabilities[possible] / probabilities.sum() * counts.sum()
    assert possible.sum() == 1 or stats.chisquare(counts[possible], expected).pvalue > FALSE_FAILURE


@pytest.fixture(scope="session")
def check():
    """Statistical comparisons, each with a false-failure rate of about 1e-5."""
    return SimpleNamespace(
        frequencies=assert_frequencies, mean=assert_mean, same_law=assert_same_law, same_laws=assert_same_laws
    )
