"""The shared body of the methods that train a sparse network and rewire it once an epoch.

SET, RigL, CTRE, SNIP, QuickSelection and their controls differ in its arguments only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from fsjax import tasks
from fsjax.errors import ConfigError, check_whole
from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.methods.checks import check_choice
from fsjax.nets import Feedforward
from fsjax.nets.feedforward import ACTIVATIONS, INITIALISATIONS, sparse_activations
from fsjax.optimizers import sgd
from fsjax.sparsity import (
    DropRule,
    GrowRule,
    Layer,
    apply_masks,
    erdos_renyi_counts,
    init_masks,
    rewire,
    snip_masks,
    uniform_counts,
)
from fsjax.sparsity.coordinates import MAX_DENSITY, gather, positions_of, scatter
from fsjax.sparsity.similarity import SIMILARITIES, Moments, moments

#: Rows whose activations are held at once.
ROWS_AT_ONCE = 4096

#: Starting weights of new connections, given the fan-in of the dense layer.
GROW_INITS: dict[str, Callable[[Array, Sequence[int]], Array]] = {
    "zeros": lambda key, shape: jnp.zeros(shape),
    "uniform": lambda key, shape: (
        jax.random.uniform(key, shape, minval=-1.0, maxval=1.0) * jnp.sqrt(6.0 / shape[0])
    ),
}


#: Forms in which layers are trained while the topology rests.
FORMS = ("auto", "dense", "coordinates")


class Rewiring(NamedTuple):
    """How the topology changes after an epoch.

    Attributes:
      drop, grow: rules.
      drop_fraction: share of the connections of each layer that is dropped, in [0, 1].
      grow_init: starting weights of new connections, a name in :data:`GROW_INITS`.
      uses_gradient: whether a rule needs the dense gradient (of one random batch).
      similarity: the similarity that a rule needs, a name in ``SIMILARITIES``.
      similarity_fraction: share of the training rows for it, in (0, 1].
      search: ``(state) -> bool``, what ``Layer.search`` is; once true it stays so.
    """

    drop: DropRule
    grow: GrowRule
    drop_fraction: float = 0.2
    grow_init: str = "uniform"
    uses_gradient: bool = False
    similarity: str | None = None
    similarity_fraction: float = 1.0
    search: Callable[[TrainState], Array] | None = None


def sparse_network(
    name: str,
    *,
    hidden: Sequence[int],
    epsilon: float | None,
    density: float | None,
    rewiring: Rewiring | None,
    activation: str = "relu",
    initialisation: str = "glorot",
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 1e-4,
    input_noise: float = 0.0,
    prune_at_start: bool = False,
    form: str = "auto",
    only: tuple[str, ...] = tasks.TASKS,
) -> Method:
    """A feedforward network with masks on its weights.

    Gradients reach active connections only. New connections start at ``grow_init`` without
    momentum; a connection that is dropped and grown again at once keeps its weight and momentum.

    Args:
      name: the name of the method.
      hidden: widths of the hidden layers, at least one.
      epsilon: Erdos-Renyi: a layer has ``epsilon (n_in + n_out)`` connections.
      density: instead, the share of active connections in every layer. Neither means a dense
        network.
      rewiring: how the topology changes after every epoch but the last; ``None`` keeps it.
      activation: of the hidden layers.
      initialisation: of weights and biases.
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights (not biases) in the loss.
      input_noise: standard deviation of Gaussian noise on the inputs of each training batch.
      prune_at_start: SNIP: start dense and keep the connections of largest sensitivity.
      form: of the layers while the topology rests: ``dense`` with masks, ``coordinates``, or
        ``auto``: coordinates for layers of at most 2 % density on a CPU, where they are faster.
        The results are equal up to floating-point reassociation.
      only: the tasks that the method is for; the first is its default.

    Returns:
      The method. The score of a column is the sum of the absolute weights of its connections.

    Raises:
      ConfigError: for a value outside its range.
    """
    hidden = check_hidden(hidden)
    check_choice("activation", activation, ACTIVATIONS)
    check_choice("initialisation", initialisation, INITIALISATIONS)
    check_choice("form", form, FORMS)
    counts = connection_counts(epsilon, density)
    for label, value in (("l2", l2), ("input_noise", input_noise)):
        check_at_least_0(label, value)
    optimizer = sgd(learning_rate, momentum)
    hyper = {"l2": l2, "input_noise": input_noise}
    if rewiring is not None or prune_at_start:
        check_sparse(name, epsilon, density)
    if rewiring is not None:
        check_share("drop_fraction", rewiring.drop_fraction)
        check_choice("grow_init", rewiring.grow_init, GROW_INITS)
        if rewiring.similarity is not None:
            check_choice("similarity", rewiring.similarity, SIMILARITIES)
        if not 0 < rewiring.similarity_fraction <= 1:
            raise ConfigError(
                f"similarity_fraction={rewiring.similarity_fraction}; choose a share in (0, 1]"
            )
        hyper["drop_fraction"] = rewiring.drop_fraction

    def network(spec: Spec) -> Feedforward:
        return Feedforward(spec.num_outputs, hidden, activation, initialisation)

    def init(key: Array, spec: Spec) -> TrainState:
        key_train, key_network, key_masks = jax.random.split(key, 3)
        params = network(spec).init(key_network, jnp.zeros((1, spec.num_features)))["params"]
        masks: PyTree = ()
        if prune_at_start:
            masks = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, bool), params)
        elif counts is not None:
            masks = init_masks(key_masks, params, counts)
            params = apply_masks(params, masks)
        extra = {}
        if rewiring is not None and rewiring.search is not None:
            extra["search"] = jnp.zeros((), bool)
        return create_state(
            key_train, spec, params, optimizer, hyper=hyper, masks=masks, extra=extra
        )

    def activations(params: PyTree, state: TrainState, x: Array) -> list[Array]:
        if "positions" in state.extra:
            return sparse_activations(params, state.extra["positions"], x, activation)
        return network(state.spec).apply({"params": params}, x, method="activations")

    def apply(params: PyTree, state: TrainState, x: Array) -> Array:
        return activations(params, state, x)[-1]

    def task_loss(params: PyTree, state: TrainState, batch: Batch) -> Array:
        return tasks.loss(state.spec.task, apply(params, state, batch.x), batch.y, batch.weight)

    def loss(
        params: PyTree, state: TrainState, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        if state.masks != ():
            # Layers in coordinates hold active weights only.
            params = jax.tree.map(
                lambda leaf, mask: jnp.where(mask, leaf, 0) if leaf.shape == mask.shape else leaf,
                params,
                state.masks,
            )
        if input_noise:
            noise = state.hyper["input_noise"] * jax.random.normal(key, batch.x.shape)
            batch = batch._replace(x=batch.x + noise)
        value = task_loss(params, state, batch)
        if l2:
            squares = sum(jnp.sum(jnp.square(layer["kernel"])) for layer in params.values())
            value = value + 0.5 * state.hyper["l2"] * squares
        return value, {}

    def after_epoch(state: TrainState, data: Batch, key: Array) -> TrainState:
        if rewiring.search is not None:
            search = state.extra["search"] | rewiring.search(state)
            state = state.replace(extra={**state.extra, "search": search})
        # A change after the last epoch would never be trained.
        return jax.lax.cond(
            state.epoch < state.spec.num_epochs, lambda: change(state, data, key), lambda: state
        )

    def change(state: TrainState, data: Batch, key: Array) -> TrainState:
        key_rules, key_rows = jax.random.split(key)
        gradients = similarities = None
        if rewiring.uses_gradient:
            batch = random_batch(key_rows, data, state.spec.batch_size)
            gradients = jax.grad(task_loss)(state.params, state, batch)
        if rewiring.similarity is not None:
            x = some_rows(key_rows, data.x, rewiring.similarity_fraction)
            compressed = compress(state)
            similarities = layer_similarities(
                lambda rows: firing(compressed, rows), x, rewiring.similarity
            )
        params, masks, kept = dict(state.params), dict(state.masks), dict(state.masks)
        for number in range(len(state.params)):
            layer = f"layer_{number}"
            kernel, mask = params[layer]["kernel"], masks[layer]["kernel"]
            key_layer, key_init = jax.random.split(jax.random.fold_in(key_rules, number))
            about = Layer(
                kernel,
                mask,
                gradient=gradients[layer]["kernel"] if gradients else None,
                similarity=similarities[number] if similarities else None,
                search=state.extra.get("search"),
            )
            fraction = state.hyper["drop_fraction"]
            changed = rewire(about, rewiring.drop, rewiring.grow, fraction, key_layer)
            fresh = GROW_INITS[rewiring.grow_init](key_init, kernel.shape)
            kernel = jnp.where(changed.mask, jnp.where(changed.new, fresh, kernel), 0.0)
            params[layer] = {**params[layer], "kernel": kernel}
            masks[layer] = {**masks[layer], "kernel": changed.mask}
            kept[layer] = {**kept[layer], "kernel": changed.mask & ~changed.new}
        opt_state = optax.tree_utils.tree_map_params(
            optimizer, lambda moment, keep: jnp.where(keep, moment, 0), state.opt_state, kept
        )
        return state.replace(params=params, masks=masks, opt_state=opt_state)

    def firing(state: TrainState, x: Array) -> list[Array]:
        """Activations with class probabilities as the last ones."""
        values = activations(state.params, state, x)
        if state.spec.task == "classification":
            values[-1] = jax.nn.softmax(values[-1])
        return values

    def compress(state: TrainState) -> TrainState:
        if state.masks == ():
            return state
        shapes = [mask["kernel"].shape for mask in state.masks.values()]
        positions = jax.tree.map(lambda leaf: jnp.zeros((0,), jnp.int32), state.params)
        for layer, count in zip(state.masks, counts(shapes), strict=True):
            mask = state.masks[layer]["kernel"]
            if by_coordinates(form, count / mask.size):
                positions[layer]["kernel"] = positions_of(mask, count)
        params, opt_state = _everywhere(optimizer, gather, state, positions)
        extra = {**state.extra, "positions": positions}
        return state.replace(params=params, opt_state=opt_state, extra=extra)

    def expand(state: TrainState) -> TrainState:
        if "positions" not in state.extra:
            return state
        extra = dict(state.extra)
        positions = extra.pop("positions")
        params, opt_state = _everywhere(optimizer, scatter, state, positions, state.masks)
        return state.replace(params=params, opt_state=opt_state, extra=extra)

    def start(state: TrainState, data: Batch, key: Array) -> TrainState:
        batch = random_batch(key, data, state.spec.batch_size)
        gradients = jax.grad(task_loss)(state.params, state, batch)
        masks = snip_masks(state.params, gradients, counts)
        return state.replace(masks=masks, params=apply_masks(state.params, masks))

    def score(state: TrainState) -> Array:
        return jnp.sum(jnp.abs(state.params["layer_0"]["kernel"]), axis=1)

    method = Method(
        name=name,
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=lambda state, x: apply(state.params, state, x),
        score=score,
        compress=compress,
        expand=expand,
        input_connections=None if counts is None else input_connections,
        start=start if prune_at_start else None,
        tasks=only,
    )
    return method if rewiring is None else method._replace(after_epoch=after_epoch)


def _everywhere(
    optimizer: optax.GradientTransformation,
    change: Callable[..., Array],
    state: TrainState,
    *trees: PyTree,
) -> tuple[PyTree, PyTree]:
    """Parameters and optimiser state with all arrays of the parameters changed alike."""
    return (
        jax.tree.map(change, state.params, *trees),
        optax.tree_utils.tree_map_params(optimizer, change, state.opt_state, *trees),
    )


def by_coordinates(form: str, density: float) -> bool:
    """Whether a layer of this density is trained by its coordinates."""
    if form == "auto":
        return jax.default_backend() == "cpu" and density <= MAX_DENSITY
    return form == "coordinates"


def input_connections(state: TrainState) -> Array:
    """``(D,)`` active connections of every input neuron."""
    return jnp.sum(state.masks["layer_0"]["kernel"], axis=1, dtype=jnp.float32)


def connection_counts(
    epsilon: float | None, density: float | None
) -> Callable[[list[tuple[int, ...]]], list[int]] | None:
    """From the shapes of the layers to their connections; ``None`` where neither is given.

    A value of 0 counts as not given, for command lines that cannot say ``None``.

    Raises:
      ConfigError: where both are given, or one is out of its range.
    """
    if epsilon and density:
        raise ConfigError(f"epsilon={epsilon} and density={density}; set one of them to 0")
    if epsilon:
        erdos_renyi_counts([], epsilon)
        return lambda shapes: erdos_renyi_counts(shapes, epsilon)
    if density:
        uniform_counts([], density)
        return lambda shapes: uniform_counts(shapes, density)
    return None


def check_sparse(name: str, epsilon: float | None, density: float | None) -> None:
    """Raises ConfigError where neither epsilon nor density says how sparse a network is."""
    if not epsilon and not density:
        raise ConfigError(f"{name} trains a sparse network; give epsilon or density")


def random_batch(key: Array, data: Batch, size: int) -> Batch:
    """``size`` random training rows, with replacement."""
    rows = jax.random.randint(key, (size,), 0, data.x.shape[0])
    return jax.tree.map(lambda leaf: leaf[rows], data)


def some_rows(key: Array, x: Array, fraction: float) -> Array:
    """A random share of the rows of x, all of them in order for 1."""
    number = max(1, round(fraction * x.shape[0]))
    if number == x.shape[0]:
        return x
    return x[jax.random.permutation(key, x.shape[0])[:number]]


def layer_similarities(
    activations: Callable[[Array], list[Array]], x: Array, name: str
) -> list[Array]:
    """Similarities ``(I, O)`` of every layer over the rows ``(N, D)``, taken in chunks."""
    chunks = -(-x.shape[0] // ROWS_AT_ONCE)
    size = -(-x.shape[0] // chunks)

    def sums(number: Array) -> list[Moments]:
        rows = number * size + jnp.arange(size)
        real = (rows < x.shape[0]).astype(x.dtype)[:, None]
        values = [value * real for value in activations(x[jnp.minimum(rows, x.shape[0] - 1)])]
        return [moments(*pair) for pair in zip(values[:-1], values[1:], strict=True)]

    total = jax.lax.fori_loop(
        1, chunks, lambda i, total: jax.tree.map(jnp.add, total, sums(i)), sums(jnp.int32(0))
    )
    return [SIMILARITIES[name](layer) for layer in total]


def check_hidden(hidden: Sequence[int]) -> tuple[int, ...]:
    """Widths of hidden layers, at least one.

    Raises:
      ConfigError: if there is none, or one is no positive whole number.
    """
    if len(hidden) == 0:
        raise ConfigError("hidden is empty; give the width of at least one hidden layer")
    return tuple(check_whole("a width of hidden", width) for width in hidden)


def check_share(label: str, value: float) -> None:
    """Raises ConfigError unless the value is in [0, 1]."""
    if not 0 <= value <= 1:
        raise ConfigError(f"{label}={value}; choose a share from 0 to 1")


def check_at_least_0(label: str, value: float) -> None:
    """Raises ConfigError unless the value is finite and at least 0."""
    if not 0 <= value < float("inf"):
        raise ConfigError(f"{label}={value}; choose 0 or more")
