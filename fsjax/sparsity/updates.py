"""The three ways in which :func:`fsjax.sparsity.sparse` keeps a network sparse.

:func:`fixed` keeps its masks; :func:`straight_through` changes them and trains all weights;
:func:`rewired` drops and grows connections, and inactive weights stay 0. Each takes the arguments
of one call of ``update`` and returns the moves of the parameters and the new state.
:class:`Wrapper` knows how kernels are cut into layers and masks are stored.

Changes of large trees copy nothing: :func:`change_if` is a loop of at most one pass.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, export

from fsjax.errors import ConfigError
from fsjax.sparsity import grow
from fsjax.sparsity.kernel_axes import (
    AxesByPath,
    KernelAxes,
    check_known,
    from_layers,
    kernel_axes,
    to_layers,
)
from fsjax.sparsity.masks import Where, apply_masks, is_kernel, named_leaves, pack, unpack
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.rules import Layer
from fsjax.sparsity.topology import Changed
from fsjax.sparsity.trees import check_same_shapes, is_masked_out, leaves_by_name
from fsjax.typing import PyTree


class SparseState(NamedTuple):
    """State of :func:`sparse`; everything that differs between seeds is in here.

    Attributes:
      step: int32, calls of ``update`` so far.
      key: PRNG key of the changes; constant, as every step folds in its number.
      masks: bool arrays in the structure of the parameters, all true where nothing is masked; or
        packed bits, with ``packed_masks``. :func:`masks_of` returns bool arrays in both cases.
      inner: state of the wrapped optimiser, with its initial value at inactive connections.
      momentum: running mean of the gradients in the structure of the parameters, at least float32,
        where a rule needs it, else ``None``.
      movement: sum of ``-weight x gradient`` in the structure of the parameters, at least float32,
        where a rule needs it, else ``None``.
    """

    step: Array
    key: Array
    masks: PyTree
    inner: optax.OptState
    momentum: PyTree | None = None
    movement: PyTree | None = None


export.register_namedtuple_serialization(SparseState, serialized_name="fsjax.sparsity.SparseState")


class Call(NamedTuple):
    """The arguments of one call of ``update``.

    Attributes:
      gradients: of the plain loss.
      params: the parameters.
      scores: trees for the rules that look at them, by the field of a layer.
      search: as in :class:`fsjax.sparsity.Layer`.
      extra: arguments of the wrapped optimiser.
      key_words: of the key of the state. JAX's check of key reuse refuses keys in a cond with a
        batched predicate.
    """

    gradients: PyTree
    params: PyTree
    scores: dict[str, PyTree | None]
    search: Array | None
    extra: dict[str, Any]
    key_words: Array


@dataclasses.dataclass(frozen=True)
class Wrapper:
    """The wrapped optimiser, the recipe, and the forms of kernels and masks outside of rules.

    Attributes:
      inner: the wrapped optimiser.
      recipe, where, axes, output_first, packed_masks, masks: as for :func:`fsjax.sparsity.sparse`.
    """

    inner: optax.GradientTransformationExtraArgs
    recipe: Recipe
    where: Where
    axes: AxesByPath | None
    output_first: bool | None
    packed_masks: bool
    masks: PyTree | None

    def kernels(self, params: PyTree) -> dict[str, KernelAxes]:
        """The axes of the masked kernels, by path."""
        return kernel_axes(params, self.where, self.axes, self.output_first)

    def as_stored(self, masks: PyTree) -> PyTree:
        """The masks in the form of the state; ``unpack`` undoes it."""
        return pack(masks) if self.packed_masks else masks

    def initial_masks(self, key: Array, params: PyTree) -> PyTree:
        """Masks of the parameters, on their devices."""
        kernels = self.kernels(params)
        check_known(kernels, self.recipe.structure)
        if self.masks is not None:
            return jax.tree.map(_sharded_like, masks_like(self.masks, params), params)
        layers = self.recipe.initial_masks(key, to_layers(params, kernels), _every_layer)
        dense = jax.tree.map(lambda leaf: jnp.ones(jnp.shape(leaf), bool), params)
        return jax.tree.map(_sharded_like, from_layers(layers, kernels, dense), params)

    def train(
        self, call: Call, gradients: PyTree, masks: PyTree, before: optax.OptState
    ) -> tuple[PyTree, optax.OptState]:
        """A step of the wrapped optimiser with gradients that are 0 at inactive connections."""
        return self.inner.update(apply_masks(gradients, masks), before, call.params, **call.extra)

    def change(
        self, call: Call, state: SparseState, weights: PyTree, masks: PyTree, gradients: PyTree
    ) -> Changed:
        """The recipe's change of connections; rules see weights as they are after the step."""
        kernels = self.kernels(call.params)
        key = jax.random.wrap_key_data(call.key_words, impl=jax.random.key_impl(state.key))
        if not self.recipe.straight_through:
            weights = apply_masks(weights, masks)
        cut = to_layers(weights, kernels), to_layers(masks, kernels)
        sums = {"momentum": state.momentum, "movement": state.movement}
        trees = call.scores | sums | {"gradient": gradients}
        fields: dict[str, Any] = {
            field: None if tree is None else to_layers(tree, kernels)
            for field, tree in trees.items()
        }
        layers = layers_of(*cut, _every_layer, search=call.search, **fields)
        for name, layer in layers.items():
            _check_layer(self.recipe, layer, name)
        key = jax.random.fold_in(key, state.step)
        changed = self.recipe.change(*cut, layers, key, state.step)
        needs = {"gradient", *self.recipe.rules.needs}
        scores = {name: of_layer for name, of_layer in fields.items() if name in needs}
        changed = _if_finite(scores, changed, Changed(*cut, cut[1]))
        before = Changed(weights, masks, jax.tree.map(jnp.ones_like, masks))
        return Changed(
            *(from_layers(new, kernels, old) for new, old in zip(changed, before, strict=True))
        )


