"""Trains any network sparsely: a wrapper around any Optax optimiser.

    tx = sparsity.sparse(optax.adam(1e-3), sparsity.rigl(0.1, every=100), jax.random.key(0))
    opt_state = tx.init(params)
    params = sparsity.mask_params(params, opt_state)

The training loop stays as it is: ``tx.update`` and ``optax.apply_updates`` keep inactive weights
at exactly 0 and change the connections at the scheduled steps. Jit the training step; otherwise JAX
recompiles the change of connections in every call. ``examples/sparse_cnn.py`` is a full example.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.errors import ConfigError
from fsjax.sparsity import grow
from fsjax.sparsity.masks import (
    Where,
    apply_masks,
    is_kernel,
    is_packed,
    named_leaves,
    pack,
    unpack,
)
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.topology import (
    Changed,
    Layer,
    keep_moments,
    layers_of,
    needs_of,
    rule_name,
)
from fsjax.sparsity.trees import (
    is_output_first,
    outputs_first,
    outputs_last,
    path_name,
)
from fsjax.typing import PyTree

#: From a tree to the same tree with its kernels turned.
Turn = Callable[[PyTree], PyTree]


class SparseState(NamedTuple):
    """State of :func:`sparse`; everything that differs between seeds is in here.

    Attributes:
      step: int32, calls of ``update`` so far.
      key: PRNG key of the changes; constant, as every step folds in its number.
      masks: bool arrays in the structure of the parameters, all true where nothing is masked; or
        packed bits, with ``packed_masks``. :func:`masks_of` returns bool arrays in both cases.
      inner: state of the wrapped optimiser, with its initial value at inactive connections.
      momentum: running mean of the gradients in the structure of the parameters, where a rule
        needs it, else ``None``.
    """

    step: Array
    key: Array
    masks: PyTree
    inner: optax.OptState
    momentum: PyTree | None = None


def sparse(
    inner: optax.GradientTransformation,
    recipe: Recipe,
    key: Array,
    where: Where = is_kernel,
    *,
    output_first: bool | None = None,
    packed_masks: bool = False,
) -> optax.GradientTransformationExtraArgs:
    """Wraps an optimiser so that it keeps the network sparse.

    The inner optimiser sees gradients that are 0 at inactive connections. Applying the returned
    updates with ``optax.apply_updates`` gives exactly 0 there and exactly the initial value at new
    connections. Nothing may therefore follow this wrapper: put clipping and weight decay inside.
    Pass gradients of the plain loss, without masks in the forward pass, because growth by gradient
    also looks at inactive connections.

    A change resets the optimiser's moments of new and of removed connections; a connection that is
    dropped and grown again in the same change keeps its weight and moments. Rules compare the
    weights after the gradient step, which then trains only the connections that stay: a norm of
    all gradients, as for clipping, does not contain the others. In RigL the change replaces the
    gradient step, so schedules inside ``inner`` do not advance at that step.

    ``update`` takes, for rules that look at them, ``similarity``, ``importance``,
    ``hessian_gradient`` (trees with an array at the path of each masked leaf; other leaves are
    ignored and may be missing) and ``search``; see :class:`fsjax.sparsity.Layer`. Other arguments
    go to ``inner``.

    Under ``vmap`` over seeds, keep ``step`` unbatched, with ``SparseState(None, 0, 0, 0)`` as the
    axes of the state going in and out, and a fifth 0 where a rule needs ``momentum``; else JAX
    computes a change at every step and discards most.

    Args:
      inner: any Optax optimiser.
      recipe: from :func:`fsjax.sparsity.rigl` and its like, or a :class:`Recipe`.
      key: PRNG key of the initial connections and the changes.
      where: which parameters are masked; by default all of two or more dimensions but biases.
      output_first: whether kernels are ``(outputs, inputs, ...)``, as in Equinox, and not
        ``(..., inputs, outputs)``, as in Flax and Haiku. Rules and structures see the latter in
        any case. ``None`` looks for modules of Equinox in the parameters.
      packed_masks: whether the state holds masks as bits, an eighth of the memory.

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
      >>> opt_state = sparsity.with_masks(opt_state, masks)  # of a checkpoint, for example
      >>> params = sparsity.apply_masks(params, masks)
    """
    inner = optax.with_extra_args_support(inner)

    def to_last(params: PyTree) -> tuple[Turn, Turn]:
        """To kernels ``(..., inputs, outputs)`` and back."""
        turned = is_output_first(params) if output_first is None else output_first
        return (outputs_last, outputs_first) if turned else (_as_it_is, _as_it_is)

    def as_stored(masks: PyTree) -> PyTree:
        return pack(masks) if packed_masks else masks

    def init(params: PyTree) -> SparseState:
        key_masks, key_state = jax.random.split(jax.random.clone(key))
        if jax.tree.leaves(params):
            turn, back = to_last(params)
            masks = back(recipe.initial_masks(key_masks, turn(params), chosen(params, where)))
            masks = jax.tree.map(_sharded_like, masks, params)
        else:  # The placeholder of optax.tree.map_params.
            masks = params
        state = inner.init(params if recipe.straight_through else apply_masks(params, masks))
        mean = jax.tree.map(jnp.zeros_like, params) if recipe.needs_momentum else None
        return SparseState(jnp.zeros([], jnp.int32), key_state, as_stored(masks), state, mean)

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
        gradients, masks = updates, unpack(state.masks)
        step = optax.safe_increment(state.step)
        mean = state.momentum
        if mean is not None:
            mean = optax.tree.update_moment(gradients, mean, recipe.momentum_decay, 1)

        def train(
            gradients: PyTree, masks: PyTree, before: optax.OptState
        ) -> tuple[PyTree, optax.OptState]:
            return inner.update(apply_masks(gradients, masks), before, params, **extra)

        def settled(moves: PyTree, kept: PyTree, initial: PyTree | None = None) -> PyTree:
            # p + (q - p) is exactly q where p or q is 0.
            return jax.tree.map(
                lambda keep, move, p, q=0: jnp.where(keep, move, q - p).astype(move.dtype),
                *(kept, moves, params, *([] if initial is None else [initial])),
            )

        if recipe.drop is None:
            moves, after = train(gradients, masks, state.inner)
            moves = settled(moves, masks)
            return moves, SparseState(step, state.key, state.masks, after, mean)

        turn, back = to_last(params)
        leaves = chosen(params, where)
        # Raw words: JAX's check of key reuse refuses keys in a cond with a batched predicate.
        words = jax.random.key_data(state.key)

        def changed_by(weights: PyTree, masks: PyTree, gradients: PyTree) -> Changed:
            key = jax.random.wrap_key_data(words, impl=jax.random.key_impl(state.key))
            if not recipe.straight_through:
                weights = apply_masks(weights, masks)
            weights, turned = turn(weights), turn(masks)
            layers = layers_of(
                weights,
                turned,
                leaves,
                search=search,
                gradient=turn(gradients),
                similarity=turn(similarity),
                importance=turn(importance),
                hessian_gradient=turn(hessian_gradient),
                momentum=turn(mean),
            )
            for name, layer in layers.items():
                _check_layer(recipe, layer, name)
            changed = recipe.change(weights, turned, layers, jax.random.fold_in(key, step), step)
            return Changed(*map(back, changed))

        due = recipe.is_due(step)
        if recipe.straight_through:
            moves, after = inner.update(gradients, state.inner, params, **extra)
            weights = optax.apply_updates(params, moves)
            stored = jax.lax.cond(
                due,
                lambda: as_stored(changed_by(weights, masks, gradients).masks),
                lambda: state.masks,
            )
            return moves, SparseState(step, state.key, stored, after, mean)

        # The connections change before the step, so that XLA fuses the step with the sum of updates
        # and parameters. At a change, the weights after the step are computed once more, for rules.
        def change(carry: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
            stored, before, gradients, new, initial = carry
            masks, weights = unpack(stored), params
            if not recipe.replaces_step:
                weights = optax.apply_updates(params, train(gradients, masks, before)[0])
            changed = changed_by(weights, masks, gradients)
            before = keep_moments(inner, before, changed)
            trained = apply_masks(gradients, changed.kept)
            if new is not None:
                new = jax.tree.map(lambda mask, keep: mask & ~keep, changed.masks, changed.kept)
            if initial is not None:
                initial = changed.params
            return as_stored(changed.masks), before, trained, new, initial

        # An inactive weight is 0, so a new one that starts there is right unless the step moves it.
        from_zero = recipe.grow_init is jax.nn.initializers.zeros
        unmoved = recipe.grow is None or (from_zero and recipe.replaces_step)
        new = None if unmoved else jax.tree.map(jnp.zeros_like, masks)
        initial = None if from_zero else jax.tree.map(jnp.zeros_like, params)
        carry = (state.masks, state.inner, gradients, new, initial)
        stored, before, trained, new, initial = _change_if(due, change, carry)
        masks = unpack(stored)
        if recipe.replaces_step:
            moves, after = _replace_if(
                ~due, lambda g, state: train(g, masks, state), trained, before
            )
            moves = jax.tree.map(lambda move: jnp.where(due, 0, move), moves)
        else:
            moves, after = train(trained, masks, before)
        kept = masks
        if new is not None:
            kept = jax.tree.map(lambda mask, new: mask & ~new, masks, new)
        moves = settled(moves, kept, initial)
        return moves, SparseState(step, state.key, stored, after, mean)

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


def mask_params(params: PyTree, opt_state: PyTree) -> PyTree:
    """Parameters that are 0 at inactive connections; needed once, before training."""
    return apply_masks(params, masks_of(opt_state))


def forward_params(params: PyTree, opt_state: PyTree) -> PyTree:
    """Parameters for the forward pass: 0 at inactive connections, whose gradients pass through.

    The gradient with respect to ``params`` equals that with respect to the result, so inactive
    weights get the gradient that they would have if they were active (straight-through estimator).
    Recipes with ``straight_through`` need this in the loss; with others it changes only gradients.
    """
    masks = masks_of(opt_state)
    return jax.tree.map(
        lambda p, mask: p + jax.lax.stop_gradient(jnp.where(mask, p, 0) - p), params, masks
    )


def with_masks(
    opt_state: PyTree, masks: PyTree, recipe: Recipe | None = None, where: Where = is_kernel
) -> PyTree:
    """The optimiser state with other masks, for example of :func:`fsjax.sparsity.snip_masks`.

    Args:
      opt_state: state of :func:`sparse` before the first step.
      masks: bool arrays, all true where nothing is masked.
      recipe: recipe with whose structure and counts the masks must agree; ``None`` accepts any.
      where: as for :func:`sparse`.

    Raises:
      ConfigError: if the tree or the shapes differ from those of the parameters, or if the masks do
        not have the structure or the counts of the recipe.
    """
    present = masks_of(opt_state)
    # Structures are of jaxlib, which has no types.
    new_structure: object = jax.tree.structure(masks)
    if new_structure != jax.tree.structure(present):
        raise ConfigError(
            "the masks have another tree structure than the parameters; pass a bool array for each "
            "parameter"
        )
    for (path, old), new in zip(
        jax.tree.leaves_with_path(present), jax.tree.leaves(masks), strict=True
    ):
        if jnp.shape(new) != old.shape:
            raise ConfigError(
                f"the mask of {path_name(path)} has shape {jnp.shape(new)}; it must be {old.shape}"
            )
    masks = jax.tree.map(lambda mask: jnp.asarray(mask, bool), masks)
    if recipe is not None:
        turned = outputs_last(masks) if is_output_first(masks) else masks
        recipe.check_masks(turned, chosen(masks, where))

    def replaced(node: SparseState) -> SparseState:
        packed = any(map(is_packed, jax.tree.leaves(node.masks, is_leaf=is_packed)))
        return node._replace(masks=pack(masks) if packed else masks)

    return jax.tree.map(
        lambda node: replaced(node) if _is_sparse(node) else node,
        opt_state,
        is_leaf=_is_sparse,
    )


def chosen(params: PyTree, where: Where) -> Where:
    """A path filter that chooses the same parameters in trees of transposed kernels."""
    names = frozenset(named_leaves(params, where))
    return lambda path, leaf: "/".join(path) in names


def _change_if(condition: Array, change: Callable[[PyTree], PyTree], carry: PyTree) -> PyTree:
    """``change(carry)`` if the condition holds, else ``carry``; derivatives as of ``lax.cond``.

    ``lax.cond`` copies what passes through it; a loop of at most one pass works in place. What
    ``change`` looks at must therefore be part of the carry, if it is in there at all.
    """
    changed, given = jax.closure_convert(change, carry)

    @jax.custom_jvp
    def run(condition: Array, carry: PyTree, given: list[Array]) -> PyTree:
        def once(state: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
            return jnp.zeros_like(condition), changed(state[1], *given)

        return jax.lax.while_loop(lambda state: state[0], once, (condition, carry))[1]

    @run.defjvp
    def derivative(primals: tuple, tangents: tuple) -> tuple[PyTree, PyTree]:
        def branch(condition: Array, carry: PyTree, given: list[Array]) -> PyTree:
            return jax.lax.cond(condition, lambda: changed(carry, *given), lambda: carry)

        return jax.jvp(branch, primals, tangents)

    return run(condition, carry, given)


def _replace_if(
    condition: Array, train: Callable[..., tuple[PyTree, PyTree]], *carry: PyTree
) -> tuple[PyTree, PyTree]:
    """``train(*carry)`` if the condition holds, else ``carry``, in the types of the former."""
    types = jax.eval_shape(train, *carry)

    # A step may change types, for example with gradients more precise than parameters.
    def cast(tree: PyTree, like: PyTree) -> PyTree:
        return jax.tree.map(
            lambda leaf, of: leaf if leaf.dtype == of.dtype else leaf.astype(of.dtype), tree, like
        )

    def wide(old: Array, new: Array) -> Array:
        return old if old.dtype == new.dtype else old.astype(jnp.promote_types(old, new))

    widest = jax.tree.map(wide, carry, types)
    result = _change_if(
        condition, lambda present: cast(train(*cast(present, carry)), widest), widest
    )
    return cast(result, types)


def _as_it_is(tree: PyTree) -> PyTree:
    return tree


def _sharded_like(mask: Array, leaf: Array) -> Array:
    """Puts a mask on the devices of its parameter; inside jit, JAX does this."""
    if isinstance(mask, jax.core.Tracer) or isinstance(leaf, jax.core.Tracer):
        return mask
    spread = isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1
    return jax.device_put(mask, leaf.sharding) if spread else mask


def _is_sparse(node: Any) -> bool:
    return isinstance(node, SparseState)


def _check_layer(recipe: Recipe, layer: Layer, name: str) -> None:
    shape = layer.weight.shape
    for rule in filter(None, (recipe.drop, recipe.grow)):
        for what in needs_of(rule):
            if getattr(layer, what) is None:
                subject = f"the rule {rule_name(rule)} needs {what} of {name}"
                if what == "state":
                    raise ConfigError(f"{subject}: only methods have a train state")
                if what == "search":
                    raise ConfigError(f"{subject}; pass tx.update(..., search=...), a scalar bool")
                raise ConfigError(
                    f"{subject}; pass tx.update(grads, opt_state, params, {what}=tree) with an "
                    "array at its path, or leave this parameter out with the path filter `where`"
                )
        if rule in (grow.important_inputs, grow.important_outputs) and len(shape) != 2:
            raise ConfigError(
                f"the rule {rule_name(rule)} is for matrices, and {name} has shape {shape}; leave "
                "it out with the path filter `where`"
            )
    if layer.similarity is not None and layer.similarity.shape != shape:
        raise ConfigError(
            f"similarity of {name} has shape {layer.similarity.shape}; it must be {shape}"
        )
    of = shape if layer.importance is None else layer.importance.shape
    if len(of) != len(shape) or any(n not in (1, m) for n, m in zip(of, shape, strict=True)):
        raise ConfigError(f"importance of {name} has shape {of}; it must broadcast to {shape}")
