"""Published methods of pruning and sparse training, as recipes for any network.

Each function takes a ``density`` (a share, shares by path pattern, or a function of the shapes), a
``schedule`` (:mod:`fsjax.sparsity.schedules`), a ``structure`` (:mod:`fsjax.sparsity.structures`)
and all other options of :class:`fsjax.sparsity.Recipe`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import optax
from jax import Array

from fsjax.sparsity import drop, grow
from fsjax.sparsity.recipes import Density, Recipe
from fsjax.sparsity.schedules import ShareAt, TopologySchedule, one_shot
from fsjax.sparsity.structures import fan_in


def static(density: Density | None = None, **options: Any) -> Recipe:
    """Random connections that never change. Arguments as in :class:`Recipe`."""
    return Recipe(density=density, **options)


def evolutionary(density: Density | None = None, **options: Any) -> Recipe:
    """SET, sparse evolutionary training (Mocanu et al., 2018).

    Drops the smallest positive and the largest negative weights, and grows random connections.
    Arguments as in :class:`Recipe`.
    """
    rules = {"drop": drop.per_sign, "grow": grow.random}
    return Recipe(density=density, **{**rules, **options})


def rigl(
    density: Density | None = None,
    *,
    fraction: float | Array | optax.Schedule = 0.3,
    end_step: int | None = None,
    **options: Any,
) -> Recipe:
    """RigL (Evci et al., 2020): drops the smallest weights, grows where gradients are largest.

    With ``end_step``, a fraction that is a number decays to 0 along a cosine, as in the paper,
    where changes end after three quarters of the training. Without it, the fraction is constant.
    Arguments as in :class:`Recipe`.
    """
    rules = {"drop": drop.magnitude, "grow": grow.gradient, "replaces_step": True}
    recipe = Recipe(density=density, fraction=fraction, end_step=end_step, **{**rules, **options})
    if end_step is None or callable(fraction):
        return recipe
    # f/2 (1 + cos(pi t / T_end))
    return dataclasses.replace(recipe, fraction=optax.cosine_decay_schedule(fraction, end_step))


def ctre_sim(density: Density | None = None, *, fraction: float = 0.2, **options: Any) -> Recipe:
    """CTRE-sim (CTRE, algorithm 2): drops the smallest weights, connects similar neurons.

    New weights are uniform within ``sqrt(6 / n_in)``, as in the authors' code. The paper sets
    ``epsilon`` instead of the density, and changes connections once per epoch. Arguments as in
    :class:`Recipe`.
    """
    rules = {
        "drop": drop.magnitude,
        "grow": grow.similar_or_random,
        "grow_init": jax.nn.initializers.he_uniform(),
    }
    return Recipe(density=density, fraction=fraction, **{**rules, **options})


def cht(density: Density | None = None, **options: Any) -> Recipe:
    """CHT, Cannistraci-Hebb training: drops the smallest weights, closes short paths.

    It needs no gradients of missing connections. Dropped connections are often grown again, so the
    topology converges. With ``grow=grow.sampled_short_paths``, the soft rule of CHTs, connections
    are drawn with probabilities according to their scores. Arguments as in :class:`Recipe`.
    """
    rules = {"drop": drop.magnitude, "grow": grow.short_paths}
    return Recipe(density=density, **{**rules, **options})


def srigl(
    density: Density | None = None,
    *,
    output_axis: int = -1,
    fraction: float | Array | optax.Schedule = 0.3,
    end_step: int | None = None,
    **options: Any,
) -> Recipe:
    """SRigL (Lasby et al., ICLR 2024): RigL with constant fan-in.

    This is the paper's variant without neuron ablation. Arguments as in :func:`rigl` and
    :func:`fsjax.sparsity.fan_in`.
    """
    structure = fan_in(output_axis)
    return rigl(density, fraction=fraction, end_step=end_step, structure=structure, **options)


def magnitude(
    density: Density | None = None, *, schedule: TopologySchedule | ShareAt, **options: Any
) -> Recipe:
    """Magnitude pruning (Zhu and Gupta, 2017): removes the smallest weights of each layer.

    Args:
      density: final density, as in :class:`Recipe`.
      schedule: when to prune, for example ``polynomial(0, 1000, every=50)``.
      **options: other options of :class:`Recipe`, for example ``structure``.
    """
    return Recipe(density=density, schedule=schedule, **{"drop": drop.magnitude, **options})


def global_magnitude(
    density: Density | None = None, *, schedule: TopologySchedule | ShareAt, **options: Any
) -> Recipe:
    """Magnitude pruning that compares the weights of all layers.

    Arguments as in :func:`magnitude`, but without structures.
    """
    return magnitude(density, schedule=schedule, **{"scope": "global", **options})


def saliency(
    density: Density | None = None, *, schedule: TopologySchedule | ShareAt, **options: Any
) -> Recipe:
    """Removes the smallest ``|weight x gradient|`` of the current step, in each layer.

    Arguments as in :func:`magnitude`.
    """
    return Recipe(density=density, schedule=schedule, **{"drop": drop.saliency, **options})


def global_saliency(
    density: Density | None = None, *, schedule: TopologySchedule | ShareAt, **options: Any
) -> Recipe:
    """Saliency pruning that compares the weights of all layers.

    Arguments as in :func:`magnitude`, but without structures.
    """
    return saliency(density, schedule=schedule, **{"scope": "global", **options})


def movement(
    density: Density | None = None, *, schedule: TopologySchedule | ShareAt, **options: Any
) -> Recipe:
    """Movement pruning (Sanh, Wolf and Rush, 2020): removes the weights that move towards 0.

    The score is the sum of ``-weight x gradient`` over all steps since the start, so it tells what
    the present training wants, not the sizes that another one left: it is for fine-tuning. The
    optimiser's state has the sum, another array in the size of the parameters. Pruned connections
    stay pruned. With ``straight_through=True``, and :func:`fsjax.sparsity.forward_params` in the
    loss, their scores go on and they can return, as in the paper; their weights are trained
    meanwhile, which the paper's stay. Soft movement pruning, by a threshold, is left out.

    Arguments as in :func:`magnitude`. The paper takes a cubic schedule, and compares the weights of
    each matrix (``distribution="uniform"``) or of all (``scope="global"``).
    """
    return Recipe(density=density, schedule=schedule, **{"drop": drop.movement, **options})


def random(
    density: Density | None = None, *, schedule: TopologySchedule | ShareAt, **options: Any
) -> Recipe:
    """Removes random connections, as a control. Arguments as in :func:`magnitude`."""
    return Recipe(density=density, schedule=schedule, **{"drop": drop.random, **options})


def magnitude_ste(density: Density | None = None, **options: Any) -> Recipe:
    """Trains all weights; the forward pass uses the largest (straight-through estimator).

    Equal to Top-KAST (Jayakumar et al., 2020) with gradients of all weights. The weights are chosen
    at every step, or when a ``schedule`` says so. The loss must use
    :func:`fsjax.sparsity.forward_params`. Arguments as in :class:`Recipe`.

    Examples:
      >>> params = {"kernel": jax.random.normal(jax.random.key(0), (64, 10))}
      >>> tx = sparsity.sparse(optax.adam(1e-3), sparsity.magnitude_ste(0.1), jax.random.key(0))
      >>> opt_state = tx.init(params)
      >>> def loss(params):
      ...     return jnp.square(sparsity.forward_params(params, opt_state)["kernel"]).sum()
      >>> updates, opt_state = tx.update(jax.grad(loss)(params), opt_state, params)
    """
    rules = {"drop": drop.magnitude, "straight_through": True, "every": 1}
    return Recipe(density=density, **{**rules, **options})


def snip(density: Density | None = None, **options: Any) -> Recipe:
    """SNIP (Lee et al., 2019): removes the smallest ``|weight x gradient|``, at step 1.

    The first call of ``update`` prunes according to its gradients and does not train; compute these
    on a large batch. A head that starts at 0, and layers whose gradients are 0 for it, keep their
    own counts. Arguments as in :class:`Recipe`; another ``schedule`` prunes later.
    """
    rules = {"drop": drop.saliency, "schedule": one_shot(1), "replaces_step": True}
    return Recipe(density=density, **{**_global(options), **rules, **options})


def grasp(density: Density | None = None, **options: Any) -> Recipe:
    """GraSP (Wang et al., 2020): removes the weights that reduce the gradient flow, at step 1.

    The first call of ``update`` prunes and does not train; it needs
    ``hessian_gradient=fsjax.sparsity.hessian_gradient(loss, params)``. Arguments as in
    :class:`Recipe`; another ``schedule`` prunes later.

    Examples:
      >>> params = {"kernel": jax.random.normal(jax.random.key(0), (6, 2))}
      >>> x, y = jnp.asarray(data.X), jnp.asarray(data.y)
      >>> def loss(params):
      ...     return optax.softmax_cross_entropy_with_integer_labels(x @ params["kernel"], y).mean()
      >>> counts = sparsity.grasp(density=0.5).counts
      >>> masks = sparsity.grasp_masks(loss, params, counts)
      >>> print(sparsity.hessian_gradient(loss, params)["kernel"].shape)
    """
    rules = {"drop": drop.gradient_flow, "schedule": one_shot(1), "replaces_step": True}
    return Recipe(density=density, **{**_global(options), **rules, **options})


def _global(options: dict[str, Any]) -> dict[str, str]:
    """The scope of SNIP and GraSP: all layers together, or each layer if there is a structure."""
    return {} if options.get("structure") is not None else {"scope": "global"}
