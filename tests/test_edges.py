"""The edges: very many visits, long sums, no discount, no spread, the smallest and the largest problems, threads."""

import concurrent.futures
import dataclasses
import socket

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bellief
from bellief.beliefs import dirichlet, normal_gamma, tabular
from bellief.experiments import compiled_environments, compiled_loop, compiled_steps, event_loop
from bellief.mdp.tabular_mdp import make_outcomes
from bellief.types import Spaces, Transition


def test_counts_are_exact_beyond_the_integers_of_float32():
    belief = tabular.init(2, 1)
    rewards = belief.rewards._replace(count=jnp.full((2, 1), 2**25, jnp.int32))
    belief = tabular.TabularBelief(belief.counts.at[0, 0, 1].set(2**25), rewards)
    seen = Transition(*(jnp.asarray(part) for part in (0, 0, np.float32(1), 1, False)))
    step = jax.jit(tabular.update)
    for _ in range(3):
        belief = step(belief, seen)
    batch = Transition(*(jnp.stack([part] * 5) for part in seen))
    belief = jax.jit(tabular.update_batch)(belief, batch)
    assert int(belief.counts[0, 0, 1]) == 2**25 + 8
    assert int(belief.rewards.count[0, 0]) == 2**25 + 8
    assert np.float32(2**25) + np.float32(1) == np.float32(2**25)  # what a float would have done
    row = np.asarray(dirichlet.mean(0.5, belief.counts))[0, 0]
    np.testing.assert_allclose(row.sum(), 1, rtol=1e-6)
    assert 0 < row[0] < 1e-7


class Still:
    """Acts always the same and learns nothing."""

    @dataclasses.dataclass(frozen=True)
    class Config:
        pass

    init = staticmethod(lambda key, config, spaces: jnp.array(0, jnp.int32))
    plan = staticmethod(lambda key, config, spaces, state: (state, ()))
    act = staticmethod(lambda key, config, state, observation: jnp.array(0, jnp.int32))
    update = staticmethod(lambda config, state, transition: state + 1)


@pytest.mark.parametrize("offset", [0.1, 1000.1])
def test_average_rewards_agree_with_double_precision(offset):
    """One long segment: plain float32 sums of these are wrong by 1e-3 and more."""
    steps, rewards = 300_000, np.array([offset, offset + 1 / 3])
    outcomes = make_outcomes(np.array([[[0.5, 0.5]]]), np.zeros((1, 1, 2), int), rewards[None, None], [1.0])
    keys = jax.vmap(lambda number: compiled_steps.run_keys(0, "sum", "still", number))(np.arange(2))
    spaces = Spaces(1, 1, False, 0.0, 1.0)
    *events, _ = compiled_loop.run_batch(
        keys, compiled_environments.make_tables(outcomes), Still, Still.Config(), spaces, [], [1000, steps], 100.0
    )
    readings = [event for event in events if isinstance(event, event_loop.Reading)]
    low, high = (np.float64(np.float32(reward)) for reward in rewards)
    for lane in range(2):
        # How often each reward came follows from the total; then the total must be that sum, to rounding.
        total = readings[-1].total[lane]
        often = np.rint((total - steps * low) / (high - low))
        assert 0.49 < often / steps < 0.51
        assert abs(total - (low * (steps - often) + high * often)) / steps < 1e-6
        assert abs((total - steps * low) / (high - low) - often) < 0.05


@pytest.mark.parametrize(("begin", "more"), [(2**22, 300_000), (0, 1_500_000)])
def test_the_mean_reward_does_not_drift_after_millions(begin, more):
    """Rewards of NChain's last state: 10 four times in five, else 2. Plain float32 sums drift down by 0.09 in the first
    case, and up by 0.01 in the second if they are plain up to 2^20.
    """
    rewards = np.random.default_rng(0).choice([10.0, 2.0], more, p=[0.8, 0.2]).astype(np.float32)
    state = normal_gamma.Statistics(jnp.array([begin], jnp.int32), jnp.array([8.4]), jnp.array([10.24 * begin]))
    step = lambda number, now: normal_gamma.update(now, (0,), seen[number])  # noqa: E731
    seen = jnp.asarray(rewards)
    after = jax.jit(lambda now: jax.lax.fori_loop(0, more, step, now))(state)
    exact = (8.4 * begin + rewards.sum(dtype=np.float64)) / (begin + more)
    squares = 10.24 * begin + ((rewards.astype(np.float64) - exact) ** 2).sum()
    assert int(after.count[0]) == begin + more
    assert float(after.mean[0]) == pytest.approx(exact, abs=2e-3 if begin else 4e-3)
    assert float(after.squares[0]) == pytest.approx(squares, rel=2e-3)


