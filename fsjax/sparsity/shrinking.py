"""Makes a network smaller: removes whole channels from every parameter that holds them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.arguments import Rate, check
from fsjax.errors import ConfigError, FixedLengthWarning
from fsjax.sparsity.channel_groups import Axis, ChannelGroup, Channels
from fsjax.sparsity.channels import channel_groups
from fsjax.sparsity.masks import bool_masks, by_pattern
from fsjax.sparsity.trees import check_same_shapes, leaves_by_name, with_leaves
from fsjax.typing import PyTree


@dataclasses.dataclass(frozen=True)
class Shrunk:
    """A smaller network.

    Attributes:
      params: the parameters that are left, in the structure of those before.
      masked: the parameters in their old shapes, with 0 in place of what was removed. The network
        of the old widths has with these the outputs that the smaller one has with ``params``, or
        NaN if it divides by activations of what was removed, or takes their logarithm, at 0.
      groups: the channels that could be removed.
      removed: by the name of a group, bool ``(size,)``, which of its channels are removed.
      reasons: by path, why no output of these weights can be removed.
    """

    params: PyTree
    masked: PyTree
    groups: tuple[ChannelGroup, ...]
    removed: Mapping[str, np.ndarray]
    reasons: Mapping[str, str]

    @property
    def widths(self) -> dict[str, int]:
        """The number of outputs of each layer that shrank, to build the smaller module with.

        By the path of its weights; of attention kernels, the number of heads.
        """
        shapes = {path: jnp.shape(leaf) for path, leaf in leaves_by_name(self.params).items()}
        return {
            path: shapes[path][axis]
            for group in self.groups
            for path, axis in group.output_axes
            if len(shapes[path]) > 1
        }

    @property
    def num_channels(self) -> dict[str, int]:
        """The number of channels that each group has now, by its name.

        Of a layer whose outputs are split into heads, or into groups of a norm, that of these.
        """
        return {group.name: int((~self.removed[group.name]).sum()) for group in self.groups}

    def shrink(self, tree: PyTree) -> PyTree:
        """A tree in the structure of the parameters, such as moments of Adam, without the channels.

        Args:
          tree: arrays in the old shapes.

        Raises:
          ConfigError: if paths or shapes differ.
        """
        leaves = leaves_like(tree, self.masked)
        return with_leaves(tree, _without(leaves, _removed_entries(self.groups, self.removed)))

    def __str__(self) -> str:
        numbers = self.num_channels
        lines = [
            f"{group.name}: {group.size} -> {numbers[group.name]} channels in "
            f"{len(group.entries)} axes"
            for group in self.groups
        ]
        return report(lines, self.reasons, self.masked, self.params)


def shrink(
    function: Callable,
    params: PyTree,
    *inputs: PyTree,
    ratio: float | Mapping[str, float] | None = None,
    masks: PyTree | None = None,
    importance: str | PyTree = "magnitude",
) -> Shrunk:
    """Removes channels from a network, everywhere at once, and returns a smaller dense network.

    Which entries of which parameters belong to a channel is read from the program: through sums
    of branches, concatenations, norms over positions, reshapes, groups of convolutions, loops over
    layers and tied weights. Of attention, whole heads are removed. Inputs and outputs of the
    network, and axes over which it takes means (LayerNorm), keep their length.

        smaller = sparsity.shrink(model.apply, variables, x, ratio=0.5)
        Network(width=smaller.widths["params/Dense_0/kernel"]).apply(smaller.params, x)

    Args:
      function: ``(params, *inputs) -> outputs``, in evaluation mode, as for
        :func:`fsjax.sparsity.axes`. Scales that it computes from widths, such as the square root of
        a number of channels, change with them.
      params: arrays, with the statistics of norms among them.
      *inputs: arrays or shapes; their batch size does not matter.
      ratio: share of channels to remove from each group, in [0, 1), or shares by path pattern of
        the names of groups (the path of the weights whose outputs they are); at least one channel
        is left, and groups without a match keep all.
      masks: instead of ``ratio``, bool arrays in the structure of ``params``, as
        :func:`fsjax.sparsity.masks_of` has them with the structure ``channel()``: removed are the
        channels that no weight leads to, or that no weight reads. Biases and scales of theirs go
        too.
      importance: what is lowest for the channels that are removed with ``ratio``. ``"magnitude"``:
        the mean, over the weights that make or read a channel, of their norm, relative to that of
        other channels (Li et al. 2017, section 3.1; Fang et al. 2023, equation 4). Or the gradients
        of a loss in the structure of ``params``: the size of the sum of weight times gradient, over
        the weights that read a channel (first-order Taylor; Molchanov et al. 2017, equation 8).

    Raises:
      ConfigError: unless exactly one of ``ratio`` and ``masks`` is given, if a pattern matches no
        group, if nothing can be removed (with the reason of each layer), if trees differ, or if
        masks are not bool.

    Warns:
      FixedLengthWarning: if the function can be called with the smaller parameters, and gives other
        outputs for ``inputs`` than with ``masked``: it holds numbers of heads or groups itself.

    Examples:
      >>> keys = jax.random.split(jax.random.key(0))
      >>> params = {
      ...     "first": jax.random.normal(keys[0], (6, 8)),
      ...     "second": jax.random.normal(keys[1], (8, 2)),
      ... }
      >>> def apply(params, x):
      ...     return jax.nn.relu(x @ params["first"]) @ params["second"]
      >>> smaller = sparsity.shrink(apply, params, jnp.ones((1, 6)), ratio=0.5)
      >>> print(smaller.widths, jax.tree.map(jnp.shape, smaller.params))
      {'first': 4} {'first': (6, 4), 'second': (4, 2)}
    """
    if (ratio is None) == (masks is None):
        raise ConfigError("give exactly one of ratio= and masks=")
    channels = channel_groups(function, params, *inputs)
    if not channels.groups:
        raise ConfigError(f"no channel of this network can be removed: {_first_reasons(channels)}")
    leaves = leaves_by_name(params)
    arrays = {
        path: np.asarray(leaves[path]) for group in channels.groups for path, _ in group.entries
    }
    if masks is not None:
        active = {
            path: np.asarray(mask) for path, mask in leaves_by_name(bool_masks(masks)).items()
        }
        check_same_shapes(active, leaves, "the masks", "the network")
        removed = {group.name: _is_dead(group, active) for group in channels.groups}
    else:
        assert ratio is not None  # as checked above
        terms = None
        if not isinstance(importance, str):
            terms = _terms(importance, leaves, arrays)
        elif importance != "magnitude":
            raise ConfigError(
                f"importance={importance!r}; give 'magnitude', or gradients in the structure of "
                "params"
            )
        removed = _lowest(channels.groups, arrays, ratio, terms)
    entries = _removed_entries(channels.groups, removed)
    shrunk = Shrunk(
        with_leaves(params, _without(leaves, entries)),
        with_leaves(params, _zeroed(leaves, entries)),
        channels.groups,
        removed,
        channels.reasons,
    )
    _warn_of_fixed_lengths(function, shrunk, *inputs)
    return shrunk


def _warn_of_fixed_lengths(function: Callable, shrunk: Shrunk, *inputs: PyTree) -> None:
    if gives_other_outputs(function, shrunk.params, shrunk.masked, *inputs):
        numbers = ", ".join(f"{number} in {name}" for name, number in shrunk.num_channels.items())
        warnings.warn(
            "the function gives other outputs with the smaller parameters than with the masked "
            "ones: it holds numbers itself, of heads or of groups of a norm (call it with those "
            f"that remain: {numbers}), or it divides by activations that are 0 in the masked "
            "network (check the smaller one by its accuracy)",
            FixedLengthWarning,
            stacklevel=3,
        )


def leaves_like(tree: PyTree, network: PyTree) -> dict[str, Array]:
    """The leaves of a tree by path; ConfigError unless they have the shapes of the network's."""
    leaves = leaves_by_name(tree)
    check_same_shapes(leaves, leaves_by_name(network), "the tree", "the network")
    return leaves


