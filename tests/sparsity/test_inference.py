"""Linear maps of several frameworks, compressed networks, and summaries.

Covers ``fsjax.sparsity.structures``, ``fsjax.sparsity.trees``, ``fsjax.sparsity.summary``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import chex
import equinox as eqx
import flax.linen as nn
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from bad_calls import refuses
from marks import slow_ids
from safetensors.numpy import load_file, save_file

from fsjax import sparsity
from fsjax.sparsity import compression
from fsjax.sparsity import inference_kernels as kernels
from fsjax.sparsity.linear_maps import LinearMap, evaluator, linear_maps


class Network(nn.Module):
    """Convolutions of several strides, attention with kernels of three axes, a matrix."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = jax.nn.silu(nn.Conv(8, (3, 3), strides=2, name="conv_a")(x))
        x = nn.relu(nn.Conv(6, (3, 2), padding="VALID", kernel_dilation=(1, 2), name="conv_b")(x))
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        x = nn.MultiHeadDotProductAttention(num_heads=2, name="attention")(x, x)
        return nn.Dense(5, name="out")(x.mean(1))


IMAGES = jax.random.normal(jax.random.key(0), (4, 12, 12, 3))
MODEL = Network()
PARAMS = jax.jit(MODEL.init)(jax.random.key(1), IMAGES)


@functools.cache
def equinox_network() -> tuple[Any, Callable, jax.Array]:
    keys = jax.random.split(jax.random.key(0), 3)
    model = eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(3, 8, 3, key=keys[0]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.Conv2d(8, 4, 3, stride=2, key=keys[1]),
            eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(64, 5, key=keys[2]),
        ]
    )
    params, static = eqx.partition(model, eqx.is_array)
    images = jax.random.normal(jax.random.key(1), (4, 3, 12, 12))
    return params, lambda params, x: jax.vmap(eqx.combine(params, static))(x), images


@slow_ids("equinox")
@pytest.mark.parametrize("framework", ["flax", "equinox"])
def test_linear_maps_are_matrices_times_patches(framework: str) -> None:
    """Replacing each map by the product of patches and matrix gives the same network."""
    params, apply, inputs = (
        (PARAMS, MODEL.apply, IMAGES) if framework == "flax" else equinox_network()
    )
    seen = []

    def by_matrix(linear: LinearMap, rows: jax.Array, weight: jax.Array) -> jax.Array | None:
        seen.append(linear.path)
        if linear.kind == "matrix":
            return rows @ weight
        product = linear.patches(rows) @ linear.matrix(leaves[linear.path])
        shape = jax.eval_shape(lambda x, w: convolve(linear, x, w), rows, weight).shape
        out = linear.options["dimension_numbers"].out_spec
        last = [shape[axis] for axis in range(len(shape)) if axis != out[1]]
        return jnp.moveaxis(product.reshape(*last, linear.outputs), -1, out[1])

    def convolve(linear: LinearMap, x: jax.Array, w: jax.Array) -> jax.Array:
        return kernels.DenseConvolution(w).convolve(linear, x)

    leaves = sparsity.trees.leaves_by_name(params)
    result = jax.jit(functools.partial(evaluator(apply, params, inputs), by_matrix))(params, inputs)
    np.testing.assert_allclose(result, jax.jit(apply)(params, inputs), rtol=2e-4, atol=1e-5)
    expected = {path for path, leaf in leaves.items() if leaf.ndim > 1 and "bias" not in path}
    assert set(seen) == expected and len(seen) == len(expected)


def test_weights_that_are_changed_or_looped_over_are_left_to_jax() -> None:
    params = {"scanned": jnp.ones((3, 4, 4)), "doubled": jnp.eye(4), "plain": jnp.eye(4)}

    def apply(params: Any, x: jax.Array) -> jax.Array:
        x, _ = jax.lax.scan(lambda x, w: (x @ w, None), x, params["scanned"])
        return (x @ (2 * params["doubled"])) @ params["plain"].T

    x = jnp.arange(8.0).reshape(2, 4)
    assert [linear.path for linear in linear_maps(apply, params, x)[0]] == ["plain"]
    result = evaluator(apply, params, x)(lambda linear, rows, weight: rows @ weight, params, x)
    np.testing.assert_allclose(result, apply(params, x))


