"""Every registered replacement against the plain function that it replaces, on arguments it applies to.

Kernels for GPUs are interpreted on the CPU, or called as plain Python where interpreting would take minutes to compile.
"""

import functools
import importlib
import inspect
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import fast
from bellief.agents import bbi_paper, bbi_sampled, rules
from bellief.beliefs import tabular
from bellief.envs import make
from bellief.induction import method1
from bellief.mdp.tabular_mdp import TabularMDP
from bellief.replaceable import replaceable
from bellief.values import gaussian
from fast.test_bbi_kernel import call_plainly

pytestmark = pytest.mark.long

KEY = jax.random.key(3)
RNG = np.random.default_rng(0)


def single(*shape):
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


def random_mdps(states, actions, count):
    rows = jnp.asarray(RNG.dirichlet(np.ones(states), (count, states, actions)), jnp.float32)
    reward, start = single(count, states, actions), jnp.full((count, states), 1 / states)
    return TabularMDP(rows, reward, jnp.zeros_like(reward), start, jnp.full(count, 0.9))


def nchain_mdps(config):
    spaces = make("nchain").spaces()
    belief = tabular.init(spaces.states, spaces.actions)
    return jax.vmap(lambda key: tabular.sample(key, config.prior, belief, config.discount))(
        jax.random.split(KEY, config.mdps)
    )


def induction(rule="mean", sigma=1.0, states=5, **settings):
    config = bbi_sampled.Config(
        horizon=2, mdps=2, samples=6, utility_samples=2, rule=rule, values="gaussian", **settings
    )
    mdps = nchain_mdps(config) if states == 5 else random_mdps(states, 2, 2)
    final = jnp.zeros(mdps.reward.shape[:2])
    return KEY, config.method1_settings(states), 2, mdps, final, jnp.float32(sigma), bbi_sampled.gaussian_score(config)


def singular(states):
    half = RNG.normal(size=(3, states))
    return jnp.asarray(half.T @ half, jnp.float32)


def evaluation(values, **settings):
    mdps = random_mdps(4, 2, 3)
    chosen = method1.Settings(values=values, samples=6, utility_samples=2, **settings)
    return KEY, chosen, mdps, jnp.full((4, 2), 0.5), 4, jnp.float32(20.0), "zero"


def ties(states, horizon=5):
    return rules.tie_breakers(jax.random.split(KEY, horizon), (states, 2), jnp.float32)


# Arguments by the name of what is replaced; every replacement must apply to at least one of them.
CASES = {
    "bellief.agents.bbi_paper.induce": [
        induction(),
        induction(sigma=1e-3),
        induction(rule="thompson"),
        induction(rule="optimistic", states=9, likelihood="product"),
        induction(states=9, utilities="sampled"),
    ],
    "bellief.induction.evaluate.by_method1": [
        evaluation("gaussian"),
        evaluation("histogram", utilities="expected"),
        evaluation("gaussian", sigma_fraction=1e-6),
    ],
    "bellief.agents.bbi_paper.backups": [
        (random_mdps(130, 2, 2), jnp.asarray(RNG.integers(0, 2, 130), jnp.int32), single(5, 130)),
    ],
    "bellief.values.gaussian.semidefinite_root": [(singular(states),) for states in (1, 5, 12, 20)],
    "bellief.values.gaussian.sample_with": [(single(6 * 4), gaussian.Gaussian(single(7), single(4, 7)))],
    "bellief.mdp.utilities.expected": [
        (random_mdps(6, 1, 1).transition[0, :, 0], single(6), jnp.float32(0.9), single(3, 6))
    ],
    "bellief.agents.mmbi.induce": [(random_mdps(states, 2, 3), 0.9, ties(states)) for states in (4, 12)],
    "bellief.agents.stored_key.restore": [(jax.random.key_data(KEY),)],
    "bellief.beliefs.gamma.sample_log_gamma": [
        (KEY, jnp.asarray(RNG.gamma(0.5, 3.0, shape), jnp.float32)) for shape in ((5, 2, 5), (3,), (8,))
    ],
}
EXACT = ("restore", "sample_whole_vectors")


@pytest.fixture
def without_gpu(monkeypatch):
    """Kernels run here: small ones interpreted by JAX, the induction's as plain Python."""
    for name in dict.fromkeys(row.target.partition(":")[0] for row in fast.REPLACEMENTS if row.kernel):
        module = importlib.import_module(name)
        name = name.removeprefix("bellief.fast.")
        call = call_plainly if name == "bbi_kernel" else functools.partial(module.pallas.pallas_call, interpret=True)
        dropped = ("compiler_params",) if name == "bbi_kernel" else ()

        def run(*arguments, call=call, dropped=dropped, **options):
            options = {name: value for name, value in options.items() if name not in (*dropped, "interpret")}
            return call(*arguments, **options)

        patched = {**vars(module.pallas), "pallas_call": run}
        monkeypatch.setattr(module, "pallas", SimpleNamespace(**patched))
        if hasattr(module, "TENSOR_CORES"):
            monkeypatch.setattr(module, "TENSOR_CORES", None)
    monkeypatch.setattr("bellief.fast.layouts.TENSOR_CORES", None)
    triton = importlib.import_module("bellief.fast.bbi_kernel").triton
    monkeypatch.setattr(triton, "debug_barrier", lambda: None)


