"""Sparse networks (SET, RigL, SNIP, QuickSelection) and their controls (static and dense).

Each combines a drop rule and a grow rule of :mod:`fsjax.sparsity` with the network of
``shared/sparse_network.py``, whose options they share.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fsjax.arguments import STATIC, TERM, Layers, NonNegative, Positive, Rate, Schedule, Share
from fsjax.method import Method
from fsjax.methods.shared.sparse_network import (
    SPARSE,
    DenseOptions,
    GrowInit,
    SparseOptions,
    sparse_network,
)
from fsjax.registry import register
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules

#: Drop rules: ``magnitude`` ranks all weights together, ``per_sign`` each sign separately.
Drop = Literal["magnitude", "per_sign"]


@register(
    estimator="SET",
    paper="Mocanu et al., Nature Communications 2018",
    optimises="the loss of a sparse network that grows at random",
    **SPARSE,
)
def set(  # noqa: A001
    *,
    drop_fraction: Share = 0.2,
    drop: Drop = "magnitude",
    grow: Literal["random", "short_paths", "sampled_short_paths"] = "random",
    grow_init: GrowInit = "uniform",
    **options: Any,
) -> Method:
    """A sparse ReLU network that drops small weights after each epoch and grows random ones.

    This is SET as the CTRE paper runs it; with another ``grow`` it is Cannistraci-Hebb training.

    Args:
      drop_fraction: zeta, the share of the connections that is replaced, in [0, 1].
      drop: ``magnitude``, as in the CTRE paper's comparison, or ``per_sign``, as in the original.
      grow: ``random``; ``short_paths``, the missing connections whose ends are joined by the most
        short paths (CHT); or ``sampled_short_paths``, drawn by the number of these paths (CHTs).
      grow_init: initial weights of new connections: ``uniform`` within sqrt(6 / n_in), or
        ``zeros``.
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.
    """
    return sparse_network(
        drop=getattr(drop_rules, drop),
        grow=getattr(grow_rules, grow),
        drop_fraction=drop_fraction,
        grow_init=grow_init,
        **options,
    )


@register(
    estimator="RigL",
    paper="Evci et al., ICML 2020",
    optimises="the loss of a sparse network that grows where the gradient is largest",
    **SPARSE,
)
def rigl(*, drop_fraction: Share = 0.2, grow_init: GrowInit = "zeros", **options: Any) -> Method:
    """A sparse ReLU network that grows where the gradient of a dense layer would be largest.

    This is RigL with the schedule of the CTRE paper: the topology changes once after each epoch.
    The gradient is that of one random batch, which is not used to update weights. For the original
    schedule, on a network of your own, see :func:`fsjax.sparsity.sparse`.

    Args:
      drop_fraction: share of the connections that is replaced, in [0, 1]; constant.
      grow_init: initial weights of new connections: ``zeros``, or ``uniform`` within
        sqrt(6 / n_in).
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.
    """
    return sparse_network(
        drop=drop_rules.magnitude,
        grow=grow_rules.gradient,
        drop_fraction=drop_fraction,
        grow_init=grow_init,
        **options,
    )


@register(
    estimator="SNIP",
    paper="Lee et al., ICLR 2019",
    optimises="the loss of a network that was pruned once, before training",
    **SPARSE,
)
def snip(**options: Any) -> Method:
    """A ReLU network that is pruned once, before training, and then keeps its topology.

    This is SNIP as the CTRE paper runs it: each layer keeps the connections of largest sensitivity,
    the absolute product of weight and gradient in the dense network on one random batch.

    Args:
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.
    """
    return sparse_network(prune=True, **options)


@register(
    estimator="StaticSparse",
    paper="control",
    optimises="the loss of a network with fixed random connections",
    **SPARSE,
)
def static_sparse(**options: Any) -> Method:
    """A sparse ReLU network whose random connections never change: the control for rewiring.

    Args:
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.
    """
    return sparse_network(**options)


@register(
    estimator="Dense",
    paper="control",
    optimises="the loss of the dense network that the sparse ones are compared with",
    num_epochs=500,
    batch_size=100,
    small={"hidden": (16, 8), "learning_rate": 0.03},
    options=DenseOptions(),
)
def dense(**options: Any) -> Method:
    """A dense ReLU network trained like the sparse ones: the baseline of CTRE's Table 2.

    Args:
      **options: those of :class:`fsjax.methods.shared.sparse_network.DenseOptions`.
    """
    return sparse_network(sparse=False, **options)


@register(
    estimator="QuickSelection",
    paper="Atashgahi et al., Machine Learning 2022",
    optimises="the reconstruction by a sparse network that grows at random",
    small={"hidden": (6,), "density": 0.4, "learning_rate": 0.03},
    options=replace(SparseOptions(), rank_by="strength"),
    num_epochs=100,
    batch_size=128,
    scaling="scalar",
)
def quick_selection(
    *,
    hidden: Layers = (200,),
    epsilon: Annotated[NonNegative, STATIC] | None = None,
    density: Annotated[NonNegative, STATIC] | None = 0.2,
    drop_fraction: Share = 0.3,
    drop: Drop = "per_sign",
    grow_init: GrowInit = "zeros",
    input_noise: Annotated[NonNegative, TERM] = 0.2,
    initialisation: Literal["fan_in", "glorot"] = "fan_in",
    learning_rate: Positive | Schedule = 0.1,
    momentum: Rate = 0.9,
    l2: Annotated[NonNegative, TERM] = 0.0,
    **options: Any,
) -> Method:
    """A sparse denoising autoencoder that selects its strongest input neurons.

    The strength of a neuron is the sum of the absolute weights of its connections. After each epoch
    small weights are dropped and random ones grown, as in SET. It needs no labels. The defaults are
    those with which the WAST paper compares (its appendix A.1). The original (Atashgahi et al.
    2022) has 1000 hidden neurons, epsilon 13, drop fraction 0.2, learning rate 0.01 and l2 1e-5; it
    draws its input noise once and initialises new weights from a normal distribution.

    Args:
      drop_fraction: zeta, the share of the connections that is replaced after each epoch, in
        [0, 1].
      drop: ``per_sign``, or ``magnitude`` over all weights.
      grow_init: initial weights of new connections: ``zeros``, or ``uniform`` within
        sqrt(6 / n_in).
      input_noise: standard deviation of the Gaussian noise on the inputs, at least 0.
      initialisation: ``fan_in`` (PyTorch's default) or ``glorot``.
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.
    """
    return sparse_network(
        drop=getattr(drop_rules, drop),
        grow=grow_rules.random,
        drop_fraction=drop_fraction,
        grow_init=grow_init,
        hidden=hidden,
        epsilon=epsilon,
        density=density,
        activation="sigmoid",
        initialisation=initialisation,
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
        input_noise=input_noise,
        only=("reconstruction",),
        **options,
    )