@slow_ids("*-3")
@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize(
    "structure", [None, sparsity.fan_in(), sparsity.block(4, 8), sparsity.channel(-1)]
)
def test_every_form_gives_the_dense_product(structure: Any, rows: int) -> None:
    weight = jax.random.normal(jax.random.key(0), (32, 24))
    recipe = sparsity.static(0.2, structure=structure)
    mask = np.asarray(recipe.initial_masks(jax.random.key(1), {"w": weight})["w"])
    mask = mask & (np.arange(32) != 5)[:, None] if structure is None else mask
    matrix = np.where(mask, weight, 0)
    forms = kernels.kernel_forms(matrix, mask)
    x = jax.random.normal(jax.random.key(2), (rows, 32))
    products = jax.jit(lambda x: {name: form.multiply(x) for name, form in forms.items()})(x)
    for name, found in products.items():
        np.testing.assert_allclose(found, np.asarray(x) @ matrix, atol=1e-5, err_msg=name)
    assert list(forms)[:2] == ["dense", "transposed"]
    assert ({"fan-in", "connections"} <= set(forms)) == (mask.sum(0).max() <= 16)
    assert ("tiles 4x8" in forms) == (structure is not None and "block" in structure.name)
    assert ("shrunk" in forms) == (not mask.any(1).all() or not mask.any(0).all())