def plain_of(name):
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(module), function)
    assert hasattr(found, "plain"), f"{name} is not marked with @replaceable"
    return found


def filled(function, case):
    """All arguments of a call, as replacements get them."""
    given = inspect.signature(function).bind(*case)
    given.apply_defaults()
    return given.args


def chosen(row, case):
    """Whether a program for the row's platform uses this row, and none before it, for these arguments."""
    platforms = ("cpu", "gpu") if row.platform is None else (row.platform,)
    rows = [other for other in fast.REPLACEMENTS if other.replaces == row.replaces and other.when(*case)]
    return any(next((one for one in rows if one.platform in (None, platform)), None) is row for platform in platforms)


def comparable(tree):
    return [
        np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)
        for leaf in jax.tree.leaves(tree)
    ]


@pytest.mark.usefixtures("without_gpu")
@pytest.mark.parametrize("row", fast.REPLACEMENTS, ids=lambda row: row.target.removeprefix("bellief.fast."))
def test_replacement_computes_what_it_replaces(row):
    function = plain_of(row.replaces)
    assert function.name == row.replaces
    cases = [
        case for case in (filled(function.plain, case) for case in CASES.get(row.replaces, [])) if chosen(row, case)
    ]
    assert cases, f"add arguments to CASES['{row.replaces}'] for which {row.target} is the first row that applies"
    for case in cases:
        wanted = comparable(jax.jit(lambda case=case: function.plain(*case))())
        # The induction's kernel is called as plain Python, which must not be traced.
        compiled = jax.jit if "bbi_kernel" not in row.target else (lambda function: function)
        found = comparable(compiled(lambda case=case: row.load()(*case))())
        repaired = row.replaces.endswith("induce") and len(case) == 7 and case[5] < 1
        # Rounding is amplified where narrow likelihoods give nearly all weight to one MDP.
        tolerance = 0 if row.target.endswith(EXACT) else 1e-2 if repaired else 2e-4
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_every_row_refers_to_a_replaceable_function():
    assert {row.replaces for row in fast.REPLACEMENTS} == set(CASES)
    assert {row.platform for row in fast.REPLACEMENTS} <= {None, "cpu", "gpu"}


@pytest.mark.parametrize("row", fast.REPLACEMENTS, ids=lambda row: row.target.removeprefix("bellief.fast."))
def test_conditions_and_replacements_take_all_arguments(row):
    arguments = inspect.signature(plain_of(row.replaces).plain).parameters
    for function in (row.when, row.load()):
        inspect.signature(function).bind(*arguments)


def test_conditions_see_defaults_and_names_in_order():
    seen = []

    @replaceable
    def scaled(number, factor=2):
        return number * factor

    row = fast.Replacement(scaled.name, "math:prod", None, lambda number, factor: seen.append((number, factor)))
    with fast.using_for((row,)):
        assert [scaled(3), scaled(factor=5, number=3)] == [6, 15]
    assert seen == [(3, 2), (3, 5)]


def test_value_beliefs_without_noise_are_sampled_step_by_step(monkeypatch):
    without = SimpleNamespace(**{name: getattr(gaussian, name) for name in ("fit", "sample", "mean", "sd")})
    monkeypatch.setitem(method1.BELIEFS, "without", without)
    case, same = evaluation("without"), evaluation("gaussian")
    function = plain_of("bellief.induction.evaluate.by_method1")
    with fast.enabled("cpu"):
        found, wanted = function(*case[:2], *same[2:]), function(*same)
    np.testing.assert_allclose(found.belief.belief.mean, wanted.belief.belief.mean, rtol=2e-4)


def test_replacements_are_used_only_where_enabled(monkeypatch):
    covariance = singular(5)
    seen = []
    monkeypatch.setattr("bellief.fast.layouts.unrolled_root", lambda one: seen.append(one) or one)
    gaussian.semidefinite_root(covariance)
    assert not seen
    with fast.enabled("cpu"):
        gaussian.semidefinite_root(covariance)
    assert len(seen) == 1
    gaussian.semidefinite_root(covariance)
    assert len(seen) == 1


def test_one_switch_turns_everything_off(monkeypatch):
    assert fast.selected("cpu")
    monkeypatch.setenv("BELLIEF_FAST", "0")
    assert fast.selected("cpu") == fast.selected("gpu") == ()


def test_kernels_can_be_switched_off_alone(monkeypatch):
    assert any(row.kernel for row in fast.selected("gpu"))
    assert not any(row.kernel for row in fast.selected("cpu"))
    monkeypatch.setenv("BELLIEF_KERNELS", "0")
    assert fast.selected("gpu")
    assert not any(row.kernel for row in fast.selected("gpu"))


def test_plain_pages_agree_with_the_loop():
    """A short run with and without replacements: the same actions, so the same rewards."""
    import bellief

    settings = {"horizon": 5, "mdps": 3, "samples": 4, "utility_samples": 2}
    quick = bellief.run("nchain", "bbi-paper", 60, 2, settings=settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELLIEF_FAST", "0")
        slow = bellief.run("nchain", "bbi-paper", 60, 2, settings=settings)
    np.testing.assert_array_equal(slow.total, quick.total)
    np.testing.assert_array_equal(slow.policies, quick.policies)


assert bbi_paper.mean_q.__name__ == "mean_q", "the kernel's condition looks for this name"
