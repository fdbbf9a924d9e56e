"""Sparse networks and their controls: SET, RigL, SNIP, static and dense, and QuickSelection.

Each is a drop rule and a grow rule of :mod:`fsjax.sparsity` over one body,
``shared/sparse_network.py``, which documents what they share.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fsjax.arguments import STATIC, TERM, Layers, NonNegative, Positive, Rate, Share
from fsjax.method import Method
from fsjax.methods.shared.sparse_network import (
    GROW_INITS,
    DenseOptions,
    GrowInit,
    SparseOptions,
    recipe_of,
    sparse_network,
)
from fsjax.registry import register
from fsjax.sparsity import drop as drop_rules
from fsjax.sparsity import grow as grow_rules

#: Drop rules by name: ``magnitude`` ranks all weights, ``per_sign`` each sign by itself.
DROPS = {"magnitude": drop_rules.magnitude, "per_sign": drop_rules.per_sign}

#: Defaults of their estimators.
TRAINING = {"num_epochs": 500, "batch_size": 100}

#: For tables of a dozen columns.
SMALL = {"hidden": (16, 8), "epsilon": 4.0, "form": "coordinates", "learning_rate": 0.03}


@register(
    estimator="SET",
    paper="Mocanu et al., Nature Communications 2018",
    optimises="the loss of a sparse network that grows at random",
    small=SMALL,
    options=SparseOptions,
    **TRAINING,
)
def set(  # noqa: A001
    *,
    drop_fraction: Share = 0.2,
    drop: Literal["magnitude", "per_sign"] = "magnitude",
    grow_init: GrowInit = "uniform",
    epsilon: Annotated[NonNegative, STATIC] | None = 1.0,
    density: Annotated[NonNegative, STATIC] | None = None,
    **options: Any,
) -> Method:
    """A sparse ReLU network that drops small weights after each epoch and grows random ones.

    SET as the CTRE paper runs it.

    Args:
      drop_fraction: zeta, share of the connections that is replaced, in [0, 1].
      drop: ``magnitude`` as in CTRE's comparison, or ``per_sign`` as in the original.
      grow_init: new weights ``uniform`` within sqrt(6 / n_in), or ``zeros``.
      epsilon, density: how many connections there are.
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights.

    Raises:
      ConfigError: for a value outside its range.
    """
    recipe = recipe_of(
        epsilon,
        density,
        drop=DROPS[drop],
        grow=grow_rules.random,
        fraction=drop_fraction,
        grow_init=GROW_INITS[grow_init],
    )
    return sparse_network(recipe, **options)


@register(
    estimator="RigL",
    paper="Evci et al., ICML 2020",
    optimises="the loss of a sparse network that grows where the gradient is largest",
    small=SMALL,
    options=SparseOptions,
    **TRAINING,
)
def rigl(
    *,
    drop_fraction: Share = 0.2,
    grow_init: GrowInit = "zeros",
    epsilon: Annotated[NonNegative, STATIC] | None = 1.0,
    density: Annotated[NonNegative, STATIC] | None = None,
    **options: Any,
) -> Method:
    """A sparse ReLU network that grows where the gradient of a dense layer would be largest.

    RigL with the schedule of the CTRE paper: one change after each epoch. The gradient is that of
    one random batch, and no weight is updated by it.

    Args:
      drop_fraction: share of the connections that is replaced, constant, in [0, 1].
      grow_init: new weights are ``zeros``, or ``uniform`` within sqrt(6 / n_in).
      epsilon, density: how many connections there are.
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights. For the
      original schedule on a network of your own, see :func:`fsjax.sparsity.sparse`.

    Raises:
      ConfigError: for a value outside its range.
    """
    recipe = recipe_of(
        epsilon,
        density,
        drop=drop_rules.magnitude,
        grow=grow_rules.gradient,
        fraction=drop_fraction,
        grow_init=GROW_INITS[grow_init],
    )
    return sparse_network(recipe, **options)


@register(
    estimator="SNIP",
    paper="Lee et al., ICLR 2019",
    optimises="the loss of a network that was pruned once, before training",
    small=SMALL,
    options=SparseOptions,
    **TRAINING,
)
def snip(
    *,
    epsilon: Annotated[NonNegative, STATIC] | None = 1.0,
    density: Annotated[NonNegative, STATIC] | None = None,
    **options: Any,
) -> Method:
    """A ReLU network that is pruned once, before the first step, and then keeps its topology.

    SNIP as the CTRE paper runs it. The sensitivity of a connection is the absolute product of its
    weight and its gradient on one random batch of the dense network. Layers are ranked one by one.

    Args:
      epsilon, density: how many connections are kept.
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights.

    Raises:
      ConfigError: for a value outside its range.
    """
    return sparse_network(recipe_of(epsilon, density), prune=True, **options)


@register(
    estimator="StaticSparse",
    paper="control",
    optimises="the loss of a network with fixed random connections",
    small={"hidden": (16, 8), "density": 0.6, "epsilon": None, "learning_rate": 0.03},
    options=SparseOptions,
    **TRAINING,
)
def static_sparse(
    *,
    epsilon: Annotated[NonNegative, STATIC] | None = 1.0,
    density: Annotated[NonNegative, STATIC] | None = None,
    **options: Any,
) -> Method:
    """A sparse ReLU network whose random connections never change: the control of rewiring.

    Args:
      epsilon, density: how many connections there are.
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights.

    Raises:
      ConfigError: for a value outside its range.
    """
    return sparse_network(recipe_of(epsilon, density), **options)


@register(
    estimator="Dense",
    paper="control",
    optimises="the loss of the dense network behind these",
    small={"hidden": (16, 8), "learning_rate": 0.03},
    options=DenseOptions,
    **TRAINING,
)
def dense(**options: Any) -> Method:
    """A dense ReLU network, trained as the sparse ones are: the baseline of CTRE's Table 2.

    Args:
      **options: those of :class:`fsjax.methods.shared.sparse_network.DenseOptions`.

    Returns:
      The method; its score of a column is the sum of its absolute outgoing weights.

    Raises:
      ConfigError: for a value outside its range.
    """
    return sparse_network(None, **options)


@register(
    estimator="QuickSelection",
    paper="Atashgahi et al., Machine Learning 2022",
    optimises="the reconstruction by a sparse network that grows at random",
    small={"hidden": (6,), "density": 0.4, "form": "coordinates", "learning_rate": 0.03},
    options=SparseOptions,
    num_epochs=100,
    batch_size=128,
)
def quick_selection(
    *,
    hidden: Layers = (200,),
    epsilon: Annotated[NonNegative, STATIC] | None = None,
    density: Annotated[NonNegative, STATIC] | None = 0.2,
    drop_fraction: Share = 0.3,
    drop: Literal["magnitude", "per_sign"] = "per_sign",
    grow_init: GrowInit = "zeros",
    input_noise: Annotated[NonNegative, TERM] = 0.2,
    initialisation: Literal["fan_in", "glorot"] = "fan_in",
    learning_rate: Positive = 0.1,
    momentum: Rate = 0.9,
    l2: Annotated[NonNegative, TERM] = 0.0,
    **options: Any,
) -> Method:
    """A sparse sigmoid autoencoder whose strongest input neurons are the selection.

    The defaults are those with which the WAST paper compares (its appendix A.1). The original
    (Atashgahi et al. 2022) has 1000 hidden neurons, epsilon 13, drop fraction 0.2, learning rate
    0.01 and l2 1e-5; it draws its input noise once and grows weights from a normal distribution.

    Args:
      hidden: widths of the hidden layers, as a tuple.
      epsilon: Erdos-Renyi: a layer has ``epsilon (n_in + n_out)`` connections.
      density: instead of epsilon (then 0), the share of connections in every layer.
      drop_fraction: share of the connections that is replaced after each epoch, in [0, 1].
      drop: ``per_sign``, or ``magnitude`` over all weights.
      grow_init: new weights are ``zeros``, or ``uniform`` within sqrt(6 / n_in).
      input_noise: standard deviation of Gaussian noise on the inputs.
      initialisation: ``fan_in`` (PyTorch's) or ``glorot``.
      learning_rate: of gradient descent with Nesterov's momentum.
      momentum: in [0, 1).
      l2: weight of half the sum of squared weights in the loss.
      **options: those of :class:`fsjax.methods.shared.sparse_network.SparseOptions`.

    Returns:
      The method; its score of a column is the strength of its input neuron, the sum of its
      absolute outgoing weights. It needs no labels.

    Raises:
      ConfigError: for a value outside its range.
    """
    recipe = recipe_of(
        epsilon,
        density,
        drop=DROPS[drop],
        grow=grow_rules.random,
        fraction=drop_fraction,
        grow_init=GROW_INITS[grow_init],
    )
    return sparse_network(
        recipe,
        hidden=hidden,
        activation="sigmoid",
        initialisation=initialisation,
        learning_rate=learning_rate,
        momentum=momentum,
        l2=l2,
        input_noise=input_noise,
        only=("reconstruction",),
        **options,
    )