def masks_like(masks: PyTree, like: PyTree) -> PyTree:
    """The masks as bool arrays, unpacked; ConfigError unless they fit a tree of parameters."""
    masks = unpack(masks)
    # Structures are of jaxlib, which has no types.
    structure: object = jax.tree.structure(masks)
    if structure != jax.tree.structure(like):
        raise ConfigError(
            "the masks have another tree structure than the parameters; pass a bool array for each "
            "parameter"
        )
    by_path = leaves_by_name(masks)
    check_same_shapes(by_path, leaves_by_name(like), "the masks", "the parameters")
    for path, mask in by_path.items():
        if jnp.issubdtype(jnp.result_type(mask), jnp.inexact):
            raise ConfigError(
                f"the mask of {path} is {jnp.result_type(mask)}; pass bool, for example scores > 0"
            )
    # Copies, as a step that donates the state would delete those of the caller.
    return jax.tree.map(lambda mask: jnp.array(mask, bool), masks)


def moved(movement: PyTree, params: PyTree, gradients: PyTree) -> PyTree:
    """The movement after one more step: plus ``-weight x gradient`` (Sanh et al., 2020, eq. 3).

    Steps with a gradient that is not finite count as 0: they would hide all others.
    """

    def added(total: Array, weight: Array, gradient: Array) -> Array:
        change = -weight.astype(total.dtype) * gradient.astype(total.dtype)
        return total + jnp.where(jnp.isfinite(change), change, 0)

    return jax.tree.map(added, movement, params, gradients)


def fixed(wrapper: Wrapper, call: Call, state: SparseState) -> tuple[PyTree, SparseState]:
    """A step that keeps the masks."""
    masks = unpack(state.masks)
    moves, after = wrapper.train(call, call.gradients, masks, state.inner)
    return _settled(moves, call.params, masks), state._replace(inner=after)


def straight_through(
    wrapper: Wrapper, call: Call, state: SparseState
) -> tuple[PyTree, SparseState]:
    """A step of all weights, inactive ones too, and the masks that follow from them."""
    masks = unpack(state.masks)
    moves, after = wrapper.inner.update(call.gradients, state.inner, call.params, **call.extra)
    weights = optax.apply_updates(call.params, moves)

    def changed() -> PyTree:
        return wrapper.as_stored(wrapper.change(call, state, weights, masks, call.gradients).masks)

    due = wrapper.recipe.is_due(state.step)
    if not isinstance(due, jax.core.Tracer):
        stored = changed() if due else state.masks
    else:
        stored = jax.lax.cond(due, changed, lambda: state.masks)
    return moves, state._replace(masks=stored, inner=after)


class _Carry(NamedTuple):
    """What a change replaces.

    Attributes:
      masks: in the form of the state.
      inner: state of the wrapped optimiser.
      gradients: of the connections that are trained.
      new: which connections are new; ``None`` if the step leaves new ones at their initial value.
      initial: the parameters with new connections at their initial value; ``None`` if that is 0.
    """

    masks: PyTree
    inner: optax.OptState
    gradients: PyTree
    new: PyTree | None
    initial: PyTree | None


