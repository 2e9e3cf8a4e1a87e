"""Saving and loading agents: everything comes back, and whatever is not a saved agent is refused with a sentence."""

import dataclasses
import io
import json
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.contracts import broken
from tests.contracts.broken import agent

from bellief import UserError
from bellief.agents import psrl_paper, q_learning
from bellief.agents.saved_agent import load_agent, save_agent
from bellief.beliefs import tabular
from bellief.types import Spaces

SPACES = Spaces(3, 2, True, None, 1.0, None)


@pytest.fixture
def saved(tmp_path):
    """A file with an agent that is registered."""
    path = tmp_path / "agent.npz"
    config = q_learning.Config(epsilon=0.25)
    state = q_learning.init(jax.random.key(0), config, SPACES)._replace(q_values=jnp.arange(6.0).reshape(3, 2))
    save_agent(path, "q-learning", config, SPACES, state)
    return path


def rewrite(path, change):
    """Change a file's header."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays["header"].tobytes())
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays)


def test_everything_comes_back(saved):
    module, config, spaces, state = load_agent(saved)
    assert module is q_learning
    assert config == q_learning.Config(epsilon=0.25)
    assert spaces == SPACES
    assert isinstance(state, q_learning.State)
    np.testing.assert_array_equal(state.q_values, np.arange(6.0).reshape(3, 2))
    assert state.visits.dtype == jnp.int32


def test_header_is_json_and_arrays_have_the_names_of_their_places(saved):
    with np.load(saved, allow_pickle=False) as archive:
        assert set(archive.files) == {"header", "state.q_values", "state.visits"}
        header = json.loads(archive["header"].tobytes())
    assert header["agent"] == "q-learning"
    assert header["format"] == 1
    assert header["config"]["epsilon"] == 0.25


def test_nested_and_unusual_settings_come_back(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Config:
        prior: tabular.Prior | None = None
        sizes: tuple[int, ...] = ()
        pair: tuple[str, tabular.Prior] = ("a", tabular.PAPER_PRIOR)
        foresight: float = 1.0
        flag: bool = False

    own = agent(Config=Config)
    config = Config(tabular.Prior(dirichlet=0.1, sparse=True), (3, 4), ("b", tabular.SPARSE_PRIOR), math.inf, True)
    state = own.init(jax.random.key(0), config, SPACES)
    save_agent(tmp_path / "x.npz", own, config, SPACES, state)
    assert load_agent(tmp_path / "x.npz", own).config == config


def test_keys_and_short_floats_come_back(tmp_path):
    class State(NamedTuple):
        keys: jax.Array
        old_key: jax.Array
        short: jax.Array
        layers: tuple[dict, ...]

    def init(key, config, spaces):
        return State(
            jax.random.split(key, 3),
            jax.random.key_data(key),
            jnp.linspace(0, 1, 5, dtype=jnp.bfloat16),
            ({"weight": jnp.ones((2, 2), bool)}, {}),
        )

    own = agent(init=init)
    state = init(jax.random.key(7), None, SPACES)
    save_agent(tmp_path / "x.npz", own, broken.Config(), SPACES, state)
    again = load_agent(tmp_path / "x.npz", own).state
    assert jax.tree.structure(again) == jax.tree.structure(state)
    assert again.keys.dtype == state.keys.dtype
    np.testing.assert_array_equal(jax.random.uniform(again.keys[1]), jax.random.uniform(state.keys[1]))
    assert again.short.dtype == jnp.bfloat16
    np.testing.assert_array_equal(again.short, state.short)


def test_saving_replaces_and_leaves_nothing_else_behind(saved):
    config = q_learning.Config(epsilon=0.75)
    save_agent(saved, "q-learning", config, SPACES, q_learning.init(jax.random.key(0), config, SPACES))
    assert load_agent(saved).config.epsilon == 0.75
    assert [path.name for path in saved.parent.iterdir()] == ["agent.npz"]


def test_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    config = q_learning.Config()
    with pytest.raises(OSError, match="No space"):
        save_agent(saved, "q-learning", config, SPACES, q_learning.init(jax.random.key(0), config, SPACES))
    assert saved.read_bytes() == before
    assert len(list(saved.parent.iterdir())) == 1


def test_state_of_another_agent_is_refused(tmp_path):
    config = psrl_paper.Config()
    state = psrl_paper.init(jax.random.key(0), config, SPACES)
    with pytest.raises(UserError, match="does not belong to agent 'q-learning'"):
        save_agent(tmp_path / "x.npz", "q-learning", q_learning.Config(), SPACES, state)
    assert list(tmp_path.iterdir()) == []


def test_no_file(tmp_path):
    with pytest.raises(UserError, match="There is no file"):
        load_agent(tmp_path / "missing.npz")


def npy(values):
    content = io.BytesIO()
    np.save(content, values)
    return content.getvalue()


def npz(**arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        b"PK\x03\x04 not really",
        npy(np.arange(3)),
        npz(values=np.arange(3)),
        npz(header=np.frombuffer(b"[1, 2]", np.uint8)),
        npz(header=np.frombuffer(b'{"kind": "something else"}', np.uint8)),
        npz(header=np.frombuffer(b"{broken", np.uint8)),
        npz(header=np.array([{"a": 1}], dtype=object)),
    ],
    ids=["empty", "text", "zip", "npy", "npz", "list", "kind", "json", "pickle"],
)
def test_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not an agent saved by Bellief, or is damaged"):
        load_agent(path)


@pytest.mark.parametrize("share", [0.2, 0.6, 0.98])
def test_half_a_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(UserError, match="is damaged"):
        load_agent(saved)


def test_changed_bytes_are_refused(saved):
    content = bytearray(saved.read_bytes())
    place = content.find(np.float32(5.0).tobytes(), content.find(b"state.q_values"))
    content[place] ^= 1
    saved.write_bytes(content)
    with pytest.raises(UserError, match="is damaged"):
        load_agent(saved)


def set_format(header, arrays):
    header["format"] = 3


def set_agent(header, arrays):
    header["agent"] = "q-lerning"


def add_setting(header, arrays):
    header["config"]["speed"] = 1


def spoil_setting(header, arrays):
    header["config"]["epsilon"] = 7


def other_spaces(header, arrays):
    header["spaces"][0] = 4


def other_array(header, arrays):
    arrays["state.q_values"] = np.zeros((3, 2), np.float64)


def missing_array(header, arrays):
    del arrays["state.q_values"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_format, "written by a newer Bellief"),
        (set_agent, "did you mean 'q-learning'"),
        (add_setting, "there is no setting 'speed'"),
        (spoil_setting, "epsilon must lie between 0 and 1"),
        (other_spaces, r"it has state.q_values float32\[3, 2\] where state.q_values float32\[4, 2\] is expected"),
        (other_array, "an array is not what the header says"),
        (missing_array, "is damaged"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_file_that_does_not_fit_is_refused(saved, change, words):
    rewrite(saved, change)
    with pytest.raises(UserError, match=words) as caught:
        load_agent(saved)
    assert "\n" not in str(caught.value)
