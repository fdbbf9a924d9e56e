"""The shared body of the methods that train a sparse network and rewire it once an epoch.

SET, RigL, CTRE, SNIP, QuickSelection and their controls differ in its arguments only. What form
the layers have is the matter of :mod:`fsjax.sparsity.layers`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
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
from fsjax.kernels.noise import normal
from fsjax.method import (
    About,
    Batch,
    Method,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.methods.shared.attribution import Score, scored_by
from fsjax.nets.mlp import ACTIVATIONS
from fsjax.optimizers import for_run
from fsjax.sparsity import DropRule, GrowRule, Recipe, snip_masks
from fsjax.sparsity.layers import MatrixScores, PairScores, Scores, Seen
from fsjax.sparsity.layers.connections import GROW_INITS
from fsjax.sparsity.layers.forms import check_form, largest_matrix, plan_layers
from fsjax.sparsity.layers.network import (
    NamedLayers,
    activations,
    active_layers,
    at_rest,
    draw_masks,
    expand,
    gradient_scores,
    init_params,
    layers_in,
    params_of,
    rewire,
)
from fsjax.sparsity.similarity import SIMILARITIES, Moments, moments
from fsjax.sparsity.topology import cond_with_key, needs_of
from fsjax.tables.sparse_rows import SparseRows, chosen_rows, rows_at_once
from fsjax.typing import PyTree

#: Rows whose activations are held at once.
ROWS_AT_ONCE = 4096

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
        them is there. ``auto``: the fastest, see :mod:`fsjax.sparsity.layers.forms`; what is kept
        are masks, but for layers of more than 33 million pairs of neurons. The results are equal
        up to floating-point reassociation, and up to other random numbers in layers of more than
        262,144 pairs of neurons by their connections.
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
    o = SparseOptions(**options)
    recipe = None
    if sparse:
        recipe = _recipe(o, drop=drop, grow=grow, fraction=drop_fraction, grow_init=grow_init)
        check_form(o.form, recipe, prune)
    _check_needs(drop, grow, {"search"} if search else set())
    optimizer = o.optimizer
    if optimizer == "sgd":
        optimizer = optax.sgd(o.learning_rate, o.momentum, nesterov=True)
    network = _Network(
        o,
        recipe,
        optimizer,
        ACTIVATIONS[activation],
        initialisation,
        input_noise,
        prune,
        similarity,
        similarity_fraction,
        search,
    )
    method = Method(
        About(tasks=only, sparse=True),
        init=network.init,
        loss=network.loss,
        optimizer=optimizer,
        predict=network.predict,
        select=lambda state: Selection(layers_in(state)["layer_0"].input_strength()),
        finish=lambda state, data, key: network.kept(state),
    )
    if drop is not None:
        method = method._replace(after_epoch=network.after_epoch)
    if o.optimizer != "sgd" and sparse:
        # Not every optimiser leaves a weight alone that has no gradient.
        method = method._replace(
            after_step=lambda state, *_: state.replace(params=params_of(active_layers(state)))
        )
    return scored_by(o.rank_by, method)


@dataclass(frozen=True, eq=False)
class _Network:
    """The functions of a sparse network; attributes are the arguments of :func:`sparse_network`."""

    options: SparseOptions
    recipe: Recipe | None
    optimizer: Optimizer
    activation: Callable[[Array], Array]
    initialisation: str
    input_noise: float
    prune: bool
    similarity: str
    similarity_fraction: float
    search: Callable[[TrainState], Array] | None

    def init(self, key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_network, key_masks = jax.random.split(key)
        widths = (spec.num_columns, *self.options.hidden, spec.num_outputs)
        plan = plan_layers(self.options.form, self.recipe, self.prune, widths)
        masks: PyTree = ()
        if self.recipe is not None and not self.prune:
            masks = draw_masks(key_masks, spec, plan)
        params = init_params(key_network, plan, masks, self.initialisation)
        log = () if self.search is None else {"search": jnp.zeros((), bool)}
        state = create_state(spec, params, masks=masks, extra={}, log=log)
        if self.recipe is None:
            return state
        if self.prune:
            batch = random_batch(key_masks, data, spec.batch_size)
            slopes = jax.grad(lambda params: self.task_loss(layers_in(state, params), state, batch))
            state = state.replace(masks=snip_masks(params, slopes(params), self.recipe.counts))
        return at_rest(state, plan)

    def predict(self, state: TrainState, x: Array) -> Array:
        return activations(layers_in(state), x, self.activation)[-1]

    def task_loss(self, layers: NamedLayers, state: TrainState, batch: Batch[Array]) -> Array:
        outputs = activations(layers, batch.x, self.activation)[-1]
        return state.spec.loss_of(outputs, batch.y, batch.weight)

    def loss(
        self, params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        layers = active_layers(state, params)
        if takes_part(self.input_noise):
            noise = self.input_noise * normal(key, batch.x.shape)
            batch = batch._replace(x=batch.x + noise)
        value = self.task_loss(layers, state, batch)
        if takes_part(self.options.l2):
            squares = sum(layer.l2() for layer in layers.values())
            value = value + 0.5 * self.options.l2 * squares
        return value, {}

    def after_epoch(self, state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        if self.search is not None:
            state = state.replace(log={"search": state.log["search"] | self.search(state)})
        # A change after the last epoch would never be trained.
        return cond_with_key(
            state.epoch < state.spec.num_epochs,
            lambda key: self.rewired(state, data, key),
            lambda _: state,
            key,
        )

    def rewired(self, state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        key_rules, key_rows = jax.random.split(key)
        layers, recipe = layers_in(state), self.recipe
        if recipe is None:
            return state
        needed = needs_of(recipe.drop, recipe.grow)
        scores: dict[str, Sequence[Scores]] = {}
        if "similarity" in needed:
            x, real = some_rows(key_rows, data, self.similarity_fraction)
            firing = functools.partial(self.firing, state)
            scores["similarity"] = similarity_scores(layers, firing, x, real, self.similarity)
        if "gradient" in needed:
            batch = random_batch(key_rows, data, state.spec.batch_size)
            scores["gradient"] = gradient_scores(
                layers,
                batch.x,
                self.activation,
                lambda outputs: state.spec.loss_of(outputs, batch.y, batch.weight),
            )
        search = None if self.search is None else state.log["search"]
        seen = Seen(0, {}, search, self.kept(state))
        optimizer = for_run(self.optimizer, state.spec)
        return rewire(state, recipe, scores, seen, key_rules, optimizer)

    def firing(self, state: TrainState, x: Array) -> list[Array]:
        """Activations with the probabilities of classes and labels as the last ones."""
        *values, last = activations(layers_in(state), x, self.activation)
        return [*values, tasks.TABLE[state.spec.task].activation(last)]

    def kept(self, state: TrainState) -> TrainState:
        """The state with layers in the form in which results have them."""
        most = largest_matrix(self.options.form)
        return expand(state, for_run(self.optimizer, state.spec), most)


def _recipe(
    o: SparseOptions,
    *,
    drop: DropRule | None,
    grow: GrowRule | None,
    fraction: float,
    grow_init: str,
) -> Recipe:
    # 0 counts as not given, for command lines that cannot say None.
    if not o.epsilon and not o.density:
        raise ConfigError("the network is sparse; give epsilon or density")
    if o.epsilon and o.density:
        raise ConfigError(f"epsilon={o.epsilon} and density={o.density}; set one of them to 0")
    return Recipe(
        epsilon=o.epsilon or None,
        density=o.density or None,
        distribution="uniform",
        drop=drop,
        grow=grow,
        fraction=fraction,
        grow_init=GROW_INITS[grow_init],
    )


def _check_needs(drop: DropRule | None, grow: GrowRule | None, further: set[str]) -> None:
    available = {"similarity", "gradient", "state"} | further
    for field in sorted(needs_of(drop, grow) - available):
        raise ConfigError(
            f"a rule of this network needs {field}, which it does not have; it has "
            f"{', '.join(sorted(available))}"
        )


def random_batch(key: Array, data: TrainingRows, size: int) -> Batch[Array]:
    """``size`` random training rows, with replacement; rows that only fill up come last."""
    real = jnp.sum(data.weight > 0, dtype=jnp.int32)
    rows = jax.random.randint(key, (size,), 0, real)
    return data.take(rows)


def some_rows(key: Array, data: TrainingRows, fraction: float) -> tuple[Array | SparseRows, Array]:
    """A random share of the rows, all of them in order for 1: ``(M, D)``, and which count."""
    real = data.weight > 0
    if fraction == 1:
        return data.x, real
    size = max(1, round(fraction * real.size))
    wanted = jnp.maximum(jnp.round(fraction * jnp.sum(real, dtype=jnp.float32)), 1)
    order = jnp.argsort(jnp.where(real, jax.random.uniform(key, real.shape), 2.0))
    chosen = order[:size]
    return chosen_rows(data.x, chosen), jnp.arange(size) < wanted


def similarity_scores(
    layers: NamedLayers,
    activations: Callable[[Array], list[Array]],
    x: Array | SparseRows,
    real: Array,
    name: str,
) -> Sequence[Scores]:
    """Similarities of the neurons of every layer, over the rows ``x`` (N, D) that count.

    ``activations`` are those of every layer of neurons, ``(B, D) -> [(B, I), ...]``. They are held
    for all rows at once if a layer is too large for a matrix of its scores.
    """
    if all(layer.scored_as_matrix for layer in layers.values()):
        return [MatrixScores(of) for of in layer_similarities(activations, x, real, name)]
    values = [value * real.astype(value.dtype)[:, None] for value in activations(x[:])]
    pairs = zip(values[:-1], values[1:], strict=True)
    return [PairScores(*pair, SIMILARITIES[name]) for pair in pairs]


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
