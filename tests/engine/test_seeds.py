"""The seed axis, and settings of JAX for it."""

from __future__ import annotations

import jax
import pytest

import fsjax
from fsjax.engine.mesh import Placement, choose_seed_axis
from fsjax.errors import ConfigError


def test_choice_of_the_seed_axis() -> None:
    assert jax.device_count() == 2
    assert choose_seed_axis("auto", 3) == "shard"
    assert choose_seed_axis("auto", 1) == "map"
    assert choose_seed_axis("vmap", 1) == "vmap"
    assert Placement("shard", 1, 3).rows.tolist() == [0, 1, 2, 2]
    assert Placement("map", 1, 3).rows.tolist() == [0, 1, 2]


def test_settings_of_jax_come_too_late() -> None:
    assert fsjax.use_cpu_devices(2) == 2
    with pytest.raises(ConfigError, match="too late"):
        fsjax.use_cpu_devices(3)