def rewired(wrapper: Wrapper, call: Call, state: SparseState) -> tuple[PyTree, SparseState]:
    """A step, with a change of connections where one is due; inactive weights are 0.

    The connections change before the step, so that XLA fuses the step with the sum of updates and
    parameters. At a change, the weights after the step are computed once more, for rules.
    """
    recipe, due = wrapper.recipe, wrapper.recipe.is_due(state.step)

    def change(carry: _Carry) -> _Carry:
        masks, weights = unpack(carry.masks), call.params
        if not recipe.replaces_step:
            moves, _ = wrapper.train(call, carry.gradients, masks, carry.inner)
            weights = optax.apply_updates(weights, moves)
        changed = wrapper.change(call, state, weights, masks, carry.gradients)
        new = carry.new
        if new is not None:
            new = jax.tree.map(lambda mask, keep: mask & ~keep, changed.masks, changed.kept)
        return _Carry(
            wrapper.as_stored(changed.masks),
            keep_moments(wrapper.inner, carry.inner, changed),
            apply_masks(carry.gradients, changed.kept),
            new,
            None if carry.initial is None else changed.params,
        )

    carry = _unchanged(recipe, call, state)
    if not isinstance(due, jax.core.Tracer) and state.step == 1:
        jax.eval_shape(change, carry)  # Names what rules lack at once, as a traced step does.
    carry = change_if(due, change, carry)
    masks = unpack(carry.masks)
    if recipe.replaces_step:
        moves, after = replace_if(
            ~due,
            lambda gradients, before: wrapper.train(call, gradients, masks, before),
            *(carry.gradients, carry.inner),
        )
        moves = jax.tree.map(lambda move: jnp.where(due, 0, move), moves)
    else:
        moves, after = wrapper.train(call, carry.gradients, masks, carry.inner)
    kept = masks
    if carry.new is not None:
        kept = jax.tree.map(lambda mask, new: mask & ~new, masks, carry.new)
    moves = _settled(moves, call.params, kept, carry.initial)
    return moves, state._replace(masks=carry.masks, inner=after)


def _unchanged(recipe: Recipe, call: Call, state: SparseState) -> _Carry:
    """What a change may replace, without one."""
    # An inactive weight is 0, so a new one that starts there is right unless the step moves it.
    from_zero = recipe.grow_init is jax.nn.initializers.zeros
    stays = recipe.grow is None or (from_zero and recipe.replaces_step)
    new = None if stays else jax.tree.map(jnp.zeros_like, unpack(state.masks))
    initial = None if from_zero else jax.tree.map(jnp.zeros_like, call.params)
    return _Carry(state.masks, state.inner, call.gradients, new, initial)


def _settled(moves: PyTree, params: PyTree, kept: PyTree, initial: PyTree | None = None) -> PyTree:
    """The moves where ``kept``; elsewhere those that lead to 0, or to the ``initial`` value."""

    def move_of(keep: Array, move: Array, p: Array, q: Array | int = 0) -> Array:
        # p + (q - p) is exactly q where p or q is 0, unless a less precise move rounds it.
        return jnp.where(keep, move, q - p).astype(jnp.promote_types(move.dtype, p.dtype))

    return jax.tree.map(move_of, kept, moves, params, *([] if initial is None else [initial]))


def _if_finite(scores: Mapping[str, PyTree], changed: Changed, before: Changed) -> Changed:
    """The change, or what was before it if a gradient is not finite, or another score is NaN."""
    tests = [
        (jnp.isfinite(leaf) if name.endswith("gradient") else ~jnp.isnan(leaf)).all()
        for name, tree in scores.items()
        for leaf in jax.tree.leaves(tree)
    ]
    finite = jnp.all(jnp.asarray(tests))
    return jax.tree.map(lambda new, old: jnp.where(finite, new, old), changed, before)


def _every_layer(path: tuple[str, ...], layer: Array) -> bool:
    """The path filter of trees that hold nothing but layers."""
    return True


def _sharded_like(mask: Array, leaf: Array) -> Array:
    """Puts a mask on the devices of its parameter; inside jit, JAX does this."""
    if isinstance(mask, jax.core.Tracer) or isinstance(leaf, jax.core.Tracer):
        return mask
    spread = isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1
    return jax.device_put(mask, leaf.sharding) if spread else mask


def _check_layer(recipe: Recipe, layer: Layer, name: str) -> None:
    shape = layer.weight.shape
    for rule in filter(None, recipe.rules):
        for what in sorted(rule.needs):
            if getattr(layer, what) is None:
                subject = f"the rule {rule.name} needs {what} of {name}"
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
                f"the rule {rule.name} is for matrices, and {name} has shape {shape}; leave "
                "it out with the path filter `where`"
            )
    if layer.similarity is not None and layer.similarity.shape != shape:
        raise ConfigError(
            f"similarity of {name} has shape {layer.similarity.shape}; it must be {shape}"
        )
    of = shape if layer.importance is None else layer.importance.shape
    if len(of) != len(shape) or any(n not in (1, m) for n, m in zip(of, shape, strict=True)):
        raise ConfigError(f"importance of {name} has shape {of}; it must broadcast to {shape}")