def report(lines: Sequence[str], reasons: Mapping[str, str], masked: PyTree, params: PyTree) -> str:
    """What was removed, what was kept and why, and the numbers of parameters."""
    kept = [f"{name}: kept, {reason}" for name, reason in reasons.items()]
    before, after = (sum(leaf.size for leaf in jax.tree.leaves(t)) for t in (masked, params))
    return "\n".join([*lines, *kept, f"{before} -> {after} parameters"])


def gives_other_outputs(
    function: Callable, params: PyTree, masked: PyTree, *inputs: PyTree
) -> bool:
    """Whether a function that smaller parameters fit gives other outputs than with masked ones.

    False for functions that they do not fit, and if the inputs are shapes.
    """
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(inputs)):
        return False
    program = jax.jit(function)
    try:
        outputs = program(params, *inputs)
    except Exception:  # Whatever a module raises that has to be built anew.
        return False
    pairs = zip(jax.tree.leaves(outputs), jax.tree.leaves(program(masked, *inputs)), strict=True)
    return not all(np.shape(a) == np.shape(b) and _is_close(a, b) for a, b in pairs)


def _is_close(outputs: Array, expected: Array) -> bool:
    """Whether outputs differ by rounding alone."""
    if not jnp.issubdtype(expected.dtype, jnp.inexact):
        return True  # Keys, and indices of the largest, which rounding may change.
    return bool(_is_rounding(outputs, expected))


