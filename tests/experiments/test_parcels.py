import jax
import jax.numpy as jnp
import numpy as np

from bellief.experiments import parcels


def test_a_parcel_arrives_as_it_was_sent(monkeypatch):
    monkeypatch.setattr(parcels, "SMALL", 200)
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
    parcel = parcels.pack(groups)
    assert parcel.common.shape == (4, 2 * 3 + 2 + 1)
    assert len(parcel.apart) == 2
    arrived = jax.jit(parcels.unpack)(parcel)
    for name, leaf in arrived.items():
        sent = np.concatenate([one[name] for one in groups])
        assert leaf.dtype == sent.dtype
        np.testing.assert_array_equal(leaf, sent)


def test_a_parcel_of_large_arrays_only(monkeypatch):
    monkeypatch.setattr(parcels, "SMALL", 0)
    (arrived,) = parcels.unpack(parcels.pack(((jnp.ones((2, 3)),), (jnp.zeros((1, 3)),))))
    assert arrived.tolist() == [[1.0] * 3] * 2 + [[0.0] * 3]
