"""The first change of CTRE as its authors coded it, before any similarity is known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_ids

import fsjax
from fsjax.methods.shared.layers.connections import ConnectedLayer
from fsjax.methods.shared.layers.network import layers_in

SPEC = fsjax.Spec(30, 3, "classification", 50, 10, 5, steps_per_epoch=5)


def first_masks(method: str, form: str, **options: object) -> list[np.ndarray]:
    """The connections of every layer before training, ``(I, O)``."""
    build = fsjax.methods.METHODS[method]
    network = build(hidden=(20, 10), epsilon=2.0, form=form, **options)
    data = fsjax.Batch(jnp.ones((50, 30)), jnp.arange(50) % 3, jnp.ones(50))
    masks = []
    for layer in layers_in(network.init(jax.random.key(3), SPEC, data)).values():
        if isinstance(layer, ConnectedLayer):
            mask = np.zeros(layer.shape, bool)
            mask[layer.where.rows, layer.where.columns] = True
        else:
            mask = np.asarray(layer.where)
        masks.append(mask)
    return masks


@pytest.mark.slow
@slow_ids("ctre_seq")
@pytest.mark.parametrize("method", ["ctre_seq", "ctre_sim"])
def test_a_blind_start_grows_at_the_first_missing_positions(method: str) -> None:
    before = first_masks(method, "dense")
    after = first_masks(method, "dense", blind_start=True)
    for old, new in zip(before, after, strict=True):
        assert old.sum() == new.sum()
        grown, free = np.flatnonzero(new & ~old), np.flatnonzero(~old)
        dropped = int(0.2 * old.sum())
        # Some of those that were just dropped may come back.
        assert 0.6 * dropped <= len(grown) <= dropped
        first = free[: int(0.6 * dropped)]
        assert np.isin(first, grown).all()
        if method == "ctre_seq":
            assert np.array_equal(grown, free[: len(grown)])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dense", "topology"])
@pytest.mark.parametrize("method", ["ctre_seq", "ctre_sim"])
def test_a_blind_start_is_for_every_form_of_a_layer(method: str, form: str) -> None:
    before, after = first_masks(method, form), first_masks(method, form, blind_start=True)
    for old, new in zip(before, after, strict=True):
        assert old.sum() == new.sum()
        first = np.flatnonzero(~old)[: int(0.1 * old.sum())]
        assert new.ravel()[first].all()