@slow_ids("8-300", "8-601", "256-601")
@pytest.mark.parametrize("outputs", [100, 300, 601])
@pytest.mark.parametrize("unrolled", [8, 256])
def test_strips_of_outputs_with_unequal_fan_in(
    outputs: int, unrolled: int, monkeypatch: Any
) -> None:
    """Fan-ins from 0 to 19; several strips, or none that is unrolled."""
    monkeypatch.setattr(kernels, "_MAX_UNROLLED", unrolled)
    rng = np.random.default_rng(outputs)
    mask = rng.permuted(np.arange(40)[:, None] < rng.integers(0, 20, outputs), axis=0)
    matrix = np.where(mask, rng.normal(size=mask.shape), 0).astype(np.float32)
    form = kernels.kernel_forms(matrix, mask)["fan-in"]
    widths = [width for _, width in form.strips]
    assert sum(widths) == outputs and min(widths) >= min(outputs, 64)
    assert len(widths) == (1 if unrolled == 8 else min(8, outputs // 64))
    if len(widths) > 1:
        assert form.weights.size < 0.9 * outputs * mask.sum(0).max()
    for rows in (1, 5):
        x = rng.normal(size=(rows, 40)).astype(np.float32)
        np.testing.assert_allclose(jax.jit(form.multiply)(x), x @ matrix, atol=1e-5)


@slow_ids("equinox")
@slow_ids("flax")
@pytest.mark.parametrize("framework", ["flax", "equinox"])
def test_a_compressed_network_is_the_masked_one(framework: str, monkeypatch: Any) -> None:
    """For other batch sizes too; the fake times make a form that is not dense the fastest."""
    params, apply, inputs = (
        (PARAMS, MODEL.apply, IMAGES) if framework == "flax" else equinox_network()
    )
    convolution = "params/conv_b/kernel" if framework == "flax" else "layers/2/weight"

    @jax.jit
    def masked_network(params: Any) -> tuple[Any, Any]:
        masks = sparsity.static(0.1).initial_masks(jax.random.key(2), params)
        channels = sparsity.static(0.5, structure=sparsity.channel(-1)).initial_masks(
            jax.random.key(3), params, convolution
        )
        masks = jax.tree.map(jnp.logical_and, masks, channels)
        return masks, sparsity.apply_masks(params, masks)

    masks, masked = masked_network(params)
    number = iter(range(1000))
    monkeypatch.setattr("fsjax.sparsity.compression._milliseconds", lambda *_: 0.5 ** next(number))
    fast = sparsity.compress(apply, params, masks, inputs)
    taken = {layer.path: layer.form for layer in fast.layers}
    assert set(taken.values()) & {"connections", "fan-in"} and taken[convolution] == "shrunk"
    for batch in (inputs, inputs[:1]):
        expected = jax.jit(apply)(masked, batch)
        np.testing.assert_allclose(fast(batch), expected, rtol=1e-4, atol=1e-5)
    assert str(fast).count("\n") == len(taken)


#: Uses of one kernel ``(12, 12)``, or ``(1, 12, 12)`` for the window.
USES: dict[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "tied": lambda w, x: nn.relu(x @ w) @ w.T,
    "looked up": lambda w, x: nn.relu(x @ w) + w[jnp.argmax(x, 1)],
    "looped": lambda w, x: jax.lax.scan(lambda h, _: (h @ w, None), x @ w, None, 2)[0],
    "rounded": lambda w, x: x @ w.astype(jnp.float8_e4m3fn).astype(jnp.float32),
    "half": lambda w, x: x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16),
    "turned window": lambda w, x: jax.lax.conv_general_dilated(
        x[:, :, None], w.swapaxes(1, 2), [1], "SAME", dimension_numbers=("NCW", "WIO", "NCW")
    ),
}


@pytest.mark.parametrize("use", USES)
def test_kernels_are_compressed_as_the_network_uses_them(use: str, monkeypatch: Any) -> None:
    """Or stay dense, if no form serves all uses."""
    number = iter(range(1000))
    monkeypatch.setattr("fsjax.sparsity.compression._milliseconds", lambda *_: 0.5 ** next(number))
    x, w = jax.random.normal(jax.random.key(0), (5, 12)), jnp.ones((12, 12)) / 3
    mask = sparsity.random_mask(jax.random.key(1), (12, 12), 20).at[0].set(False)
    w, mask = (w[None], mask[None]) if use == "turned window" else (w, mask)
    fast = sparsity.compress(lambda p, x: USES[use](p["w"], x), {"w": w}, {"w": mask}, x)
    assert (fast.layers[0].form == "dense") == (use in ("tied", "looked up", "looped")), str(fast)
    np.testing.assert_allclose(fast(x), USES[use](w * mask, x), rtol=0.01, atol=0.01)


@pytest.mark.slow
def test_a_compressed_network_is_never_slower_as_measured(monkeypatch: Any) -> None:
    masks = jax.jit(sparsity.static(0.1).initial_masks)(jax.random.key(2), PARAMS)
    number = iter(range(1, 10**6))
    monkeypatch.setattr("fsjax.sparsity.compression._milliseconds", lambda *_: float(next(number)))
    fast = sparsity.compress(MODEL.apply, PARAMS, masks, IMAGES)
    assert {layer.form for layer in fast.layers} == {"dense"}
    assert fast.milliseconds["compressed"] <= fast.milliseconds["dense"]


def test_one_fast_measurement_does_not_decide() -> None:
    assert compression._worth([4, 4, 4], [3, 3, 3])
    assert not compression._worth([4, 4, 4], [1, 5, 5])
    assert not compression._worth([3, 9, 9], [3, 4, 4])


@pytest.mark.slow
def test_a_compressed_network_is_exported(monkeypatch: Any) -> None:
    number = iter(range(1000))
    monkeypatch.setattr("fsjax.sparsity.compression._milliseconds", lambda *_: 0.5 ** next(number))
    weight = jax.random.normal(jax.random.key(0), (512, 512))
    mask = sparsity.random_mask(jax.random.key(1), (512, 512), 800)
    x = jnp.ones((1, 512))

    def apply(params: Any, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ params["w"])

    fast = sparsity.compress(apply, {"w": weight}, {"w": mask}, x, portable=True)
    assert fast.nbytes < weight.nbytes / 30
    exported = jax.export.export(jax.jit(fast))(x)
    loaded = jax.export.deserialize(exported.serialize())
    np.testing.assert_allclose(loaded.call(x), jnp.tanh(x @ (weight * mask)), atol=1e-4)


@pytest.mark.slow
def test_large_arrays_are_arguments_of_the_program(monkeypatch: Any) -> None:
    """With arrays on both sides of the bound, and the same outputs as with all built in."""
    masks = jax.jit(sparsity.static(0.1).initial_masks)(jax.random.key(2), PARAMS)
    expected = jax.jit(MODEL.apply)(sparsity.apply_masks(PARAMS, masks), IMAGES)
    for bound in (0, 200, 2**20):
        number = iter(range(1000))
        monkeypatch.setattr(compression, "_milliseconds", lambda *_, n=number: 0.5 ** next(n))
        monkeypatch.setattr(compression, "_MAX_CONSTANT_BYTES", bound)
        fast = sparsity.compress(MODEL.apply, PARAMS, masks, IMAGES)
        text = jax.jit(fast._call).lower(*fast._arguments, IMAGES).as_text()
        sizes = [leaf.nbytes for leaf in jax.tree.leaves(fast._arguments)]
        assert len(sizes) == text.split("->")[0].count("%arg") - 1
        assert all(size > bound for size in sizes) and (sum(sizes) == fast.nbytes) == (bound == 0)
        np.testing.assert_allclose(fast(IMAGES), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_what_the_axes_call_no_kernel_stays_dense() -> None:
    def network(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ params["first"]) @ params["second"]

    params = {"first": jnp.ones((4, 8)), "second": jnp.ones((8, 2))}
    masks = {path: jnp.eye(*leaf.shape, dtype=bool) for path, leaf in params.items()}
    axes = {**sparsity.axes(network, params, jnp.ones((1, 4)))}
    axes["first"] = sparsity.ParameterAxes("other")
    fast = sparsity.compress(network, params, masks, jnp.ones((1, 4)), axes=axes)
    assert [layer.path for layer in fast.layers] == ["second"]


@pytest.mark.parametrize("options", [{"preferred_element_type": jnp.int32}, {"precision": "high"}])
def test_products_of_another_type_or_precision_stay_dense(options: Any, monkeypatch: Any) -> None:
    number = iter(range(1000))
    monkeypatch.setattr("fsjax.sparsity.compression._milliseconds", lambda *_: 0.5 ** next(number))
    w, x = jnp.full((12, 4), 100, jnp.int8), jnp.full((3, 12), 100, jnp.int8)

    def product(params: Any, x: jax.Array) -> jax.Array:
        return jnp.dot(x, params["w"], **options)

    mask = jnp.ones((12, 4), bool).at[0].set(False)
    fast = sparsity.compress(product, {"w": w}, {"w": mask}, x)
    assert fast.layers[0].form == "dense" and not fast.layers[0].milliseconds
    np.testing.assert_array_equal(fast(x), product({"w": w * mask}, x))


def test_networks_without_anything_to_compress() -> None:
    masks = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, bool), PARAMS)
    full = functools.partial(sparsity.compress, MODEL.apply, PARAMS, masks, IMAGES)
    refuses(full, "no mask has a missing connection")
    doubled = functools.partial(sparsity.compress, lambda p, x: x @ (p["w"] * 2))
    arguments = {"w": jnp.eye(4)}, {"w": jnp.eye(4, dtype=bool)}, jnp.ones((1, 4))
    refuses(lambda: doubled(*arguments), "none of w is used")


