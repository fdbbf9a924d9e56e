"""Recipes by name: methods of pruning and of sparse training for any network.

Each takes a ``density`` (a share, a share by path pattern, or a function of the shapes), a
``schedule`` (:mod:`fsjax.sparsity.schedules`) and a ``structure``
(:mod:`fsjax.sparsity.structures`), beside all else that :class:`fsjax.sparsity.Recipe` has.
"""

from __future__ import annotations

from typing import Any

import jax
import optax

from fsjax.sparsity import drop, grow
from fsjax.sparsity.recipes import Density, Recipe
from fsjax.sparsity.schedules import Schedule, ShareAt, one_shot
from fsjax.sparsity.structures import fan_in


def static(density: Density | None = None, **options: Any) -> Recipe:
    """Random connections that never change. Arguments as in :class:`Recipe`."""
    return Recipe(density=density, **options)


def evolutionary(density: Density | None = None, **options: Any) -> Recipe:
    """SET, sparse evolutionary training (Mocanu et al. 2018).

    The positive and the negative weights nearest 0 go, random connections come. Arguments as in
    :class:`Recipe`.
    """
    rules = {"drop": drop.per_sign, "grow": grow.random}
    return Recipe(density=density, **{**rules, **options})


def rigl(
    density: Density | None = None,
    *,
    fraction: float = 0.3,
    end_step: int | None = None,
    **options: Any,
) -> Recipe:
    """RigL (Evci et al. 2020): the smallest weights go, the largest gradients come.

    With ``end_step`` the fraction falls to 0 by a cosine, as in the paper, which ends after three
    quarters of the training; without, it is constant. Arguments as in :class:`Recipe`.
    """
    # f/2 (1 + cos(pi t / T_end))
    decayed = fraction if end_step is None else optax.cosine_decay_schedule(fraction, end_step)
    rules = {"drop": drop.magnitude, "grow": grow.gradient, "replaces_step": True}
    return Recipe(density=density, fraction=decayed, end_step=end_step, **{**rules, **options})


def ctre_sim(density: Density | None = None, *, fraction: float = 0.2, **options: Any) -> Recipe:
    """CTRE-sim (CTRE, algorithm 2): the smallest weights go, connections of similar neurons come.

    New weights start uniform within ``sqrt(6 / n_in)``, as in the authors' code. The paper sets
    ``epsilon`` and makes one change in each epoch. Arguments as in :class:`Recipe`.
    """
    rules = {
        "drop": drop.magnitude,
        "grow": grow.similar_or_random,
        "grow_init": jax.nn.initializers.he_uniform(),
    }
    return Recipe(density=density, fraction=fraction, **{**rules, **options})


def cht(density: Density | None = None, **options: Any) -> Recipe:
    """CHT, Cannistraci-Hebb training: the smallest weights go, ends of short paths are joined.

    It needs no gradients of missing connections. What was dropped is often what is joined again,
    so that the topology settles; with ``grow=grow.sampled_short_paths``, the soft rule of CHTs,
    connections are drawn by their scores. Arguments as in :class:`Recipe`.
    """
    rules = {"drop": drop.magnitude, "grow": grow.short_paths}
    return Recipe(density=density, **{**rules, **options})


def srigl(
    density: Density | None = None,
    *,
    output_axis: int = -1,
    fraction: float = 0.3,
    end_step: int | None = None,
    **options: Any,
) -> Recipe:
    """SRigL (Lasby et al., ICLR 2024): RigL with as many inputs for each output.

    Without the ablation of neurons, one of the paper's two variants. Arguments as in :func:`rigl`
    and :func:`fsjax.sparsity.fan_in`.
    """
    structure = fan_in(output_axis)
    return rigl(density, fraction=fraction, end_step=end_step, structure=structure, **options)


def magnitude(
    density: Density | None = None, *, schedule: Schedule | ShareAt, **options: Any
) -> Recipe:
    """Magnitude pruning (Zhu and Gupta, 2017): the smallest weights of each layer go.

    Args:
      density: in the end, as in :class:`Recipe`.
      schedule: such as ``polynomial(0, 1000, every=50)``.
      **options: others of :class:`Recipe`, such as ``structure``.
    """
    return Recipe(density=density, schedule=schedule, **{"drop": drop.magnitude, **options})


def global_magnitude(
    density: Density | None = None, *, schedule: Schedule | ShareAt, **options: Any
) -> Recipe:
    """The smallest weights of all layers go. Arguments as :func:`magnitude`, without structures."""
    return magnitude(density, schedule=schedule, **{"scope": "global", **options})


def saliency(
    density: Density | None = None, *, schedule: Schedule | ShareAt, **options: Any
) -> Recipe:
    """The smallest ``|weight x gradient|`` of the step go. Arguments as :func:`magnitude`."""
    return Recipe(density=density, schedule=schedule, **{"drop": drop.saliency, **options})


def global_saliency(
    density: Density | None = None, *, schedule: Schedule | ShareAt, **options: Any
) -> Recipe:
    """:func:`saliency` over all layers. Arguments as :func:`magnitude`, without structures."""
    return saliency(density, schedule=schedule, **{"scope": "global", **options})


def random(
    density: Density | None = None, *, schedule: Schedule | ShareAt, **options: Any
) -> Recipe:
    """Random connections go, a control. Arguments as :func:`magnitude`."""
    return Recipe(density=density, schedule=schedule, **{"drop": drop.random, **options})


def magnitude_ste(density: Density | None = None, **options: Any) -> Recipe:
    """All weights train, and the forward pass uses the largest (straight-through estimator).

    As top-KAST (Jayakumar et al., 2020) with gradients of all weights, chosen anew at every step,
    or as a ``schedule`` says. The loss takes :func:`fsjax.sparsity.forward_params`. Arguments as in
    :class:`Recipe`.
    """
    rules = {"drop": drop.magnitude, "straight_through": True, "every": 1}
    return Recipe(density=density, **{**rules, **options})


def snip(density: Density | None = None, **options: Any) -> Recipe:
    """SNIP (Lee et al., 2019): the smallest ``|weight x gradient|`` of all layers go at step 1.

    The first call of ``update`` prunes by its gradients and trains nothing; give it those of a
    large batch. Arguments as in :class:`Recipe`; another ``schedule`` prunes later.
    """
    rules = {"drop": drop.saliency, "schedule": one_shot(1), "replaces_step": True}
    return Recipe(density=density, **{**_global(options), **rules, **options})


def grasp(density: Density | None = None, **options: Any) -> Recipe:
    """GraSP (Wang et al., 2020): at step 1 those weights go that hinder the gradient flow.

    The first call of ``update`` prunes and trains nothing; it takes
    ``hessian_gradient=fsjax.sparsity.hessian_gradient(loss, params)``. Arguments as in
    :class:`Recipe`; another ``schedule`` prunes later.
    """
    rules = {"drop": drop.gradient_flow, "schedule": one_shot(1), "replaces_step": True}
    return Recipe(density=density, **{**_global(options), **rules, **options})


def _global(options: dict[str, Any]) -> dict[str, str]:
    """Weights of all layers compete, but for structures, which are of one layer."""
    return {} if options.get("structure") is not None else {"scope": "global"}
