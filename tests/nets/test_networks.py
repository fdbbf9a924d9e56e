"""Networks by name: their sizes as published, NumPy versions of their layers, padding rows.

Covers ``fsjax.nets.images``, ``fsjax.nets.networks``, ``fsjax.nets.images``.
"""

from __future__ import annotations

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from flax import linen as nn
from marks import slow_ids

from fsjax.nets import MLP, NETWORKS, VGG, LeNet5, ResNet, build_network, count_parameters
from fsjax.nets.convolution import (
    convolve,
    convolve_for_cpu,
    convolve_plainly,
)
from fsjax.nets.images import ResidualBlock, to_images

#: One of each kind, small enough to be run, for 8x8 pixels.
SMALL = {
    "mlp": MLP(3, (6, 5), layer_norm=False, activation="relu", batch_norm=True),
    "lenet5": LeNet5(3, (8, 8)),
    "resnet": ResNet(3, (8, 8), blocks_per_stage=1, width=4),
    "vgg": VGG(3, (8, 8), stages=((4,), (6,))),
}


def shapes_of(net: nn.Module, columns: int) -> dict:
    return jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((2, columns)))


def variables_of(net: nn.Module, columns: int = 64) -> dict:
    """Small random variables, positive variances among them, without compiling the start."""
    draws = np.random.default_rng(0)
    return jax.tree.map(
        lambda leaf: jnp.asarray(draws.uniform(0.1, 0.6, leaf.shape) - 0.4 * (leaf.ndim > 1), "f4"),
        shapes_of(net, columns),
    )


def numpy_convolve(x: np.ndarray, kernel: np.ndarray, padding: int, stride: int = 1) -> np.ndarray:
    """By definition: ``(B, H, W, I)`` and ``(K, K, I, O)``."""
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], axis=(1, 2))
    return np.einsum("bhwikl,klio->bhwo", windows, kernel)[:, ::stride, ::stride]


