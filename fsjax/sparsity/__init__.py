"""Sparse networks: masks, drop and grow rules, and an Optax wrapper for any network."""

from fsjax.sparsity import drop, grow, similarity
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
from fsjax.sparsity.hier_prox import hier_prox
from fsjax.sparsity.kth import kth_smallest, largest, random_subset, smallest
from fsjax.sparsity.masks import (
    apply_masks,
    count_active,
    erdos_renyi_counts,
    erdos_renyi_density_counts,
    init_masks,
    is_kernel,
    random_mask,
    snip_masks,
    sparsity,
    uniform_counts,
)
from fsjax.sparsity.optimizer import SparseState, mask_params, masks_of, sparse, with_masks
from fsjax.sparsity.paths import path_scores
from fsjax.sparsity.recipes import Recipe, cht, ctre_sim, evolutionary, rigl, static
from fsjax.sparsity.topology import DropRule, GrowRule, Layer, Rewired, needs, rewire

__all__ = [
    "DropRule",
    "GrowRule",
    "Layer",
    "Masked",
    "Recipe",
    "Rewired",
    "SparseState",
    "apply_masks",
    "binmask_optimizer",
    "cht",
    "count_active",
    "ctre_sim",
    "drop",
    "erdos_renyi_counts",
    "erdos_renyi_density_counts",
    "evolutionary",
    "grow",
    "hier_prox",
    "init_binmask",
    "init_masks",
    "is_kernel",
    "kth_smallest",
    "largest",
    "layer_sparsity",
    "mask_params",
    "mask_penalty",
    "mask_sparsity",
    "masked_weights",
    "masks_of",
    "needs",
    "path_scores",
    "quantize",
    "random_mask",
    "random_subset",
    "rewire",
    "rigl",
    "similarity",
    "smallest",
    "snip_masks",
    "sparse",
    "sparsity",
    "static",
    "uniform_counts",
    "with_masks",
]
