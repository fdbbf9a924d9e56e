"""A sparse network that is rewired once per epoch.

SET, RigL, CTRE, SNIP, QuickSelection and their controls differ only in its arguments. How the
layers are stored is decided by :mod:`fsjax.methods.shared.layers`.
"""

from __future__ import annotations

import dataclasses
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
    is_used,
    known,
)
from fsjax.engine.kernels.noise import normal
from fsjax.errors import ConfigError
from fsjax.method import (
    About,
    Batch,
    Method,
    Phase,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
    for_run,
)
from fsjax.methods.shared.attribution import ScoreName, scored_by
from fsjax.methods.shared.layers import LayerScores, RuleInputs
from fsjax.methods.shared.layers.connections import GROW_INITS
from fsjax.methods.shared.layers.forms import check_form, largest_matrix, plan_layers
from fsjax.methods.shared.layers.network import (
    NamedLayers,
    activations,
    active_layers,
    draw_masks,
    expand_layers,
    gradient_scores,
    init_params,
    layers_in,
    params_of,
    rewire_layers,
    without_inactive,
)
from fsjax.methods.shared.rule_inputs import (
    equal_similarities,
    random_batch,
    similarity_scores,
    some_rows,
)
from fsjax.nets.mlp import ACTIVATIONS
from fsjax.sparsity import DropRule, GrowRule, Recipe, snip_masks
from fsjax.sparsity.rules import as_rules
from fsjax.sparsity.topology import cond_with_key
from fsjax.typing import PyTree

GrowInit = Literal["uniform", "zeros"]


@dataclass(frozen=True)
class DenseOptions:
    """Arguments of a dense classifier, as in the CTRE paper but with smaller hidden layers.

    Attributes:
      hidden: widths of the hidden layers, at least one, as a tuple.
      optimizer: ``sgd``; or an Optax transformation, or a function from Spec to one.
      learning_rate: of gradient descent with Nesterov's momentum, above 0; or an Optax schedule.
      momentum: of gradient descent, in [0, 1).
      l2: factor of half the sum of squared weights (not biases) in the loss, at least 0.
      rank_by: score of a column: by the derivatives of the outputs, see
        :func:`fsjax.methods.shared.attribution.scored_by`; or its ``strength``, the sum of the
        absolute weights of its connections.

    Examples:
      >>> control = fsjax.methods.dense(hidden=(32, 32))
    """

    hidden: Layers = (200, 200, 200)
    optimizer: Literal["sgd"] | Optimizer = "sgd"
    learning_rate: Positive | Schedule = 0.01
    momentum: Rate = 0.9
    l2: Annotated[NonNegative, TERM] = 1e-4
    rank_by: ScoreName = "attribution"


#: The topology changes at the end of each epoch, and connections that grow then have to be trained.
REWIRED = Phase(
    name="connections that grow are trained (the topology changes after each epoch)",
    epochs=2,
    without="columns are ranked by a random topology",
    kept=False,
)


def rewired(drop_fraction: float) -> Callable[[Spec], tuple[Phase, ...]]:
    """The phases of a method whose topology changes after each epoch, if it changes at all."""
    still = known(drop_fraction) and drop_fraction == 0
    return lambda spec: () if still else (REWIRED,)


@dataclass(frozen=True)
class SparseOptions(DenseOptions):
    """Arguments of all sparse networks.

    Attributes:
      hidden: widths of the hidden layers, at least one, as a tuple.
      epsilon: Erdos-Renyi density: a layer has ``epsilon (n_in + n_out)`` connections.
      density: share of active connections in every layer, in place of epsilon (set that to 0).
      optimizer: ``sgd``; or an Optax transformation, or a function from Spec to one.
      learning_rate: of gradient descent with Nesterov's momentum, above 0; or an Optax schedule.
      momentum: of gradient descent, in [0, 1).
      l2: factor of half the sum of squared weights (not biases) in the loss, at least 0.
      form: how layers are stored: ``dense``, matrices with masks; ``topology``, lists of
        connections and no matrices, for layers with at most a quarter of all connections; ``auto``,
        the fastest, see :mod:`fsjax.methods.shared.layers.forms`. Results contain masks, except for
        layers of more than 33 million pairs of neurons. Both forms have the same distribution of
        connections, but draw other random numbers.
      rank_by: as for :class:`DenseOptions`.

    Examples:
      >>> method = fsjax.methods.set(hidden=(32, 32), epsilon=0.0, density=0.2)
    """

    epsilon: Annotated[NonNegative, STATIC] | None = 5.0
    density: Annotated[NonNegative, STATIC] | None = None
    form: Literal["auto", "dense", "topology"] = "auto"


