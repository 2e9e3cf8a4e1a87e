"""The kernel for NVIDIA GPUs, called here as plain Python, against the plain induction.

JAX can interpret such kernels too, but compiles what it interprets, which takes long for loops of a few rounds.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bellief import fast
from bellief.agents import bbi_paper, bbi_sampled, rules
from bellief.beliefs import tabular
from bellief.envs import make
from bellief.fast import gaussian_induction
from bellief.induction import method1
from bellief.mdp.tabular_mdp import TabularMDP

pytestmark = pytest.mark.long

bbi_kernel = pytest.importorskip("bellief.fast.bbi_kernel")

CONFIG = bbi_sampled.Config(horizon=2, mdps=3, samples=4, utility_samples=2)
SPACES = make("nchain").spaces()
KEY = jax.random.key(4)


class Reference:
    """What a kernel gets for an array: to be read and written in place."""

    def __init__(self, array):
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, index):
        return self.array[index]

    def __setitem__(self, index, value):
        self.array = self.array.at[index].set(value)


def call_plainly(kernel, out_shape, **_):
    def call(*arrays):
        given = [Reference(array) for array in arrays]
        wanted = [Reference(jnp.full(one.shape, -1, one.dtype)) for one in out_shape]
        with jax.disable_jit():
            kernel(*given, *wanted)
        return [one.array for one in wanted]

    return call


@pytest.fixture
def both(monkeypatch):
    """The two inductions as functions of sigma, for the same three MDPs."""
    monkeypatch.setattr(bbi_kernel.pallas, "pallas_call", call_plainly)
    keys = jax.random.split(KEY, CONFIG.mdps)
    belief = tabular.init(SPACES.states, SPACES.actions)
    mdps = jax.vmap(lambda key: tabular.sample(key, CONFIG.prior, belief, CONFIG.discount))(keys)
    final = jnp.zeros(mdps.reward.shape[:2])
    settings = CONFIG.method1_settings(SPACES.states)

    @jax.jit
    def plain(sigma):
        return bbi_paper.induce(KEY, settings, CONFIG.horizon, mdps, final, sigma, bbi_paper.mean_q)

    def kernel(sigma):
        start = method1.start(settings, final, sigma)
        step_keys = jax.vmap(lambda one: jax.random.split(one, 4))(jax.random.split(KEY, CONFIG.horizon))
        noise = jnp.stack([gaussian_induction.noise(step_keys[:, 0], settings, start, attempt) for attempt in (0, 1)])
        ties = rules.tie_breakers(step_keys[:, 2], mdps.reward.shape[1:], final.dtype)
        return bbi_kernel.run(settings, mdps, start, noise, ties, interpret=True)

    @jax.jit
    def without_repair(sigma):
        given = (KEY, settings, CONFIG.horizon, mdps, final, sigma, bbi_paper.mean_q)
        return gaussian_induction.induce_without_repair(*given)

    return plain, kernel, without_repair


@pytest.mark.parametrize(("sigma", "retries"), [(1.0, False), (1e-3, True)])
def test_kernel_is_the_plain_induction(both, sigma, retries):
    plain, kernel, _ = both
    actions, info = plain(jnp.float32(sigma))
    found = kernel(jnp.float32(sigma))
    assert (int(info.doublings) > 0) == retries
    np.testing.assert_array_equal(found.actions, actions)
    # Rounding is amplified where narrow kernels give nearly all weight to one MDP.
    tolerance = 1e-2 if retries else 1e-4
    np.testing.assert_allclose(found.mean, info.value_mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.sd, info.value_sd, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.diagnostics[0], info.effective_sample_size, rtol=tolerance)
    assert tuple(map(int, found.diagnostics[1:])) == (int(info.resamples), int(info.doublings))


@pytest.mark.parametrize(("setting", "asked"), [({}, True), ({"likelihood": "product"}, False), ({"mdps": 1}, False)])
def test_kernel_is_in_programs_for_a_gpu(setting, asked):
    """Lowered, not run: that needs no GPU."""
    config = bbi_sampled.Config(**{"horizon": 2, "mdps": 3, "samples": 4, "utility_samples": 2} | setting)
    state = bbi_sampled.init(KEY, config, SPACES)
    plan = jax.jit(lambda key, state: bbi_sampled.plan(key, config, SPACES, state))
    with fast.enabled("gpu"):
        text = plan.trace(KEY, state).lower(lowering_platforms=("cuda",)).as_text()
    assert ("triton" in text) == asked


@pytest.mark.parametrize(("sigma", "retries"), [(1.0, False), (1e-3, True)])
def test_planning_without_repair_is_the_same(both, sigma, retries):
    """What a GPU does for more states than the kernel is for, done here."""
    plain, _, without_repair = both
    wanted, found = plain(jnp.float32(sigma)), without_repair(jnp.float32(sigma))
    assert (int(found[1].doublings) > 0) == retries
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_plans_made_again_leave_others_in_the_batch_alone(both):
    """Batched with one that needs repair, as runs are."""
    plain, _, without_repair = both
    sigmas = jnp.array([1.0, 1e-3], jnp.float32)
    wanted, found = jax.vmap(plain)(sigmas), jax.vmap(without_repair)(sigmas)
    assert (found[1].doublings > 0).tolist() == [False, True]
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("states", "samples", "asked"), [(127, 20, False), (128, 20, True), (128, 100, False)])
def test_backups_are_a_kernel_in_programs_for_a_gpu(states, samples, asked):
    """Lowered, not run: that needs no GPU."""
    config = bbi_sampled.Config(horizon=1, mdps=2, samples=samples)
    spaces = SPACES._replace(states=states, support=None)
    state = jax.eval_shape(lambda: bbi_sampled.init(KEY, config, spaces))
    with fast.enabled("gpu"):
        plan = jax.jit(lambda state: bbi_sampled.plan(KEY, config, spaces, state))
        text = plan.trace(state).lower(lowering_platforms=("cuda",)).as_text()
    assert ("_kernel" in text) == asked


def test_backups_against_numpy():
    rng = np.random.default_rng(0)
    transition, reward = rng.dirichlet(np.ones(6), (3, 6, 2)), rng.normal(size=(3, 6, 2))
    actions, values = jnp.asarray([0, 1, 1, 0, 1, 0]), rng.normal(size=(4, 6))
    start = np.full(6, 1 / 6)
    mdps = TabularMDP(
        *(jnp.asarray(one, jnp.float32) for one in (transition, reward, np.zeros((3, 6, 2)), start, np.full(3, 0.9)))
    )
    found = bbi_paper.backups(mdps, actions, jnp.asarray(values, jnp.float32))
    rows = np.arange(6)
    expected = reward[:, None, rows, actions] + 0.9 * np.einsum("jst,kt->jks", transition[:, rows, actions], values)
    np.testing.assert_allclose(found, expected, atol=1e-5)