@jax.jit
def _is_rounding(outputs: Array, expected: Array) -> Array:
    sizes = jnp.abs(expected)
    # The median, as some outputs may be infinite or as good as that, for what is masked.
    size = jnp.nan_to_num(jnp.nanmedian(jnp.where(jnp.isfinite(sizes), sizes, jnp.nan)))
    return jnp.allclose(outputs, expected, rtol=1e-2, atol=1e-2 * size, equal_nan=True)


def _lowest(
    groups: Sequence[ChannelGroup],
    arrays: Mapping[str, np.ndarray],
    ratio: float | Mapping[str, float],
    terms: Mapping[str, np.ndarray] | None,
) -> dict[str, np.ndarray]:
    """The channels of lowest importance in each group."""
    shares = ratio if isinstance(ratio, Mapping) else {"*": ratio}
    for share in shares.values():
        check(Rate, ratio=share)
    names = [group.name for group in groups]
    remaining = by_pattern({at: 1 - share for at, share in shares.items()}, names)
    removed = {}
    for group, share in zip(groups, remaining, strict=True):
        scores = _norms(group, arrays) if terms is None else _taylor(group, terms)
        count = min(round((1 - share) * group.size), group.size - 1)
        removed[group.name] = np.zeros(group.size, bool)
        removed[group.name][np.argsort(scores, kind="stable")[:count]] = True
    return removed


def _terms(
    gradients: PyTree, leaves: Mapping[str, Array], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Weight times gradient of the parameters of the groups."""
    slopes = leaves_by_name(gradients)
    check_same_shapes(slopes, leaves, "the gradients", "the network")
    return {
        path: np.real(_double(array) * _double(np.asarray(slopes[path])))
        for path, array in arrays.items()
    }


def _double(array: np.ndarray) -> np.ndarray:
    return array.astype(np.promote_types(array.dtype, np.float64))


def _sums(array: np.ndarray, axis: int, entries: np.ndarray) -> np.ndarray:
    """For each channel, the sum of an array over its entries ``(size, ...)`` of an axis."""
    rest = tuple(i for i in range(array.ndim) if i != axis)
    return array.sum(rest)[entries].sum(axis=1)


def _norms(group: ChannelGroup, leaves: Mapping[str, np.ndarray]) -> np.ndarray:
    scores = np.zeros(group.size)
    for path, axis in dict.fromkeys((*group.output_axes, *group.input_axes)):
        squares = np.square(np.abs(_double(leaves[path])))
        norms = np.sqrt(_sums(squares, axis, group.entries[path, axis]))
        scores += norms / (norms.mean() or 1.0)
    return scores


def _taylor(group: ChannelGroup, terms: Mapping[str, np.ndarray]) -> np.ndarray:
    parts = [_sums(terms[path], axis, group.entries[path, axis]) for path, axis in group.input_axes]
    return np.abs(np.sum(parts, axis=0))


def _is_dead(group: ChannelGroup, masks: Mapping[str, np.ndarray]) -> np.ndarray:
    """Which channels no active weight leads to, or none reads; one is left in any case."""
    dead = np.zeros(group.size, bool)
    for axes in (group.output_axes, group.input_axes):
        active = [_sums(masks[path], axis, group.entries[path, axis]) for path, axis in axes]
        dead |= np.sum(active, axis=0) == 0
    if dead.all():
        dead[0] = False
    return dead


def _removed_entries(
    groups: Sequence[ChannelGroup], removed: Mapping[str, np.ndarray]
) -> dict[Axis, np.ndarray]:
    """The entries of each axis that are removed."""
    parts: dict[Axis, list[np.ndarray]] = {}
    for group in groups:
        for axis, entries in group.entries.items():
            parts.setdefault(axis, []).append(entries[removed[group.name]].ravel())
    return {axis: np.concatenate(of_axis) for axis, of_axis in parts.items()}


def _without(leaves: Mapping[str, Array], removed: Mapping[Axis, np.ndarray]) -> dict[str, Array]:
    """The leaves that change, without entries; cut by NumPy, which has nothing to compile."""
    smaller = {path: np.asarray(leaves[path]) for path, _ in removed}
    for (path, axis), entries in removed.items():
        smaller[path] = np.delete(smaller[path], entries, axis)
    return jax.device_put(smaller)


def _zeroed(leaves: Mapping[str, Array], removed: Mapping[Axis, np.ndarray]) -> dict[str, Array]:
    """The leaves that change, with 0 in place of entries."""
    zeroed = {path: np.array(leaves[path]) for path, _ in removed}
    for (path, axis), entries in removed.items():
        np.moveaxis(zeroed[path], axis, 0)[entries] = 0
    return jax.device_put(zeroed)


def _first_reasons(channels: Channels) -> str:
    """Why nothing can be removed, of the first layers."""
    pairs = [f"{path}: {reason}" for path, reason in channels.reasons.items()]
    return "; ".join(pairs[:4]) or "it has no weights whose outputs other weights read"
