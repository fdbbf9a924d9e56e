"""Files of sparse networks: exact, small, readable without fsjax, and refused when damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from fsjax import sparsity
from fsjax.errors import ConfigError, DataError
from fsjax.sparsity.sparse_files import _decoded, _encoded


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), max_size=40), st.integers(0, 5000), st.lists(st.booleans()))
def test_each_mask_comes_back(first: list[bool], missing: int, last: list[bool]) -> None:
    mask = np.array([*first, *[False] * missing, *last], bool)
    quotients, remainders, bits = _encoded(mask)
    places = _decoded(quotients, remainders, bits, int(mask.sum()))
    np.testing.assert_array_equal(places, np.flatnonzero(mask))


def network(density: float, dtype: Any = jnp.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    params = {
        "conv": {
            "kernel": jnp.asarray(rng.normal(size=(3, 3, 4, 8)), dtype),
            "scale": np.float32(1),
        },
        "dense": {
            "kernel": jnp.asarray(rng.normal(size=(300, 100)), dtype),
            "step": np.arange(3, dtype=np.int32),
        },
    }
    masks = jax.tree.map(lambda leaf: np.ones(leaf.shape, bool), params)
    for layer in masks.values():
        layer["kernel"] = rng.random(layer["kernel"].shape) < density
    return params, masks


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float8_e4m3fn])
def test_a_network_comes_back_exactly(tmp_path: Path, dtype: Any) -> None:
    params, masks = network(0.1, dtype)
    active = np.argwhere(masks["dense"]["kernel"])[:2]
    kernel = params["dense"]["kernel"].at[tuple(active[0])].set(0.0)  # active, though 0
    params["dense"]["kernel"] = kernel.at[tuple(active[1])].set(jnp.nan)
    masks["conv"]["kernel"] = np.zeros_like(masks["conv"]["kernel"])  # no connection at all
    path = tmp_path / "network.safetensors"
    sparsity.save_sparse(path, params, masks)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), params)
    loaded, loaded_masks = sparsity.load_sparse(path, shapes)
    chex.assert_trees_all_equal(loaded_masks, masks)
    # NumPy knows no NaN of float8.
    found, expected = (
        jax.tree.map(lambda leaf: leaf.astype(jnp.float32), tree)
        for tree in (loaded, sparsity.apply_masks(params, masks))
    )
    chex.assert_trees_all_equal(found, expected)
    assert loaded["dense"]["kernel"].dtype == dtype and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("density", [0.5, 0.1, 0.05, 0.01])
def test_positions_take_little_more_than_their_entropy(density: float) -> None:
    mask = np.random.default_rng(0).random(10**6) < density
    quotients, remainders, _ = _encoded(mask)
    share = mask.mean()
    entropy = -(share * np.log2(share) + (1 - share) * np.log2(1 - share)) * 10**6
    assert 0.999 * entropy < 8 * (len(quotients) + len(remainders)) < 1.02 * entropy


@pytest.mark.parametrize("arrangement", ["random", "columns", "rows", "first"])
def test_a_tenth_of_the_connections_takes_at_most_a_fifth_more(arrangement: str) -> None:
    mask = np.zeros((500, 400), bool)
    if arrangement == "random":
        mask = np.random.default_rng(0).random((500, 400)) < 0.1
    elif arrangement == "columns":
        mask[:, ::10] = True
    elif arrangement == "rows":
        mask[::10] = True
    else:
        mask[:50] = True
    quotients, remainders, _ = _encoded(mask.reshape(-1))
    assert len(quotients) + len(remainders) < 0.2 * 4 * mask.sum()


def test_the_file_is_read_without_fsjax(tmp_path: Path) -> None:
    params, masks = network(0.05)
    path = tmp_path / "network.safetensors"
    sparsity.save_sparse(path, params, masks)
    with safetensors.safe_open(path, "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        layers = json.loads(file.metadata()["sparse"])
    for name, layer in layers.items():
        values, quotients, remainders = (
            arrays.pop(f"{name}:{part}") for part in ("values", "quotients", "remainders")
        )
        number, bits = len(values), layer["bits"]
        digits = np.unpackbits(remainders, count=number * bits).reshape(number, bits)
        gaps = np.diff(np.flatnonzero(np.unpackbits(quotients)), prepend=-1) - 1
        gaps = (gaps << bits) + digits @ (1 << np.arange(bits)[::-1])
        arrays[name] = np.zeros(layer["shape"], values.dtype)
        arrays[name].flat[np.cumsum(gaps + 1) - 1] = values
    expected = sparsity.to_numpy(params, masks)
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[name], array)


def test_what_is_not_the_network_is_refused(tmp_path: Path) -> None:
    params, masks = network(0.1)
    path = tmp_path / "network.safetensors"
    sparsity.save_sparse(path, params, masks)
    other = {**params, "dense": {**params["dense"], "kernel": jnp.ones((100, 300))}}
    with pytest.raises(ConfigError, match=r"dense.kernel has shape .300, 100. in the arrays"):
        sparsity.load_sparse(path, other)
    with pytest.raises(ConfigError, match="more has shape None in the arrays"):
        sparsity.load_sparse(path, {**params, "more": jnp.ones(2)})
    with pytest.raises(ConfigError, match=r"the mask of .* is float32"):
        sparsity.save_sparse(path, params, params)
    with pytest.raises(ConfigError, match="conv/.* in the parameters and None in the masks"):
        sparsity.save_sparse(path, params, {"dense": masks["dense"]})


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("a:values", jnp.float32, "a:values twice, as a has such a part; rename one"),
        ("b", jnp.int4, "b is int4, a type that SafeTensors files do not have; convert it"),
    ],
)
def test_what_no_file_can_hold_is_refused(
    tmp_path: Path, name: str, dtype: Any, message: str
) -> None:
    params = {"a": jnp.ones((2, 3)), name: jnp.ones((2, 3), dtype)}
    masks = {"a": jnp.eye(2, 3, dtype=bool), name: jnp.ones((2, 3), bool)}
    with pytest.raises(ConfigError, match=message):
        sparsity.save_sparse(tmp_path / "network.safetensors", params, masks)
    assert not list(tmp_path.iterdir())


def test_damaged_and_other_files_are_refused(tmp_path: Path) -> None:
    params, masks = network(0.1)
    path = tmp_path / "network.safetensors"
    sparsity.save_sparse(path, params, masks)
    content = path.read_bytes()
    for cut in (0, 5, 100, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(DataError, match=r"network.safetensors is truncated"):
            sparsity.load_sparse(path, params)
    save_file(sparsity.to_numpy(params), path)
    with pytest.raises(DataError, match=r"has the layout None; load_sparse reads"):
        sparsity.load_sparse(path, params)
    path.write_bytes(content.replace(b'\\"bits\\": 3', b'\\"bits\\": 7', 1))
    with pytest.raises(DataError, match="contradicts itself"):
        sparsity.load_sparse(path, params)
    with pytest.raises(FileNotFoundError):
        sparsity.load_sparse(tmp_path / "nothing", params)