def pool(x: np.ndarray) -> np.ndarray:
    x = x[:, : x.shape[1] // 2 * 2, : x.shape[2] // 2 * 2]
    return np.max([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], axis=0)


def test_parameters_of_lenet5() -> None:
    dense = 400 * 120 + 120 + 120 * 84 + 84 + 84 * 10 + 10
    convolutions = 25 * 6 + 6 + 25 * 6 * 16 + 16
    shapes = shapes_of(build_network("lenet5", 10, image_shape=(28, 28)), 784)
    assert count_parameters(shapes["params"]) == dense + convolutions + 2 * (6 + 16) == 61_750


def test_parameters_of_resnet32() -> None:
    expected = 9 * 3 * 16 + 2 * 16 + 64 * 10 + 10
    before = 16
    for channels in (16, 32, 64):
        expected += 9 * before * channels + 9 * channels**2 * 9 + 10 * 2 * channels
        before = channels
    shapes = shapes_of(build_network("resnet32", 10, image_shape=(32, 32, 3)), 3072)
    assert count_parameters(shapes["params"]) == expected == 464_154
    # 31 convolutions and the dense layer give the name.
    assert sum(leaf.ndim > 1 for leaf in jax.tree.leaves(shapes["params"])) == 32


@slow_ids("resnet32-image_shape6")
@slow_ids("vgg19-*")
@pytest.mark.parametrize(
    ("network", "image_shape"),
    [
        ("mlp", (8, 8)),
        *(("lenet5", shape) for shape in [(28, 28), (32, 32, 3), (8, 8), (9, 13, 2), (4, 4)]),
        ("resnet32", (9, 13, 2)),
        ("vgg19", (40, 33, 1)),
    ],
)
def test_shapes(network: str, image_shape: tuple[int, ...]) -> None:
    net = build_network(network, 7, image_shape=image_shape)
    columns = math.prod(image_shape)
    variables = shapes_of(net, columns)
    x, weight = jnp.zeros((5, columns)), jnp.ones(5)

    def train(variables, x, weight):
        return net.apply(variables, x, train=True, weight=weight, mutable=["batch_stats"])

    outputs, moved = jax.eval_shape(train, variables, x, weight)
    chex.assert_shape(outputs, (5, 7))
    assert set(moved) == set(variables) - {"params"}
    chex.assert_trees_all_equal_shapes(moved.get("batch_stats"), variables.get("batch_stats"))


def test_lenet5_in_numpy() -> None:
    net = LeNet5(3, (12, 10, 2))
    variables = variables_of(net, 240)
    x = jax.random.normal(jax.random.key(2), (4, 240))
    p, stats = (
        jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), variables[name])
        for name in ("params", "batch_stats")
    )
    y = np.asarray(x, np.float64).reshape(4, 12, 10, 2)
    # Of the 6x5 pixels before it a second convolution without padding would leave 2x1.
    for number in range(2):
        conv, scale, norm = p[f"Conv_{number}"], p[f"BatchNorm_{number}"], f"BatchNorm_{number}"
        y = numpy_convolve(y, conv["kernel"], 2) + conv["bias"]
        y = (y - stats[norm]["mean"]) / np.sqrt(stats[norm]["var"] + 1e-5)
        y = pool(np.maximum(y * scale["scale"] + scale["bias"], 0))
    y = y.reshape(4, -1)
    for number in range(3):
        dense = p[f"FanInDense_{number}"]["Dense_0"]
        y = y @ dense["kernel"] + dense["bias"]
        y = np.maximum(y, 0) if number < 2 else y
    outputs = np.asarray(jax.jit(net.apply)(variables, x), np.float64)
    chex.assert_trees_all_close(outputs, y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("side", [4, 5])
def test_residual_block_in_numpy(side: int) -> None:
    block = ResidualBlock(4, stride=2)
    x = np.random.default_rng(1).normal(size=(3, side, side, 2)).astype(np.float32)
    shapes = jax.eval_shape(block.init, jax.random.key(0), x)
    draws = np.random.default_rng(2)
    variables = jax.tree.map(lambda leaf: np.float32(draws.uniform(0.1, 1, leaf.shape)), shapes)

    def norm(y, name):
        affine, stats = variables["params"][name], variables["batch_stats"][name]
        y = (y - stats["mean"]) / np.sqrt(stats["var"] + 1e-5)
        return y * affine["scale"] + affine["bias"]

    kernels = [variables["params"][f"Conv_{number}"]["kernel"] for number in (0, 1)]
    y = np.maximum(norm(numpy_convolve(x, kernels[0], 1, stride=2), "BatchNorm_0"), 0)
    y = norm(numpy_convolve(y, kernels[1], 1), "BatchNorm_1")
    y[..., :2] += x[:, ::2, ::2]
    outputs = np.asarray(jax.jit(block.apply)(variables, x))
    chex.assert_trees_all_close(outputs, np.maximum(y, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("network", SMALL)
def test_padding_rows_change_nothing(network: str) -> None:
    net = SMALL[network]
    variables = variables_of(net)

    @jax.jit
    def train(x, weight):
        return net.apply(variables, x, train=True, weight=weight, mutable=["batch_stats"])

    x = np.random.default_rng(1).normal(size=(6, 64)).astype(np.float32)
    # Any weight above 0 counts once in the statistics.
    weight = np.float32([1, 0, 0.5, 2, 0, 0])
    real, filled = np.flatnonzero(weight), np.flatnonzero(weight == 0)
    outputs, moved = train(x, weight)
    other_x = x.copy()
    other_x[filled] += 100
    other, other_moved = train(other_x, weight)
    chex.assert_trees_all_equal(moved, other_moved)
    chex.assert_trees_all_close(outputs[real], other[real], rtol=1e-5, atol=1e-5)
    # The real rows twice have the statistics of the real rows.
    twice, twice_moved = train(x[np.tile(real, 2)], np.ones(6, np.float32))
    chex.assert_trees_all_close(outputs[real], twice[:3], rtol=1e-3, atol=1e-4)
    chex.assert_trees_all_close(moved, twice_moved, rtol=1e-4, atol=1e-5)
    # With weights the others would matter.
    _, unweighted = train(x, np.ones(6, np.float32))
    for leaf, expected in zip(jax.tree.leaves(moved), jax.tree.leaves(unweighted), strict=True):
        assert not np.allclose(leaf, expected, rtol=1e-4)
    # Statistics of no row at all would be NaN.
    chex.assert_tree_all_finite(train(x, np.zeros(6, np.float32)))


@pytest.mark.parametrize("image_shape", [(6, 4), (6, 4, 3)])
def test_rows_as_images(image_shape: tuple[int, ...]) -> None:
    images = np.arange(2 * math.prod(image_shape)).reshape(2, *image_shape)
    for order in ("C", "F"):
        rows = np.stack([image.ravel(order=order) for image in images])
        found = to_images(jnp.asarray(rows), image_shape, order)
        chex.assert_trees_all_equal(np.asarray(found), images.reshape(2, 6, 4, -1))


@pytest.mark.parametrize("network", ["lenet5", "resnet", "vgg"])
def test_image_order_f_is_the_transposed_image(network: str) -> None:
    net = SMALL[network]
    variables = variables_of(net)
    images = np.random.default_rng(1).normal(size=(2, 8, 8)).astype(np.float32)
    lines, columns = images.reshape(2, 64), images.transpose(0, 2, 1).reshape(2, 64)
    expected = jax.jit(net.apply)(variables, lines)
    apply_f = jax.jit(net.clone(image_order="F").apply)
    chex.assert_trees_all_close(apply_f(variables, columns), expected, rtol=1e-5, atol=1e-5)
    assert not np.allclose(apply_f(variables, lines), expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("height", "width", "size", "stride", "padding"),
    [(6, 7, 3, 2, 1), (1, 2, 3, 2, 1), (3, 2, 5, 1, 2), (9, 10, 3, 3, 0)],
)
def test_convolution_and_its_gradients(
    height: int, width: int, size: int, stride: int, padding: int
) -> None:
    draws = np.random.default_rng(1)
    x = draws.normal(size=(2, height, width, 3)).astype(np.float32)
    kernel = draws.normal(size=(size, size, 3, 4)).astype(np.float32)

    @jax.jit
    def outputs_and_gradients(x, kernel):
        def of(convolution):
            y, pull = jax.vjp(lambda x, kernel: convolution(x, kernel, stride, padding), x, kernel)
            return y, pull(jnp.sin(y))

        return of(convolve_for_cpu), of(convolve_plainly)

    results, expected = outputs_and_gradients(x, kernel)
    chex.assert_trees_all_close(results, expected, rtol=1e-4, atol=1e-4)
    y = numpy_convolve(x, kernel, padding, stride)
    chex.assert_trees_all_close(np.asarray(results[0]), y, rtol=1e-4, atol=1e-4)


def test_convolution_chosen_by_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    def primitives():
        x, kernel = jnp.ones((1, 4, 4, 1)), jnp.ones((3, 3, 1, 1))
        # A new function each time, as traces are kept.
        jaxpr = jax.make_jaxpr(lambda x, kernel: convolve(x, kernel))(x, kernel)
        return {equation.primitive.name for equation in jaxpr.eqns}

    assert primitives() == {"custom_vjp_call"}
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert primitives() == {"conv_general_dilated"}


@bad_calls(
    ("lenet", {}, "network='lenet': did you mean 'lenet5'?"),
    ("cnn9000", {}, "network='cnn9000'", "'mlp', 'lenet5', 'resnet32', 'vgg19'"),
    ("mlp", {"activation": "gelu"}, "activation='gelu'"),
    ("mlp", {"dropout": 1.5}, "dropout=1.5"),
    ("mlp", {"hidden": (8, 0)}, "hidden"),
    ("vgg19", {"image_shape": (28, 28)}, "at least 32x32 pixels"),
    ("lenet5", {"image_shape": (3, 9)}, "at least 4x4 pixels"),
    ("resnet32", {"image_shape": (784,)}, "image_shape=(784,); choose (H, W)"),
    ("resnet32", {"image_shape": (8, 8), "image_order": "A"}, "image_order='A'"),
    *((network, {}, network, "no image_shape; choose") for network in NETWORKS[1:]),
)
def test_networks_that_cannot_be_built(bad: tuple) -> None:
    refuses(lambda: build_network(bad[0], 2, **bad[1]), *bad[2:])
