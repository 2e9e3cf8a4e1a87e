import jax
import jax.numpy as jnp
import numpy as np

from bellief.experiments import transfer


def test_packed_states_arrive_as_they_were_sent(monkeypatch):
    monkeypatch.setattr(transfer, "SMALL", 200)
    rng = np.random.default_rng(0)

    def group(runs):
        return {
            "counts": rng.integers(0, 9, (runs, 2, 3)).astype(np.int32),
            "means": rng.normal(size=(runs, 2)).astype(np.float32),
            "number": rng.normal(size=runs).astype(np.float32),
            "flags": rng.random((runs, 3)) < 0.5,
            "large": rng.normal(size=(runs, 100)).astype(np.float32),
        }

    groups = (group(2), group(2))
    packed = transfer.pack(groups)
    assert packed.common.shape == (4, 2 * 3 + 2 + 1)
    assert len(packed.apart) == 2
    arrived = jax.jit(transfer.unpack)(packed)
    for name, leaf in arrived.items():
        sent = np.concatenate([one[name] for one in groups])
        assert leaf.dtype == sent.dtype
        np.testing.assert_array_equal(leaf, sent)


def test_packing_large_arrays_only(monkeypatch):
    monkeypatch.setattr(transfer, "SMALL", 0)
    (arrived,) = transfer.unpack(transfer.pack(((jnp.ones((2, 3)),), (jnp.zeros((1, 3)),))))
    assert arrived.tolist() == [[1.0] * 3] * 2 + [[0.0] * 3]