def test_a_summary_counts_connections_and_operations() -> None:
    where = ("params/conv_a/kernel", "params/out/kernel")
    masks = sparsity.static(0.25, distribution="uniform").initial_masks(
        jax.random.key(2), PARAMS, where
    )
    table = sparsity.summarize(PARAMS, masks, MODEL.apply, IMAGES)
    conv, out = table.loc["params/conv_a/kernel"], table.loc["params/out/kernel"]
    # 4 images of 6 x 6 positions; two operations per connection.
    assert conv["active"] == 54 and conv["flops"] == 2 * 4 * 36 * 54
    assert out["connections"] == 30 and out["flops"] == 2 * 4 * out["active"]
    assert table.loc["params/conv_b/kernel", "structure"] == "dense"
    assert table.loc["all", "active"] == table["active"][:-1].sum()
    assert "flops" not in sparsity.summarize(PARAMS, masks)
    short = jax.tree.map(lambda mask: mask[:1], masks)
    refuses(lambda: sparsity.summarize(PARAMS, short), "has shape", "in the masks")


@pytest.mark.parametrize(
    ("module", "shape", "flops"),
    [  # Two per connection, image or row, and position.
        (nn.Conv(8, (3, 3), feature_group_count=2), (2, 5, 5, 4), 2 * 144 * 2 * 25),
        (nn.ConvTranspose(8, (3, 3), 2, transpose_kernel=True), (2, 5, 5, 4), 2 * 288 * 2 * 25),
        (nn.RNN(nn.SimpleCell(5)), (2, 7, 3), 2 * 40 * 2 * 7),
    ],
    ids=["groups", "transposed", "recurrent"],
)
def test_operations_of_less_plain_layers(module: Any, shape: tuple[int, ...], flops: int) -> None:
    params = jax.eval_shape(module.init, jax.random.key(0), jnp.ones(shape))
    table = sparsity.summarize(params, None, module.apply, jnp.ones(shape))
    assert table.loc["all", "flops"] == table.loc["all", "dense_flops"] == flops


