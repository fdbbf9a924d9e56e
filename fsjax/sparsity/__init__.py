"""Sparse networks: masks, drop and grow rules, and an Optax wrapper for any network.

Examples:
  >>> recipes = [sparsity.static, sparsity.evolutionary, sparsity.rigl, sparsity.srigl]
  >>> recipes += [sparsity.ctre_sim, sparsity.cht, sparsity.snip]
  >>> for recipe in recipes:
  ...     tx = sparsity.sparse(optax.adam(1e-3), recipe(density=0.1), jax.random.key(0))
  ...     opt_state = tx.init({"kernel": jnp.ones((64, 10))})
  ...     print(sparsity.count_active(sparsity.masks_of(opt_state)))
  >>> schedule = sparsity.polynomial(20, 150, every=10)
  >>> pruning = [sparsity.magnitude, sparsity.saliency, sparsity.movement, sparsity.random]
  >>> for prune in [*pruning, sparsity.global_magnitude, sparsity.global_saliency]:
  ...     tx = sparsity.sparse(optax.adam(1e-3), prune(0.1, schedule=schedule), jax.random.key(0))
"""

import importlib
from typing import TYPE_CHECKING, Any

from fsjax.errors import unknown_attribute
from fsjax.sparsity import drop, grow, schedules, structures
from fsjax.sparsity.grow import path_scores
from fsjax.sparsity.hier_prox import hier_prox
from fsjax.sparsity.kth import kth_smallest, largest, random_subset, smallest
from fsjax.sparsity.masks import (
    apply_masks,
    count_active,
    erdos_renyi_counts,
    erdos_renyi_density_counts,
    init_masks,
    is_kernel,
    pack,
    random_mask,
    sparsity,
    uniform_counts,
    unpack,
)
from fsjax.sparsity.named_recipes import (
    cht,
    ctre_sim,
    evolutionary,
    global_magnitude,
    global_saliency,
    grasp,
    magnitude,
    magnitude_ste,
    movement,
    random,
    rigl,
    saliency,
    snip,
    srigl,
    static,
)
from fsjax.sparsity.optimizer import (
    SparseState,
    check,
    forward_params,
    mask_params,
    masks_of,
    sparse,
    with_masks,
)
from fsjax.sparsity.pruning_at_init import grasp_masks, hessian_gradient, snip_masks
from fsjax.sparsity.recipes import Recipe
from fsjax.sparsity.rules import DropRule, GrowRule, Layer, active_only, may_shrink, needs
from fsjax.sparsity.schedules import one_shot, periodic, polynomial
from fsjax.sparsity.structures import block, channel, fan_in, n_of_m, unstructured
from fsjax.sparsity.topology import Rewired, choose_dropped, choose_grown, rewire

if TYPE_CHECKING:
    from fsjax.sparsity import similarity
    from fsjax.sparsity.axis_roles import ParameterAxes, axes
    from fsjax.sparsity.binmask import (
        Masked,
        binmask_optimizer,
        init_binmask,
        layer_sparsity,
        mask_penalty,
        mask_sparsity,
        masked_weights,
        quantize,
    )
    from fsjax.sparsity.calibration import PrunedNetwork, ria, wanda
    from fsjax.sparsity.compression import compress
    from fsjax.sparsity.connection_ages import bias_correction
    from fsjax.sparsity.depth import remove_blocks
    from fsjax.sparsity.lottery import Ticket, lottery_tickets
    from fsjax.sparsity.optimal_brain_surgeon import brain_surgeon
    from fsjax.sparsity.shrinking import shrink
    from fsjax.sparsity.sparse_files import from_numpy, load_sparse, save_sparse, to_numpy
    from fsjax.sparsity.summary import degrees, mask_figure, overlap, summarize

#: The module of each name that is imported where it is first used.
_MODULE_OF = {
    name: module
    for module, names in {
        "axis_roles": ("ParameterAxes", "axes"),
        "binmask": (
            "Masked",
            "binmask_optimizer",
            "init_binmask",
            "layer_sparsity",
            "mask_penalty",
            "mask_sparsity",
            "masked_weights",
            "quantize",
        ),
        "calibration": ("PrunedNetwork", "ria", "wanda"),
        "compression": ("compress",),
        "depth": ("remove_blocks",),
        "lottery": ("Ticket", "lottery_tickets"),
        "connection_ages": ("bias_correction",),
        "optimal_brain_surgeon": ("brain_surgeon",),
        "shrinking": ("shrink",),
        "sparse_files": ("from_numpy", "load_sparse", "save_sparse", "to_numpy"),
        "summary": ("degrees", "mask_figure", "overlap", "summarize"),
    }.items()
    for name in names
}

if not TYPE_CHECKING:  # else no misspelt name would be a type error

    def __getattr__(name: str) -> Any:
        if name in ("similarity", "testing"):
            return importlib.import_module(f"fsjax.sparsity.{name}")
        if name in _MODULE_OF:
            module = importlib.import_module(f"fsjax.sparsity.{_MODULE_OF[name]}")
            return globals().setdefault(name, getattr(module, name))
        raise unknown_attribute(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "DropRule",
    "GrowRule",
    "Layer",
    "Masked",
    "ParameterAxes",
    "PrunedNetwork",
    "Recipe",
    "Rewired",
    "SparseState",
    "Ticket",
    "active_only",
    "apply_masks",
    "axes",
    "bias_correction",
    "binmask_optimizer",
    "block",
    "brain_surgeon",
    "channel",
    "check",
    "choose_dropped",
    "choose_grown",
    "cht",
    "compress",
    "count_active",
    "ctre_sim",
    "degrees",
    "drop",
    "erdos_renyi_counts",
    "erdos_renyi_density_counts",
    "evolutionary",
    "fan_in",
    "forward_params",
    "from_numpy",
    "global_magnitude",
    "global_saliency",
    "grasp",
    "grasp_masks",
    "grow",
    "hessian_gradient",
    "hier_prox",
    "init_binmask",
    "init_masks",
    "is_kernel",
    "kth_smallest",
    "largest",
    "layer_sparsity",
    "load_sparse",
    "lottery_tickets",
    "magnitude",
    "magnitude_ste",
    "mask_figure",
    "mask_params",
    "mask_penalty",
    "mask_sparsity",
    "masked_weights",
    "masks_of",
    "may_shrink",
    "movement",
    "n_of_m",
    "needs",
    "one_shot",
    "overlap",
    "pack",
    "path_scores",
    "periodic",
    "polynomial",
    "quantize",
    "random",
    "random_mask",
    "random_subset",
    "remove_blocks",
    "rewire",
    "ria",
    "rigl",
    "saliency",
    "save_sparse",
    "schedules",
    "shrink",
    "similarity",
    "smallest",
    "snip",
    "snip_masks",
    "sparse",
    "sparsity",
    "srigl",
    "static",
    "structures",
    "summarize",
    "to_numpy",
    "uniform_counts",
    "unpack",
    "unstructured",
    "wanda",
    "with_masks",
]