class Shared(TypedDict):
    """Arguments of :func:`fsjax.registry.register` that the sparse classifiers share."""

    num_epochs: int
    batch_size: int
    small: Mapping[str, Any]
    options: SparseOptions


#: The values of these arguments.
SPARSE: Shared = {
    "num_epochs": 500,
    "batch_size": 100,
    "small": {"hidden": (16, 8), "epsilon": 4.0, "learning_rate": 0.03},
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
    first_growth: GrowRule | None = None,
    sparse: bool = True,
    only: tuple[str, ...] = tasks.TASKS,
    **options: Any,
) -> Method:
    """A feedforward network with masks on its weights.

    Gradients reach active connections only. New connections start at ``grow_init`` without
    momentum; a connection that is dropped and grown again in the same change keeps its weight and
    momentum.

    Args:
      drop, grow: rules of :mod:`fsjax.sparsity`, or your own, by which the connections change after
        every epoch except the last; without them the connections stay. A rule may need the
        similarity of neurons, the gradient on a random batch, or the state.
      drop_fraction: share of the connections that is dropped, in [0, 1].
      grow_init: initial weights of new connections, a name in :data:`GROW_INITS`.
      activation, initialisation: see :class:`~fsjax.nets.Feedforward`.
      input_noise: standard deviation of the Gaussian noise on the inputs of each training batch.
      prune: whether to start dense and keep the connections of largest sensitivity (SNIP).
      similarity: the similarity that a rule needs, a name in ``SIMILARITIES``.
      similarity_fraction: share of the training rows that it is computed from, in (0, 1].
      search: ``(state) -> bool``, evaluated after each epoch; ``Layer.search`` is true from the
        first epoch in which it is.
      first_growth: a grow rule by which the connections also change once before training, when all
        neurons are equally similar.
      sparse: whether there are masks at all.
      only: the tasks of the method; the first one is its default.
      **options: those of :class:`SparseOptions`.

    Examples:
      >>> from fsjax.methods.shared.sparse_network import sparse_network
      >>> method = sparse_network(
      ...     drop=sparsity.drop.magnitude, grow=sparsity.grow.random, drop_fraction=0.3
      ... )
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
    network = _SparseNetwork(
        options=o,
        recipe=recipe,
        optimizer=optimizer,
        activation=ACTIVATIONS[activation],
        initialisation=initialisation,
        input_noise=input_noise,
        prune=prune,
        similarity=similarity,
        similarity_fraction=similarity_fraction,
        search=search,
        first_growth=first_growth,
    )
    method = Method(
        About(tasks=only, sparse=True),
        init=network.init,
        loss=network.loss,
        optimizer=optimizer,
        predict=network.predict,
        select=lambda state: Selection(layers_in(state)["layer_0"].input_strength()),
        finish=lambda state, data, key: network.as_result(state),
    )
    if drop is not None:
        method = method._replace(after_epoch=network.after_epoch, phases=rewired(drop_fraction))
    if o.optimizer != "sgd" and sparse:
        # Some optimisers also change weights whose gradient is 0.
        method = method._replace(
            after_step=lambda state, *_: state.replace(params=params_of(active_layers(state)))
        )
    return scored_by(o.rank_by, method)


@dataclass(frozen=True, eq=False)
class _SparseNetwork:
    """The functions of a sparse network; its attributes are those of :func:`sparse_network`."""

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
    first_growth: GrowRule | None

    def init(self, key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_network, key_masks = jax.random.split(key)
        key_first = jax.random.fold_in(key_masks, 1)
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
        state = without_inactive(state)
        if self.first_growth is None:
            return state
        recipe = dataclasses.replace(self.recipe, grow=self.first_growth)
        alike = {"similarity": equal_similarities(layers_in(state), self.similarity)}
        rule_inputs = RuleInputs(0, {}, None, self.as_result(state))
        return rewire_layers(
            state, recipe, alike, rule_inputs, key_first, for_run(self.optimizer, spec)
        )

    def predict(self, state: TrainState, x: Array) -> Array:
        return activations(layers_in(state), x, self.activation)[-1]

    def task_loss(self, layers: NamedLayers, state: TrainState, batch: Batch[Array]) -> Array:
        outputs = activations(layers, batch.x, self.activation)[-1]
        return state.spec.loss_of(outputs, batch.y, batch.weight)

    def loss(
        self, params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        layers = active_layers(state, params)
        if is_used(self.input_noise):
            noise = self.input_noise * normal(key, batch.x.shape)
            batch = batch._replace(x=batch.x + noise)
        value = self.task_loss(layers, state, batch)
        if is_used(self.options.l2):
            squares = sum(layer.l2() for layer in layers.values())
            value = value + 0.5 * self.options.l2 * squares
        return value, {}

    def after_epoch(self, state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        if self.search is not None:
            state = state.replace(log={"search": state.log["search"] | self.search(state)})
        # A change after the last epoch would never be trained.
        return cond_with_key(
            state.epoch < state.spec.num_epochs,
            lambda key: self.rewire(state, data, key),
            lambda _: state,
            key,
        )

    def rewire(self, state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        if self.recipe is None:
            return state
        grow = self.recipe.rules.grow
        if grow is None or grow.between is None:
            return self.rewired(state, data, key, self.recipe)
        # Each branch computes only the scores that its own rule needs.
        first, then = (dataclasses.replace(self.recipe, grow=rule) for rule in grow.between)
        return cond_with_key(
            state.log["search"],
            lambda key: self.rewired(state, data, key, then),
            lambda key: self.rewired(state, data, key, first),
            key,
        )

    def rewired(
        self, state: TrainState, data: TrainingRows, key: Array, recipe: Recipe
    ) -> TrainState:
        key_rules, key_rows = jax.random.split(key)
        layers = layers_in(state)
        needed = recipe.rules.needs
        scores: dict[str, Sequence[LayerScores]] = {}
        if "similarity" in needed:
            x, roots = some_rows(key_rows, data, self.similarity_fraction)
            values_of = functools.partial(self.all_activations, state)
            scores["similarity"] = similarity_scores(layers, values_of, x, roots, self.similarity)
        if "gradient" in needed:
            batch = random_batch(key_rows, data, state.spec.batch_size)
            scores["gradient"] = gradient_scores(
                layers,
                batch.x,
                self.activation,
                lambda outputs: state.spec.loss_of(outputs, batch.y, batch.weight),
            )
        search = None if self.search is None else state.log["search"]
        rule_inputs = RuleInputs(0, {}, search, self.as_result(state))
        optimizer = for_run(self.optimizer, state.spec)
        return rewire_layers(state, recipe, scores, rule_inputs, key_rules, optimizer)

    def all_activations(self, state: TrainState, x: Array) -> list[Array]:
        """Activations of all layers of neurons; the last ones are probabilities of classes."""
        *values, last = activations(layers_in(state), x, self.activation)
        return [*values, tasks.TABLE[state.spec.task].outputs.activation(last)]

    def as_result(self, state: TrainState) -> TrainState:
        """The state with its layers in the form in which results contain them."""
        max_pairs = largest_matrix(self.options.form)
        return expand_layers(state, for_run(self.optimizer, state.spec), max_pairs)


def _recipe(
    o: SparseOptions,
    *,
    drop: DropRule | None,
    grow: GrowRule | None,
    fraction: float,
    grow_init: str,
) -> Recipe:
    # 0 means "not given", because a command line cannot say None.
    if not o.epsilon and not o.density:
        raise ConfigError(
            f"epsilon={o.epsilon} and density={o.density}; a sparse network needs one of them, "
            "above 0"
        )
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
    for field in sorted(as_rules(drop, grow).needs - available):
        raise ConfigError(
            f"a rule needs {field}, which this network does not provide; choose rules that need "
            f"only {', '.join(sorted(available))}"
        )