def layers_of(
    params: PyTree,
    masks: PyTree,
    where: Where = is_kernel,
    *,
    search: Array | None = None,
    state: Any = None,
    **fields: PyTree | None,
) -> dict[str, Layer]:
    """What the rules see of every masked leaf, by its path, in the order of their names.

    Args:
      params, masks: trees of the same structure.
      where: which leaves are masked.
      search, state: of every :class:`Layer`.
      **fields: further fields of :class:`Layer`, each a tree with an array at the path of the
        masked leaves; other leaves are ignored and may be missing. Or ``None``.
    """
    weights, flat = named_leaves(params, where), leaves_by_name(masks)
    by_field = {field: leaves_by_name(tree) for field, tree in fields.items()}
    return {
        name: Layer(
            weights[name],
            flat[name],
            number,
            search=search,
            state=state,
            **{field: of.get(name) for field, of in by_field.items()},
        )
        for number, name in enumerate(sorted(weights, key=_natural))
    }


def _natural(name: str) -> list[tuple[bool, int | str]]:
    """Sorts ``layer_2`` before ``layer_10``."""
    parts = re.split(r"(\d+)", name)
    return [(part.isdigit(), int(part) if part.isdigit() else part) for part in parts]


def keep_moments(
    optimizer: optax.GradientTransformation, state: PyTree, changed: Changed
) -> PyTree:
    """The state of an optimiser where connections were kept, its initial value elsewhere."""
    fresh = optimizer.init(changed.params)
    selected = _in_place_of_copies(optimizer, state, changed.kept)
    leaves = jax.tree.leaves(changed.params)
    vector = (sum(leaf.size for leaf in leaves),)

    def choose(keep: Array | bool, old: Array, initial: Array) -> Array:
        if jnp.shape(keep) != old.shape == vector:  # All parameters in one, of optax.flatten.
            pairs = zip(jax.tree.leaves(changed.kept), leaves, strict=True)
            keep = jnp.concatenate([jnp.broadcast_to(k, p.shape).reshape(-1) for k, p in pairs])
        # Factored moments have no entry for each connection.
        if isinstance(keep, bool) or keep.shape != old.shape:
            return old
        return jnp.where(keep, old, initial)

    return jax.tree.map(choose, selected, state, fresh)


def _in_place_of_copies(
    optimizer: optax.GradientTransformation, state: PyTree, kept: PyTree
) -> PyTree:
    """``kept`` in place of every copy of the parameters, and True in place of everything else."""
    try:
        return optax.tree.map_params(
            optimizer,
            lambda leaf, keep: leaf if is_masked_out(leaf) else keep,
            state,
            kept,
            transform_non_params=lambda _: True,
            is_leaf=is_masked_out,
        )
    except (IndexError, ValueError):
        # The line searches of Optax look for a first leaf, and map_params shows them a tree
        # without any; SM3 keeps several arrays for each parameter. The copies of both have the
        # structure of the parameters.
        structure: object = jax.tree.structure(kept)

        def is_copy(node: Any) -> bool:
            return structure == jax.tree.structure(node)

        return jax.tree.map(lambda node: kept if is_copy(node) else True, state, is_leaf=is_copy)


def change_if(condition: Array, change: Callable[[PyTree], PyTree], carry: PyTree) -> PyTree:
    """``change(carry)`` if the condition holds, else ``carry``; derivatives as of ``lax.cond``.

    ``lax.cond`` copies what passes through it; a loop of at most one pass works in place. What
    ``change`` looks at must therefore be part of the carry, if it is in there at all. Outside of
    ``jit``, where JAX would compile the loop in every call, Python decides.
    """
    if not isinstance(condition, jax.core.Tracer):
        return change(carry) if condition else carry
    changed, constants = jax.closure_convert(change, carry)

    @jax.custom_jvp
    def run(condition: Array, carry: PyTree, constants: list[Array]) -> PyTree:
        def once(state: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
            return jnp.zeros_like(condition), changed(state[1], *constants)

        return jax.lax.while_loop(lambda state: state[0], once, (condition, carry))[1]

    @run.defjvp
    def derivative(primals: tuple, tangents: tuple) -> tuple[PyTree, PyTree]:
        def branch(condition: Array, carry: PyTree, constants: list[Array]) -> PyTree:
            return jax.lax.cond(condition, lambda: changed(carry, *constants), lambda: carry)

        return jax.jvp(branch, primals, tangents)

    return run(condition, carry, constants)


def replace_if(
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
    result = change_if(
        condition, lambda present: cast(train(*cast(present, carry)), widest), widest
    )
    return cast(result, types)