def test_operations_that_are_not_known() -> None:
    def apply(params: Any, x: jax.Array) -> jax.Array:
        x = jax.lax.fori_loop(0, 3, lambda i, x: x @ params["layers"][i], x)
        return (x + params["bias"]) @ (2 * params["doubled"]) @ params["plain"]

    shapes = {"layers": (3, 4, 4), "doubled": (4, 4), "plain": (4, 4), "bias": (2, 4)}
    params = {name: jnp.ones(shape) for name, shape in shapes.items()}
    table = sparsity.summarize(params, None, apply, jnp.ones((2, 4)))
    assert table["flops"].isna()[["layers", "doubled", "all"]].all()
    assert table["flops"][["plain", "bias"]].tolist() == [64, 0]
    axes = sparsity.axes(apply, params, jnp.ones((2, 4)))
    table = sparsity.summarize(params, axes=axes)
    assert "bias" not in table.index and table.loc["all", "connections"] == 80


def test_a_summary_of_a_network_without_kernels() -> None:
    def apply(params: Any, ids: jax.Array) -> jax.Array:
        return params["embedding"][ids] @ params["embedding"].T

    params, ids = {"embedding": jnp.ones((20, 4))}, jnp.arange(3)
    table = sparsity.summarize(params, axes=sparsity.axes(apply, params, ids))
    assert table["connections"].to_dict() == {"embedding": 80, "all": 80}


@pytest.mark.parametrize(
    ("structure", "name"),
    [
        (sparsity.n_of_m(1, 4), "1:4"),
        (sparsity.block(4, 2), "tiles 4x2"),
        (sparsity.fan_in(), "fan-in 3"),
        (sparsity.channel(-1), "channels"),
        (None, "unstructured"),
    ],
)
def test_a_summary_names_the_structure(structure: Any, name: str) -> None:
    weight = jnp.ones((12, 8))
    density = {} if structure and structure.fixed_density else {"density": 0.25}
    masks = sparsity.static(structure=structure, **density).initial_masks(
        jax.random.key(0), {"w": weight}
    )
    assert sparsity.summarize({"w": weight}, masks).loc["w", "structure"] == name


def test_degrees_and_overlap() -> None:
    first = {"w": jnp.array([[True, True], [False, True], [False, False]])}
    second = {"w": jnp.array([[True, False], [False, True], [True, False]])}
    assert sparsity.overlap(first, second) == {"w": 0.5}
    inputs, outputs = sparsity.degrees(np.asarray(first["w"]))
    assert inputs.tolist() == [2, 1, 0] and outputs.tolist() == [1, 2]
    figure = sparsity.mask_figure(first)
    assert figure.axes[0].get_images()[0].get_array().sum() == 3
    refuses(lambda: sparsity.overlap(first, {"w": jnp.ones((2, 2), bool)}), "w has shape")


def test_parameters_as_safetensors(tmp_path: Any) -> None:
    masks = sparsity.static(0.3).initial_masks(jax.random.key(2), PARAMS)
    save_file(sparsity.to_numpy(PARAMS, masks), tmp_path / "network.safetensors")
    arrays = load_file(tmp_path / "network.safetensors")
    chex.assert_trees_all_equal(
        sparsity.from_numpy(arrays, PARAMS), sparsity.apply_masks(PARAMS, masks)
    )
    arrays["params.out.kernel"] = arrays["params.out.kernel"][:2]
    refuses(lambda: sparsity.from_numpy(arrays, PARAMS), "params.out.kernel has shape (2, 5)")
    refuses(lambda: sparsity.to_numpy({"rng": jax.random.key(0)}), "without keys")


@pytest.mark.slow
def test_a_compressed_network_is_no_tree_of_arrays() -> None:
    params = {"w": jax.random.normal(jax.random.key(0), (8, 4))}
    masks = sparsity.static(0.3).initial_masks(jax.random.key(2), params)
    for tree in (params, masks, {"w": params["w"].astype(jnp.bfloat16)}):
        assert sparsity.to_numpy(tree)["w"].dtype == tree["w"].dtype
    fast = sparsity.compress(lambda params, x: x @ params["w"], params, masks, jnp.ones((1, 8)))
    for arguments in ((fast,), (fast, masks), ({"name": "text"},)):
        refuses(functools.partial(sparsity.to_numpy, *arguments), "to_numpy takes the parameters")
