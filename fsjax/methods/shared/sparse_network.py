"""The shared body of the methods that train a sparse network and rewire it once an epoch.

SET, RigL, CTRE, SNIP, QuickSelection and their controls differ in its arguments only. While the
topology rests, layers with few connections are held by their coordinates, which is faster; the
masks stay as they are, and the kept state is dense again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax import tasks
from fsjax.arguments import (
    STATIC,
    TERM,
    Layers,
    NonNegative,
    Optimizer,
    Positive,
    Rate,
    Schedule,
    takes_part,
)
from fsjax.errors import ConfigError
from fsjax.method import About, Batch, Method, PyTree, Selection, Spec, TrainState, create_state
from fsjax.methods.shared.attribution import Score, scored_by
from fsjax.methods.shared.connected_network import (
    change_held,
    gradient_pairs,
    held_by_connections,
    init_held,
    input_strength,
    is_held,
    layer_shapes,
    only_active,
    similar_pairs,
)
from fsjax.nets import Feedforward
from fsjax.nets.connected import connected_activations
from fsjax.nets.feedforward import sparse_activations
from fsjax.noise import normal
from fsjax.optimizers import for_run
from fsjax.sparse_rows import SparseRows, rows_at_once
from fsjax.sparsity import DropRule, GrowRule, Recipe, apply_masks, init_masks, snip_masks
from fsjax.sparsity.connections import without_index
from fsjax.sparsity.coordinates import MAX_DENSITY, gather, positions_of, scatter
from fsjax.sparsity.rewiring import drops_connections, grows_connections
from fsjax.sparsity.similarity import SIMILARITIES, Moments, moments
from fsjax.sparsity.topology import (
    cond_with_key,
    keep_moments,
    layers_of,
    needs_of,
    rule_name,
    shrinks,
)

#: Rows whose activations are held at once.
ROWS_AT_ONCE = 4096

#: Starting weights of new connections; ``uniform`` within sqrt(6 / n_in).
GROW_INITS = {"zeros": jax.nn.initializers.zeros, "uniform": jax.nn.initializers.he_uniform()}

GrowInit = Literal["uniform", "zeros"]


@dataclass(frozen=True)
class DenseOptions:
    """Arguments of the classifiers of the CTRE paper, whose own networks are larger.

    Attributes:
      hidden: widths of the hidden layers, at least one, as a tuple.
      optimizer: ``sgd``; or an Optax transformation, or a function of the Spec that gives one.
      learning_rate: of gradient descent with Nesterov's momentum, above 0; or an Optax schedule.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights (not biases) in the loss.
      rank_by: score of a column: by the derivatives of the outputs, see
        :func:`fsjax.methods.shared.attribution.scored_by`, or its ``strength``, the sum of the
        absolute weights of its connections.
    """

    hidden: Layers = (200, 200, 200)
    optimizer: Literal["sgd"] | Optimizer = "sgd"
    learning_rate: Positive | Schedule = 0.01
    momentum: Rate = 0.9
    l2: Annotated[NonNegative, TERM] = 1e-4
    rank_by: Score = "attribution"


@dataclass(frozen=True)
class SparseOptions(DenseOptions):
    """Arguments of all sparse networks.

    Attributes:
      hidden: widths of the hidden layers, at least one, as a tuple.
      epsilon: Erdos-Renyi: a layer has ``epsilon (n_in + n_out)`` connections.
      density: instead of epsilon (then 0), the share of connections in every layer.
      optimizer: ``sgd``; or an Optax transformation, or a function of the Spec that gives one.
      learning_rate: of gradient descent with Nesterov's momentum, above 0; or an Optax schedule.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights (not biases) in the loss.
      form: of the layers: ``dense`` with masks; ``coordinates`` while the topology rests;
        ``topology``: by their connections alone, without any matrix, where at most a quarter of
        them is there. ``auto``: topology for layers of more than 33 million pairs of neurons,
        coordinates for others of at most 2 % density on a CPU. The results are equal up to
        floating-point reassociation, and up to other random numbers in layers of more than 262,144
        pairs of neurons with ``topology``.
      rank_by: as for :class:`DenseOptions`.
    """

    epsilon: Annotated[NonNegative, STATIC] | None = 5.0
    density: Annotated[NonNegative, STATIC] | None = None
    form: Literal["auto", "dense", "coordinates", "topology"] = "auto"


class Shared(TypedDict):
    """Arguments of :func:`fsjax.registry.register` that the sparse classifiers share."""

    num_epochs: int
    batch_size: int
    small: Mapping[str, Any]
    options: SparseOptions


#: What the registrations of the sparse classifiers share.
SPARSE: Shared = {
    "num_epochs": 500,
    "batch_size": 100,
    "small": {"hidden": (16, 8), "epsilon": 4.0, "form": "coordinates", "learning_rate": 0.03},
    "options": SparseOptions(),
}


def sparse_network(
    *,
    drop: DropRule | None = None,
    grow: GrowRule | None = None,
    drop_fraction: float = 0.0,
    grow_init: str = "zeros",
    activation: str = "relu",
    initialisation: str = "glorot",
    input_noise: float = 0.0,
    prune: bool = False,
    similarity: str = "cosine",
    similarity_fraction: float = 1.0,
    search: Callable[[TrainState], Array] | None = None,
    sparse: bool = True,
    only: tuple[str, ...] = tasks.TASKS,
    **options: Any,
) -> Method:
    """A feedforward network with masks on its weights.

    Gradients reach active connections only. New connections start at the recipe's ``grow_init``
    without momentum; one that is dropped and grown again at once keeps its weight and momentum.
    The score of a column is the sum of the absolute weights of its connections.

    Args:
      drop, grow: rules by which the connections change after every epoch but the last, of
        :mod:`fsjax.sparsity` or your own; without them they stay. They may need the similarity of
        neurons, the gradient on a random batch, or the state.
      drop_fraction: share of the connections that is dropped.
      grow_init: starting weights of new connections, a name in :data:`GROW_INITS`.
      activation, initialisation: see :class:`~fsjax.nets.Feedforward`.
      input_noise: standard deviation of Gaussian noise on the inputs of each training batch.
      prune: SNIP: start dense and keep the connections of largest sensitivity.
      similarity: the similarity that a rule needs, a name in ``SIMILARITIES``.
      similarity_fraction: share of the training rows for it, in (0, 1].
      search: ``(state) -> bool``, what ``Layer.search`` is; once true it stays so.
      sparse: whether there are masks at all.
      only: the tasks that the method is for; the first is its default.
      **options: those of :class:`SparseOptions`.
    """
    o, recipe = SparseOptions(**options), None
    if sparse:
        # 0 counts as not given, for command lines that cannot say None.
        if not o.epsilon and not o.density:
            raise ConfigError("the network is sparse; give epsilon or density")
        if o.epsilon and o.density:
            raise ConfigError(f"epsilon={o.epsilon} and density={o.density}; set one of them to 0")
        recipe = Recipe(
            epsilon=o.epsilon or None,
            density=o.density or None,
            distribution="uniform",
            drop=drop,
            grow=grow,
            fraction=drop_fraction,
            grow_init=GROW_INITS[grow_init],
        )
    exact = drop is None or not shrinks(grow)
    if o.form == "topology":
        _check_without_matrices(prune, drop, grow)
    if o.form in ("coordinates", "topology") and not exact:
        raise ConfigError(
            f"form={o.form!r} is for layers that keep their number of connections, and by these "
            "rules some may be lost; leave form out"
        )
    optimizer = o.optimizer
    if optimizer == "sgd":
        optimizer = optax.sgd(o.learning_rate, o.momentum, nesterov=True)
    needed = needs_of(drop, grow)
    available = {"similarity", "gradient", "state"} | ({"search"} if search else set())
    for field in sorted(needed - available):
        raise ConfigError(
            f"a rule of this network needs {field}, which it does not have; it has "
            f"{', '.join(sorted(available))}"
        )

    def network(spec: Spec) -> Feedforward:
        return Feedforward(spec.num_outputs, o.hidden, activation, initialisation)

    def init(key: Array, spec: Spec, data: Batch) -> TrainState:
        key_network, key_masks = jax.random.split(key)
        log = () if search is None else {"search": jnp.zeros((), bool)}
        if recipe is not None and not prune:
            shapes = layer_shapes(spec, o.hidden)
            counts = recipe.counts(shapes)
            held = held_by_connections(o.form, shapes, counts, recipe)
            if exact and any(held):
                about = (spec, shapes, counts, held, initialisation)
                params, masks = init_held(key_network, key_masks, *about)
                return create_state(spec, params, masks=masks, extra={}, log=log)
        params = network(spec).init(key_network, jnp.zeros((1, spec.num_columns)))["params"]
        state = create_state(spec, params, extra={}, log=log)
        if recipe is None:
            return state
        if prune:
            batch = random_batch(key_masks, data, spec.batch_size)
            masks = snip_masks(params, jax.grad(task_loss)(params, state, batch), recipe.counts)
        else:
            masks = init_masks(key_masks, params, recipe.counts)
        return compress(state.replace(params=apply_masks(params, masks), masks=masks))

    def activations(params: PyTree, state: TrainState, x: Array) -> list[Array]:
        if is_held(state):
            return connected_activations(params, state.masks, x, activation)
        if "positions" in state.extra:
            return sparse_activations(params, state.extra["positions"], x, activation)
        return network(state.spec).apply({"params": params}, x, method="activations")

    def task_loss(params: PyTree, state: TrainState, batch: Batch) -> Array:
        outputs = activations(params, state, batch.x)[-1]
        return state.spec.loss_of(outputs, batch.y, batch.weight)

    def active(params: PyTree, state: TrainState) -> PyTree:
        """The parameters with 0 for inactive weights."""
        if is_held(state):
            return jax.tree.map(only_active, params, state.masks)
        if state.masks == ():
            return params
        # Layers in coordinates hold active weights only.
        return jax.tree.map(
            lambda leaf, mask: jnp.where(mask, leaf, 0) if leaf.shape == mask.shape else leaf,
            params,
            state.masks,
        )

    def loss(params: PyTree, state: TrainState, batch: Batch, key: Array) -> tuple[Array, dict]:
        params = active(params, state)
        if takes_part(input_noise):
            noise = input_noise * normal(key, batch.x.shape)
            batch = batch._replace(x=batch.x + noise)
        value = task_loss(params, state, batch)
        if takes_part(o.l2):
            squares = sum(jnp.sum(jnp.square(layer["kernel"])) for layer in params.values())
            value = value + 0.5 * o.l2 * squares
        return value, {}

    def after_epoch(state: TrainState, data: Batch, key: Array) -> TrainState:
        if search is not None:
            state = state.replace(log={"search": state.log["search"] | search(state)})
        # A change after the last epoch would never be trained.
        return cond_with_key(
            state.epoch < state.spec.num_epochs,
            lambda key: compress(rewired(state, data, key)),
            lambda _: state,
            key,
        )

    def rewired(state: TrainState, data: Batch, key: Array) -> TrainState:
        key_rules, key_rows = jax.random.split(key)
        if is_held(state):
            return rewired_connections(state, data, key_rules, key_rows)
        given = {}
        if "similarity" in needed:
            x, real = some_rows(key_rows, data, similarity_fraction)
            found = layer_similarities(lambda rows: firing(state, rows), x, real, similarity)
            given["similarity"] = {
                f"layer_{number}": {"kernel": values} for number, values in enumerate(found)
            }
        state = expand(state)
        if "gradient" in needed:
            batch = random_batch(key_rows, data, state.spec.batch_size)
            given["gradient"] = jax.grad(task_loss)(state.params, state, batch)
        searches = None if search is None else state.log["search"]
        layers = layers_of(state.params, state.masks, search=searches, state=state, **given)
        changed = recipe.change(state.params, state.masks, layers, key_rules)
        opt_state = keep_moments(for_run(optimizer, state.spec), state.opt_state, changed)
        return state.replace(params=changed.params, masks=changed.masks, opt_state=opt_state)

    def rewired_connections(
        state: TrainState, data: Batch, key_rules: Array, key_rows: Array
    ) -> TrainState:
        given = {}
        if "similarity" in needed:
            x, real = some_rows(key_rows, data, similarity_fraction)
            given["similarity"] = similar_pairs(firing(state, x[:]), real, similarity)
        if "gradient" in needed:
            batch = random_batch(key_rows, data, state.spec.batch_size)

            def of_outputs(outputs: Array) -> Array:
                return state.spec.loss_of(outputs, batch.y, batch.weight)

            given["gradient"] = gradient_pairs(state, batch.x, activation, of_outputs)
        if search is not None:
            given["search"] = state.log["search"]
        tx = for_run(optimizer, state.spec)
        return change_held(state, recipe, tx, key_rules, grow_init, **given)

    def firing(state: TrainState, x: Array) -> list[Array]:
        """Activations with the probabilities of classes and labels as the last ones."""
        *values, last = activations(state.params, state, x)
        return [*values, tasks.TABLE[state.spec.task].activation(last)]

    def compress(state: TrainState) -> TrainState:
        """Layers of few connections by their coordinates."""
        if is_held(state) or not exact:
            return state
        masks = {layer: mask["kernel"] for layer, mask in state.masks.items()}
        counts = recipe.counts([mask.shape for mask in masks.values()])
        positions = {
            layer: positions_of(mask, count)
            for (layer, mask), count in zip(masks.items(), counts, strict=True)
            if by_coordinates(o.form, count / mask.size)
        }
        if not positions:
            return state
        extra = {**state.extra, "positions": positions}
        return everywhere(gather, state, positions).replace(extra=extra)

    def expand(state: TrainState) -> TrainState:
        """The inverse of :func:`compress`."""
        if is_held(state):
            return state.replace(masks=without_index(state.masks))
        if "positions" not in state.extra:
            return state
        # Methods that are made of this one have entries of their own there.
        extra = dict(state.extra)
        positions = extra.pop("positions")
        return everywhere(scatter, state, positions, state.masks).replace(extra=extra)

    def everywhere(
        change: Callable[..., Array], state: TrainState, positions: dict[str, Array], *trees: PyTree
    ) -> TrainState:
        """Changes all arrays of the parameters alike, those in the optimiser's state too."""
        # In the structure of the parameters, of length 0 where there are none.
        whole = jax.tree.map(lambda leaf: jnp.zeros((0,), jnp.int32), state.params)
        whole |= {name: {**whole[name], "kernel": own} for name, own in positions.items()}
        state = state.replace(params=jax.tree.map(change, state.params, whole, *trees))
        if state.opt_state == ():  # before the first step, and in what is kept
            return state
        tx = for_run(optimizer, state.spec)
        moments = optax.tree.map_params(tx, change, state.opt_state, whole, *trees)
        return state.replace(opt_state=moments)

    def select(state: TrainState) -> Selection:
        state = expand(state)
        return Selection(input_strength(state.params, state.masks))

    method = Method(
        About(tasks=only, sparse=True),
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=lambda state, x: activations(state.params, state, x)[-1],
        select=select,
        finish=lambda state, data, key: expand(state),
    )
    if drop is not None:
        method = method._replace(after_epoch=after_epoch)
    if o.optimizer != "sgd" and sparse:
        # Not every optimiser leaves a weight alone that has no gradient.
        method = method._replace(
            after_step=lambda state, *_: state.replace(params=active(state.params, state))
        )
    return scored_by(o.rank_by, method)


