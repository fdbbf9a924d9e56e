"""Trains any network sparsely: a wrapper around any Optax optimiser.

    tx = sparsity.sparse(optax.adam(1e-3), sparsity.rigl(0.1, every=100), jax.random.key(0))
    opt_state = tx.init(params)
    params = sparsity.mask_params(params, opt_state)

The training loop stays as it is: ``tx.update`` and ``optax.apply_updates`` keep inactive weights
at exactly 0 and change the connections at the scheduled steps. Jit the training step, as with any
optimiser of Optax. ``examples/sparse_cnn.py`` is a full example.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from fsjax.arguments import known
from fsjax.errors import ConfigError
from fsjax.sparsity.kernel_axes import AxesByPath, check_known, kernel_axes, to_layers
from fsjax.sparsity.masks import Where, apply_masks, is_kernel, is_packed, masked, pack, unpack
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.topology import number_to_drop
from fsjax.sparsity.trees import is_masked_out, leaves_by_name
from fsjax.sparsity.updates import (
    Call,
    SparseState,
    Wrapper,
    fixed,
    masks_like,
    moved,
    rewired,
    straight_through,
)
from fsjax.typing import PyTree


def sparse(
    inner: optax.GradientTransformation,
    recipe: Recipe,
    key: Array,
    where: Where = is_kernel,
    *,
    axes: AxesByPath | None = None,
    output_first: bool | None = None,
    packed_masks: bool = False,
    masks: PyTree | None = None,
) -> optax.GradientTransformationExtraArgs:
    """Wraps an optimiser so that it keeps the network sparse.

    The inner optimiser sees gradients that are 0 at inactive connections. Applying the returned
    updates with ``optax.apply_updates`` gives exactly 0 there and exactly the initial value at new
    connections. Nothing may therefore follow this wrapper: put clipping and weight decay inside.
    Pass gradients of the plain loss, without masks in the forward pass, because growth by gradient
    also looks at inactive connections.

    A change resets the optimiser's moments of new and of removed connections; a connection that is
    dropped and grown again in the same change keeps its weight and moments. Step counts go on, so
    Adam's first steps of new connections are long: see :func:`fsjax.sparsity.bias_correction`.
    Rules compare the
    weights after the gradient step, which then trains only the connections that stay: a norm of
    all gradients, as for clipping, does not contain the others. In RigL the change replaces the
    gradient step, so schedules inside ``inner`` do not advance at that step.

    ``update`` takes, for rules that look at them, ``similarity``, ``importance``,
    ``hessian_gradient`` (trees with an array at the path of each masked leaf; other leaves are
    ignored and may be missing) and ``search``; see :class:`fsjax.sparsity.Layer`. Other arguments
    go to ``inner``.

    A change at a step whose gradient is not finite does not take place, nor one whose
    ``hessian_gradient`` is not, or another score that rules need is NaN; with a schedule of one
    change, such as ``one_shot``, there is no other. The running mean of the gradients, for
    ``grow.momentum``, leaves such entries out.

    The key gives the connections, and ``init`` takes no other: ``vmap`` of ``init`` over parameters
    has the same masks for all seeds. For others, map over the keys too, with
    ``lambda key, params: sparse(inner, recipe, key).init(params)``. Changes use the key in the
    state, so that any such optimiser may compute the updates.

    Under ``vmap`` over seeds, keep ``step`` unbatched, with ``SparseState(None, 0, 0, 0)`` as the
    axes of the state going in and out, and ``momentum=0`` or ``movement=0`` where a rule needs
    these; else JAX computes a change at every step and discards most.

    Args:
      inner: any Optax optimiser.
      recipe: from :func:`fsjax.sparsity.rigl` and its like, or a :class:`Recipe`.
      key: PRNG key of the initial connections and the changes.
      where: which parameters are masked; by default those of :func:`is_kernel`, or in ``axes``.
      axes: which axes of the parameters are inputs, outputs, positions and stacked layers:
        :func:`fsjax.sparsity.axes` reads them from the network, or give them by path pattern, for
        example ``{"*/query/kernel": ("in", "out", "out")}``. Rules, counts and structures see
        matrices ``(..., inputs, outputs)``, one per stacked layer. Without it, kernels named as
        those of attention in Flax are read as such, and others by ``output_first``.
      output_first: whether kernels are ``(outputs, inputs, ...)``, as in Equinox, and not
        ``(..., inputs, outputs)``, as in Flax and Haiku (but for transposed convolutions, which a
        bias tells). ``None`` looks for modules of Equinox in the parameters.
      packed_masks: whether the state holds masks as bits, an eighth of the memory.
      masks: the first connections, in place of those of the recipe: bool arrays in the structure of
        the parameters, for example of :func:`fsjax.sparsity.snip_masks`, of any number, as
        :func:`check` counts them.

    Masks of sharded parameters are sharded as these are.

    Returns:
      The optimiser; its ``init`` and ``update`` raise ConfigError if no parameter is chosen, if
      ``params`` are missing, or if a rule lacks what it needs.

    Examples:
      >>> params = {"kernel": jnp.ones((64, 10)), "bias": jnp.zeros(10)}
      >>> recipe = sparsity.rigl(density=0.1)
      >>> tx = sparsity.sparse(optax.adam(1e-3), recipe, jax.random.key(0))
      >>> opt_state = tx.init(params)  # a sparsity.SparseState
      >>> params = sparsity.mask_params(params, opt_state)
      >>> masks = sparsity.masks_of(opt_state)
      >>> print(sparsity.summarize(params, masks))
      >>> print(sparsity.sparsity(masks), sparsity.count_active(masks))
      >>> tx = sparsity.sparse(optax.adam(1e-3), recipe, jax.random.key(0), masks=masks)
      >>> opt_state = sparsity.with_masks(opt_state, masks)  # of a checkpoint, for example
      >>> params = sparsity.apply_masks(params, masks)
    """
    inner = optax.with_extra_args_support(inner)
    wrapper = Wrapper(inner, recipe, where, axes, output_first, packed_masks, masks)

    def init(params: PyTree) -> SparseState:
        key_masks, key_state = jax.random.split(jax.random.clone(key))
        # Without leaves, the parameters are the placeholder of optax.tree.map_params.
        masks = wrapper.initial_masks(key_masks, params) if jax.tree.leaves(params) else params
        before = inner.init(params if recipe.straight_through else apply_masks(params, masks))
        mean = jax.tree.map(_sum_of, params) if recipe.needs_momentum else None
        movement = jax.tree.map(_sum_of, params) if recipe.needs_movement else None
        stored = wrapper.as_stored(masks)
        return SparseState(jnp.zeros([], jnp.int32), key_state, stored, before, mean, movement)

    def update(
        updates: PyTree,
        state: SparseState,
        params: PyTree | None = None,
        *,
        similarity: PyTree | None = None,
        importance: PyTree | None = None,
        hessian_gradient: PyTree | None = None,
        search: Array | None = None,
        **extra: Any,
    ) -> tuple[PyTree, SparseState]:
        if params is None:
            raise ConfigError("update needs the parameters: tx.update(grads, opt_state, params)")
        mean = state.momentum
        if mean is not None:
            cast = jax.tree.map(lambda m, gradient: gradient.astype(m.dtype), mean, updates)
            new_mean = optax.tree.update_moment(cast, mean, recipe.momentum_decay, 1)
            mean = jax.tree.map(lambda m, old: jnp.where(jnp.isfinite(m), m, old), new_mean, mean)
        movement = state.movement
        if movement is not None:
            movement = moved(movement, params, updates)
        state = state._replace(
            step=optax.safe_increment(state.step), momentum=mean, movement=movement
        )
        scores = {
            "similarity": similarity,
            "importance": importance,
            "hessian_gradient": hessian_gradient,
        }
        words = jax.random.key_data(state.key)
        call = Call(updates, params, scores, search, extra, words)
        if recipe.drop is None:
            return fixed(wrapper, call, state)
        if recipe.straight_through:
            return straight_through(wrapper, call, state)
        return rewired(wrapper, call, state)

    return optax.GradientTransformationExtraArgs(init, update)


def masks_of(opt_state: PyTree) -> PyTree:
    """The masks in an optimiser state, bool arrays in the structure of the parameters.

    Args:
      opt_state: state of :func:`sparse`, which may be part of the state of ``optax.chain`` or of a
        train state.

    Raises:
      ConfigError: unless there is exactly one such state.
    """
    states = [node for node in jax.tree.leaves(opt_state, is_leaf=_is_sparse) if _is_sparse(node)]
    if len(states) != 1:
        raise ConfigError(
            f"{len(states)} sparse optimisers in this state; there must be one: wrap the optimiser "
            "with fsjax.sparsity.sparse and pass the state of its init"
        )
    return unpack(states[0].masks)


@jax.jit
def _count_nonzero(*arrays: Array) -> list[Array]:
    return [jnp.count_nonzero(array) for array in arrays]


def mask_params(params: PyTree, opt_state: PyTree) -> PyTree:
    """Parameters that are 0 at inactive connections; needed once, before training.

    Parameters that belong to another optimiser of ``optax.multi_transform`` stay as they are.
    Outside of ``jit``, a warning names kernels that are sparse already, but with other connections,
    as those of a pruned network without :func:`with_masks`.
    """
    masks = masks_of(opt_state)
    sparse = jax.tree.map(
        lambda mask, leaf: leaf if is_masked_out(mask) else masked(leaf, mask),
        masks,
        params,
        is_leaf=is_masked_out,
    )
    numbers, rest = leaves_by_name(params), leaves_by_name(sparse)
    for path, mask in leaves_by_name(masks).items():
        if isinstance(rest[path], jax.core.Tracer):
            break
        before, after, active = _count_nonzero(numbers[path], rest[path], mask)
        if after < before <= active:
            warnings.warn(
                f"{path} is sparse already, and {before - after} of its {before} weights that are "
                "not 0 are lost; keep its connections with with_masks",
                stacklevel=2,
            )
    return sparse


def forward_params(params: PyTree, opt_state: PyTree) -> PyTree:
    """Parameters for the forward pass: 0 at inactive connections, whose gradients pass through.

    The gradient with respect to ``params`` equals that with respect to the result, so inactive
    weights get the gradient that they would have if they were active (straight-through estimator).
    Recipes with ``straight_through`` need this in the loss; with others it changes only gradients.
    """

    def passed(mask: Array, leaf: Array) -> Array:
        if is_masked_out(mask):
            return leaf
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):  # No gradients, and bool has no minus.
            return masked(leaf, mask)
        return leaf + jax.lax.stop_gradient(masked(leaf, mask) - leaf)

    return jax.tree.map(passed, masks_of(opt_state), params, is_leaf=is_masked_out)


def with_masks(
    opt_state: PyTree,
    masks: PyTree,
    recipe: Recipe | None = None,
    where: Where = is_kernel,
    axes: AxesByPath | None = None,
    output_first: bool | None = None,
) -> PyTree:
    """The optimiser state with other masks; before ``init``, give them to :func:`sparse` instead.

    An optimiser whose state starts with a copy of the parameters, as schedule-free ones, has it
    under the masks of ``init``, and only :func:`sparse` can begin with others.

    Args:
      opt_state: state of :func:`sparse` before the first step.
      masks: bool arrays, or packed ones, all true where nothing is masked.
      recipe: recipe with whose structure and counts the masks must agree; ``None`` accepts any.
      where, axes, output_first: as for :func:`sparse`.

    Raises:
      ConfigError: if the tree or the shapes differ from those of the parameters, if masks are
        neither bool nor 0 and 1, if they do not have the structure or the counts of the recipe, or,
        outside of ``jit``, if the state has a copy of the parameters.
    """
    masks = masks_like(masks, masks_of(opt_state))
    if recipe is not None:
        kernels = kernel_axes(masks, where, axes, output_first)
        check_known(kernels, recipe.structure)
        recipe.check_masks(to_layers(masks, kernels), lambda path, layer: True)

    def replaced(node: SparseState) -> SparseState:
        _check_no_copy(node, masks)
        packed = any(map(is_packed, jax.tree.leaves(node.masks, is_leaf=is_packed)))
        return node._replace(masks=pack(masks) if packed else masks)

    return jax.tree.map(
        lambda node: replaced(node) if _is_sparse(node) else node,
        opt_state,
        is_leaf=_is_sparse,
    )


def _check_no_copy(state: SparseState, masks: PyTree) -> None:
    """Refuses an inner state before the first step with weights under other masks."""
    if not known(*jax.tree.leaves((state, masks))) or jnp.any(state.step > 0):
        return
    present = jax.tree.leaves(unpack(state.masks))
    structure: object = jax.tree.structure(masks)

    def is_copy(node: Any) -> bool:
        return structure == jax.tree.structure(node)

    for node in filter(is_copy, jax.tree.leaves(state.inner, is_leaf=is_copy)):
        pairs = zip(leaves_by_name(masks).items(), present, jax.tree.leaves(node), strict=True)
        for (path, new), old, leaf in pairs:
            # Moments start with the same number everywhere.
            if leaf.shape == old.shape and jnp.any(old != new) and jnp.any(leaf != leaf.max()):
                raise ConfigError(
                    f"the state of the optimiser starts with a copy of {path} under other masks; "
                    "give them before init, with sparse(..., masks=masks)"
                )


def check(
    params: PyTree,
    opt_state: PyTree,
    recipe: Recipe | None = None,
    num_steps: int | None = None,
    *,
    where: Where = is_kernel,
    axes: AxesByPath | None = None,
    output_first: bool | None = None,
) -> None:
    """Checks a sparse network during training: call it in tests, and first when something is odd.

    Args:
      params: parameters, after a step or after :func:`mask_params`.
      opt_state: state of :func:`sparse`, or one that contains it.
      recipe: if given, the counts, and the steps of the changes, are checked too.
      num_steps: number of steps of the whole training, for what will never change.
      where, axes, output_first: as for :func:`sparse`.

    Raises:
      ConfigError: with all that is wrong: inactive weights that are not 0, numbers that are not
        finite, layers without connections, counts that are not those of the recipe, and changes
        that never come.

    Examples:
      >>> tx = sparsity.sparse(optax.adam(1e-3), sparsity.rigl(0.1), jax.random.key(0))
      >>> params = {"kernel": jnp.ones((64, 10)), "bias": jnp.zeros(10)}
      >>> opt_state = tx.init(params)
      >>> params = sparsity.mask_params(params, opt_state)
      >>> sparsity.check(params, opt_state)  # nothing is wrong
    """
    masks = masks_of(opt_state)
    kernels = kernel_axes(params, where, axes, output_first)
    by_path = leaves_by_name(masks)
    problems = [
        problem
        for path, leaf in leaves_by_name(params).items()
        for problem in _problems_of_leaf(path, leaf, by_path.get(path), recipe)
    ]
    layers = to_layers(masks, kernels)
    problems += [f"{name} has no connection" for name, mask in layers.items() if not mask.any()]
    if recipe is not None:
        step = int(_state_of(opt_state).step)
        problems += _problems_of_recipe(recipe, layers, step, num_steps)
    if problems:
        raise ConfigError("\n".join([f"{len(problems)} problems:", *problems]))


def _problems_of_leaf(
    path: str, leaf: Array, mask: Array | None, recipe: Recipe | None
) -> Iterator[str]:
    is_inexact = jnp.issubdtype(leaf.dtype, jnp.inexact)
    if is_inexact and (infinite := int(_count_infinite(leaf))):
        yield f"{path} has {infinite} numbers that are not finite"
    if mask is None or (recipe is not None and recipe.straight_through):
        return
    if wrong := int(_count_wrong(leaf, mask)):
        yield (
            f"{path} has {wrong} inactive weights that are not 0; mask_params sets them "
            "to 0, and nothing may follow sparse in a chain"
        )


@jax.jit
def _count_infinite(leaf: Array) -> Array:
    return jnp.sum(~jnp.isfinite(leaf))


@jax.jit
def _count_wrong(leaf: Array, mask: Array) -> Array:
    return jnp.sum((leaf != 0) & ~mask)


def _problems_of_recipe(
    recipe: Recipe, layers: Mapping[str, Array], step: int, num_steps: int | None
) -> Iterator[str]:
    if recipe.drop is not None and num_steps is not None:
        progress = _progress(recipe, num_steps)
        if progress is None:
            yield f"no connection ever changes in {num_steps} steps"
        elif not recipe.prunes and not _has_rewiring(recipe, layers, num_steps):
            yield "no connection ever changes: the fraction of every layer is less than one"
        elif recipe.prunes and progress < 1:
            yield (
                f"after {num_steps} steps pruning is only {progress:.0%} of its way; end it earlier"
            )
    finished = recipe.prunes and (_progress(recipe, step) or 0) >= 1
    try:
        recipe.check_masks(OrderedDict(layers), lambda path, layer: True, finished=finished)
    except ConfigError as error:
        yield str(error)


def _progress(recipe: Recipe, step: int) -> float | None:
    """How far pruning is after the changes up to a step; ``None`` if there was no change."""
    steps = jnp.arange(1, step + 1)
    due = np.asarray(jax.vmap(recipe.is_due)(steps))
    if not due.any():
        return None
    shares = np.asarray(jax.vmap(lambda step: jnp.float32(recipe.times(step)))(steps))[due]
    # Only the straight-through estimator gives connections back.
    return float(shares[-1] if recipe.straight_through else shares.max())


def _has_rewiring(recipe: Recipe, layers: Mapping[str, Array], num_steps: int) -> bool:
    """Whether the recipe's fraction of any layer is a whole connection at any change."""
    if recipe.structure is not None or recipe.straight_through:
        return True
    steps = jnp.arange(1, num_steps + 1)
    fractions = jax.vmap(lambda step: jnp.float32(recipe.fraction_at(step)))(steps)
    largest = jnp.max(jnp.where(jax.vmap(recipe.is_due)(steps), fractions, 0))
    return any(bool(number_to_drop(mask, largest)) for mask in layers.values())


def _state_of(opt_state: PyTree) -> SparseState:
    return next(filter(_is_sparse, jax.tree.leaves(opt_state, is_leaf=_is_sparse)))


def _sum_of(leaf: Array) -> Array:
    """Zeros for a sum over many steps, which bfloat16 would not hold."""
    return jnp.zeros_like(leaf, jnp.promote_types(leaf.dtype, jnp.float32))


def _is_sparse(node: Any) -> bool:
    return isinstance(node, SparseState)