def test_a_constant_reward_has_no_spread():
    rewards = normal_gamma.update_batch(
        normal_gamma.init((1,)), (jnp.zeros(1000, int),), jnp.full(1000, 1e6, jnp.float32)
    )
    np.testing.assert_array_equal(rewards.squares, 0)
    np.testing.assert_array_equal(rewards.mean, 1e6)


LOG = {"state": [0, 1, 1, 0] * 5, "action": [0, 1, 0, 1] * 5, "reward": [2.0] * 20, "next_state": [1, 1, 0, 0] * 5}


def log(**changes):
    return bellief.Transitions.from_arrays(**(LOG | changes))


def test_no_discount_with_a_horizon():
    value = bellief.evaluate(log(), discount=1.0, horizon=7, draws=50)
    # Twenty equal rewards and a prior that takes its scale from them: seven steps are worth about fourteen.
    assert value.start_summary()["mean"] == pytest.approx(14, rel=0.05)
    assert np.isfinite(value.samples).all()
    with pytest.raises(bellief.UserError, match="discount"):
        bellief.evaluate(log(), discount=1.0)


def test_threads_get_what_one_caller_gets():
    data = log()
    alone = [bellief.evaluate(data, discount=0.5, draws=50, seed=seed).samples for seed in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(bellief.evaluate, data, discount=0.5, draws=50, seed=seed) for seed in range(4)]
        for one, other in zip(alone, asked, strict=True):
            np.testing.assert_array_equal(one, other.result().samples)


def test_no_network(monkeypatch):
    def refuse(*arguments, **keywords):
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    bellief.evaluate(log(), discount=0.5, draws=50)


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.9, 0.9999, 0.9999999])
@pytest.mark.parametrize("rewards", [[0.0] * 20, [1e-30] * 20, [1e12] * 20, [1e9, 1e9 + 1] * 10])
def test_extreme_logs(discount, rewards):
    value = bellief.evaluate(log(reward=rewards), discount=discount, draws=50)
    assert np.isfinite(value.samples).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["joint", "monte-carlo", "gaussian"])
def test_one_state_and_one_action(method):
    data = bellief.Transitions.from_arrays([0] * 30, [0] * 30, [1.0, 3.0] * 15, [0] * 30)
    value = bellief.evaluate(data, discount=0.5, method=method, draws=200)
    assert value.samples.shape[1] == 1
    assert value.start_summary()["mean"] == pytest.approx(4, abs=0.5)


@pytest.mark.slow
def test_two_thousand_states():
    states = np.arange(2000)
    data = bellief.Transitions.from_arrays(states, np.zeros(2000, int), np.ones(2000), (states + 1) % 2000)
    value = bellief.evaluate(data, discount=0.9, draws=20)
    assert np.isfinite(value.samples).all()


@pytest.mark.slow
def test_read_only_home(tmp_path):
    """A home folder that cannot be written to, as in many containers: numbers and pictures come all the same.

    It lies below a file, so that not even root can make it.
    """
    import os
    import subprocess
    import sys

    (tmp_path / "file").write_text("")
    home = tmp_path / "file" / "home"
    (tmp_path / "log.csv").write_text("state,action,reward,next_state\n0,0,1,0\n0,1,2,0\n")
    command = [sys.executable, "-m", "bellief", "evaluate", "log.csv", "--discount", "0.5", "--plot", "value.png"]
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(command, cwd=tmp_path, env=kept | {"HOME": str(home)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "value.png").stat().st_size > 1000
    assert "Traceback" not in done.stderr
