"""Networks that rewire themselves, in NumPy, and the data and the settings of their tests."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

import fsjax
from fsjax.engine.loop import init_state
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.methods.shared import rule_inputs

N, B, D, C = 29, 8, 13, 3
SIZES = dict(hidden=(8,), epsilon=1.5)
SHAPES = [(D, 8), (8, C)]
DEEPER = dict(hidden=(8, 6), epsilon=1.5)


def spec_for(task: str = "classification", **changes) -> Spec:
    outputs = {"classification": C, "reconstruction": D, "regression": C}[task]
    return Spec(D, outputs, task, N, B, num_epochs=8, steps_per_epoch=4)._replace(**changes)


def rows(task: str = "classification") -> Batch:
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(N, D)), jnp.float32)
    y = {
        "classification": jnp.asarray(rng.integers(0, C, N), jnp.int32),
        "reconstruction": x,
        "regression": jnp.asarray(rng.normal(size=(N, C)), jnp.float32),
    }[task]
    return Batch(x, y, jnp.ones(N))


@functools.cache
def start(spec: Spec, hidden: tuple[int, ...]) -> TrainState:
    method = fsjax.methods.static_sparse(hidden=hidden, epsilon=1.5)
    return begun(method, spec)


def begun(method: Method, spec: Spec) -> TrainState:
    """The state before the first step."""
    columns = jnp.ones(D, bool)
    initialise = jax.jit(lambda seed: init_state(method, spec, seed, rows(spec.task), columns))
    return initialise(np.uint32(0))


def some_state(method: Method, spec: Spec | None = None) -> TrainState:
    """As after an epoch: biases and the momentum of active connections are not 0."""
    options = dict(method.about.settings)
    # All methods of this kind start alike.
    state = start(spec or spec_for(), options["hidden"])
    rng = np.random.default_rng(0)

    def like(leaf: jax.Array) -> jax.Array:
        return jnp.asarray(rng.normal(size=leaf.shape), jnp.float32)

    return state.replace(
        epoch=jnp.int32(1),
        params={
            name: {**layer, "bias": 0.3 * like(layer["bias"])}
            for name, layer in state.params.items()
        },
        opt_state=optax.tree_utils.tree_map_params(
            method.optimizer,
            lambda leaf, mask: jnp.where(mask, like(leaf), 0),
            state.opt_state,
            state.masks,
        ),
        log={"search": jnp.array(False)} if "patience" in options else (),
    )


def change(method: Method, state: TrainState, task: str = "classification", seed: int = 3):
    """The state after ``after_epoch`` with the key of this seed."""
    return jax.jit(method.after_epoch)(state, rows(task), jax.random.key(seed))


def kernels(tree) -> list[np.ndarray]:
    return [np.array(tree[f"layer_{i}"]["kernel"]) for i in range(len(tree))]


def momentum(state: TrainState) -> list[np.ndarray]:
    return kernels(optax.tree_utils.tree_get(state.opt_state, "trace"))


def forward(params, x: np.ndarray) -> list[np.ndarray]:
    """Activations of a ReLU network in NumPy and float64, with plain outputs."""
    values = [np.asarray(x, np.float64)]
    for i, weight in enumerate(kernels(params)):
        y = values[-1] @ weight.astype(np.float64) + np.asarray(params[f"layer_{i}"]["bias"])
        values.append(y if i == len(params) - 1 else np.maximum(y, 0))
    return values


def softmax(logits: np.ndarray) -> np.ndarray:
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def slopes(params, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Gradients of the mean cross-entropy with respect to all weights, in NumPy."""
    values, weights = forward(params, x), kernels(params)
    back = (softmax(values[-1]) - np.eye(C)[y]) / len(y)
    gradients = []
    for i in reversed(range(len(weights))):
        gradients.insert(0, values[i].T @ back)
        back = back @ weights[i].T * (values[i] > 0)
    return gradients


def top(scores: np.ndarray, number: int, among: np.ndarray) -> np.ndarray:
    """The highest scores; ties go to the lowest position."""
    flat = np.where(among, scores, -np.inf).ravel()
    chosen = np.zeros(flat.size, bool)
    chosen[np.argsort(-flat, kind="stable")[:number]] = True
    return chosen.reshape(scores.shape) & among


def dropped_by_magnitude(weight: np.ndarray, mask: np.ndarray, fraction: float) -> np.ndarray:
    number = int(np.floor(fraction * mask.sum() + 1e-3))
    return top(-np.abs(weight), number, mask)


def cosines(params, x: np.ndarray, task: str) -> list[np.ndarray]:
    values = forward(params, x)
    if task == "classification":
        values[-1] = softmax(values[-1])
    unit = [v / np.maximum(np.linalg.norm(v, axis=0), 1e-6) for v in values]
    return [np.abs(a.T @ b) for a, b in zip(unit[:-1], unit[1:], strict=True)]


def random_rows(key: jax.Array, task: str = "classification") -> Batch:
    """The batch from which a change with this key computes gradients."""
    return rule_inputs.random_batch(jax.random.split(key)[1], rows(task), B)
