"""What is settled before JAX starts: the device and the folder of compiled programs."""

import os

import jax
import pytest

from bellief.cli import jax_setup
from cli.conftest import assert_one_sentence


@pytest.fixture
def clean(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(jax_setup.FOLDER, raising=False)
    monkeypatch.delenv(jax_setup.SWITCH, raising=False)
    yield tmp_path
    os.environ.pop(jax_setup.FOLDER, None)  # before monkeypatch puts back what was there


@pytest.mark.parametrize("arguments", [("--device", "tpu", "list"), ("list", "--device=tpu"), ("list", "--device")])
def test_an_unknown_device_is_a_mistake(call, arguments):
    assert_one_sentence(call(*arguments), "--device needs one of auto, cpu, gpu")


@pytest.mark.skipif(jax.default_backend() == "gpu", reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_a_mistake(call):
    assert_one_sentence(call("list", "--device", "gpu"), "bellief[cuda]")


def test_the_device_may_stand_anywhere(call, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "")
    assert call("list", "envs", "--device", "cpu", "--json").code == 0
    assert os.environ["JAX_PLATFORMS"] == "cpu"


def test_compiled_programs_are_kept_in_the_users_cache(clean):
    jax_setup.keep_compiled_programs()
    assert os.environ[jax_setup.FOLDER] == str(clean / "bellief" / "compiled")
    assert (clean / "bellief" / "compiled").is_dir()


def test_keeping_them_can_be_switched_off_and_left_to_jax(clean, monkeypatch):
    monkeypatch.setenv(jax_setup.SWITCH, "off")
    jax_setup.keep_compiled_programs()
    assert jax_setup.FOLDER not in os.environ
    monkeypatch.delenv(jax_setup.SWITCH)
    monkeypatch.setenv(jax_setup.FOLDER, "mine")
    jax_setup.keep_compiled_programs()
    assert os.environ[jax_setup.FOLDER] == "mine"


def test_a_cache_that_cannot_be_written_is_not_fatal(clean, monkeypatch):
    (clean / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(clean / "file"))
    jax_setup.keep_compiled_programs()
    assert jax_setup.FOLDER not in os.environ