def _check_without_matrices(prune: bool, drop: DropRule | None, grow: GrowRule | None) -> None:
    """ConfigError unless layers can be made and rewired without any matrix."""
    if prune:
        subject = "pruning before training"
    elif not grows_connections(grow):
        subject = f"the rule {rule_name(grow)}"
    elif not drops_connections(drop):
        subject = f"the rule {rule_name(drop)}"
    else:
        return
    raise ConfigError(
        f"form='topology' has no array of all pairs of neurons, and {subject} needs one; leave "
        "form out"
    )


def by_coordinates(form: str, density: float) -> bool:
    """Whether a layer of this density is trained by its coordinates."""
    if form == "auto":
        return jax.default_backend() == "cpu" and density <= MAX_DENSITY
    return form == "coordinates"


def random_batch(key: Array, data: Batch, size: int) -> Batch:
    """``size`` random training rows, with replacement; rows that only fill up come last."""
    real = jnp.sum(data.weight > 0, dtype=jnp.int32)
    rows = jax.random.randint(key, (size,), 0, real)
    return data.take(rows)


def some_rows(key: Array, data: Batch, fraction: float) -> tuple[Array | SparseRows, Array]:
    """A random share of the rows, all of them in order for 1: ``(M, D)``, and which count."""
    real = data.weight > 0
    if fraction == 1:
        return data.x, real
    size = max(1, round(fraction * real.size))
    wanted = jnp.maximum(jnp.round(fraction * jnp.sum(real, dtype=jnp.float32)), 1)
    order = jnp.argsort(jnp.where(real, jax.random.uniform(key, real.shape), 2.0))
    chosen = order[:size]
    x = data.x.only(chosen) if isinstance(data.x, SparseRows) else data.x[chosen]
    return x, jnp.arange(size) < wanted


def layer_similarities(
    activations: Callable[[Array], list[Array]], x: Array | SparseRows, real: Array, name: str
) -> list[Array]:
    """Similarities ``(I, O)`` of every layer, taken in chunks of the rows ``x`` (N, D) that count.

    ``activations`` are those of every layer of neurons, ``(B, D) -> [(B, I), ...]``.
    """
    chunks = -(-x.shape[0] // rows_at_once(x, ROWS_AT_ONCE))
    size = -(-x.shape[0] // chunks)

    def sums(number: Array) -> list[Moments]:
        rows = number * size + jnp.arange(size)
        inside = jnp.minimum(rows, x.shape[0] - 1)
        counts = ((rows < x.shape[0]) & real[inside]).astype(x.dtype)[:, None]
        values = [value * counts for value in activations(x[inside])]
        return [moments(*pair) for pair in zip(values[:-1], values[1:], strict=True)]

    total = jax.lax.fori_loop(
        1, chunks, lambda i, total: jax.tree.map(jnp.add, total, sums(i)), sums(jnp.int32(0))
    )
    return [SIMILARITIES[name](layer) for layer in total]
