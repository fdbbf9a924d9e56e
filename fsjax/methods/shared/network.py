"""The network, its optimiser and its options, for methods that select with a plain network.

These methods (BinMask, STG, ProbMask, the plain network and others) take the fields of
:class:`NetworkOptions` as further keyword arguments, checked by their annotations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import Array

from fsjax.arguments import (
    STATIC,
    TERM,
    NonNegative,
    Optimizer,
    Positive,
    Rate,
    Schedule,
    Whole,
    Widths,
    is_used,
)
from fsjax.engine.kernels.products import input_product, is_wide
from fsjax.errors import ConfigError
from fsjax.method import Batch, PyTree, Spec, TrainState, create_state, for_run
from fsjax.nets import build_network, outputs_of
from fsjax.sparsity.schedules import cosine_by_epoch

#: Name of the first dense layer of the multilayer perceptrons.
FIRST_LAYER = "FanInDense_0"


#: Default training settings that the methods of the BinMask paper share (section 4.1).
TRAINING: dict[str, Any] = {"batch_size": 256, "training": {"min_steps_per_epoch": 30}}


@dataclass(frozen=True)
class NetworkOptions:
    """A network and how its weights are trained; the defaults are those of BinMask, section 4.1.

    Attributes:
      network: ``mlp``, or for images ``lenet5``, ``resnet32`` or ``vgg19``.
      hidden: widths of the hidden layers of ``mlp``; ``()`` is a linear model.
      activation: activation of ``mlp``: ``tanh``, ``relu``, ``leaky_relu`` or ``sigmoid``.
      batch_norm: batch normalisation after each activation of ``mlp``.
      layer_norm: LayerNorm before each activation of ``mlp``.
      dropout: rate in [0, 1) after each activation of ``mlp``.
      optimizer: ``sgd``, ``adam`` or ``adamw``; or an Optax transformation, or a function from Spec
        to one, which then has its own learning rate, momentum and weight decay.
      learning_rate: learning rate in the first epoch, above 0; or an Optax schedule.
      final_learning_rate: learning rate in the last epoch, reached along a cosine; ``None`` keeps
        the first one. Ignored if ``learning_rate`` is a schedule.
      momentum: momentum of ``sgd``, in [0, 1).
      weight_decay: factor of the parameters that is added to the gradients (``sgd`` and ``adam``,
        as in PyTorch) or, times the learning rate, subtracted from the parameters (``adamw``).
      l1: factor of the sum of absolute weights (biases excluded) in the loss.
      finetune_epochs: number of last epochs in which the masks are fixed; included in the epochs of
        the run.
      finetune_learning_rate: learning rate in the first epoch of fine-tuning, above 0.

    Examples:
      >>> method = fsjax.methods.stg(hidden=(32,), activation="relu")
    """

    network: Literal["mlp", "lenet5", "resnet32", "vgg19"] = "mlp"
    hidden: Widths = (64, 20)
    activation: Literal["leaky_relu", "relu", "sigmoid", "tanh"] = "tanh"
    batch_norm: bool = False
    layer_norm: bool = False
    dropout: Annotated[Rate, STATIC] = 0.0
    optimizer: Literal["sgd", "adam", "adamw"] | Optimizer = "sgd"
    learning_rate: Positive | Schedule = 0.1
    final_learning_rate: NonNegative | None = 1e-5
    momentum: Rate = 0.9
    weight_decay: NonNegative = 5e-4
    l1: Annotated[NonNegative, TERM] = 0.0
    finetune_epochs: Whole = 0
    finetune_learning_rate: Positive = 0.01

    def module(self, spec: Spec) -> nn.Module:
        """The Flax module for a run; ConfigError if a convolutional network gets no images."""
        return build_network(
            self.network,
            spec.num_outputs,
            hidden=self.hidden,
            activation=self.activation,
            batch_norm=self.batch_norm,
            layer_norm=self.layer_norm,
            dropout=self.dropout,
            image_shape=spec.image_shape,
            image_order=spec.image_order,
        )

    @property
    def merges_copies(self) -> bool:
        """``About.merges_copies``: dropout and batch statistics treat each row of a batch alike."""
        return self.network == "mlp" and not (self.batch_norm or self.dropout)

    def mask_epochs(self, spec: Spec) -> int:
        """Number of epochs before fine-tuning; ConfigError if there are none."""
        epochs = spec.num_epochs - self.finetune_epochs
        if epochs < 1:
            raise ConfigError(
                f"num_epochs={spec.num_epochs} includes finetune_epochs={self.finetune_epochs}; "
                "choose more epochs"
            )
        return epochs

    def tx(self, spec: Spec) -> optax.GradientTransformation:
        """The optimiser of the weights for a run."""
        steps, epochs = spec.steps_per_epoch, self.mask_epochs(spec)
        if not isinstance(self.optimizer, str):
            return for_run(self.optimizer, spec)

        def schedule(first: float | Schedule, num_epochs: int) -> Schedule:
            last = self.final_learning_rate
            if callable(first):
                return first
            if last is None:
                return optax.constant_schedule(first)
            return cosine_by_epoch(first, jnp.minimum(last, first), num_epochs, steps)

        rate = schedule(self.learning_rate, epochs)
        if self.finetune_epochs:
            again = schedule(self.finetune_learning_rate, self.finetune_epochs)
            rate = optax.join_schedules([rate, again], [epochs * steps])
        if self.optimizer == "adamw":
            return optax.adamw(rate, weight_decay=self.weight_decay)
        inner = optax.adam(rate) if self.optimizer == "adam" else optax.sgd(rate, self.momentum)
        return optax.chain(optax.add_decayed_weights(self.weight_decay), inner)

    def init(self, key: Array, spec: Spec) -> tuple[PyTree, PyTree]:
        """Initial weights and batch statistics (``{}`` for networks without)."""
        variables = self.module(spec).init(key, jnp.zeros((1, spec.num_columns)))
        return variables["params"], variables.get("batch_stats", {})

    def train(
        self,
        weights: PyTree,
        state: TrainState,
        batch: Batch[Array],
        key: Array,
        gates: Array | None = None,
        few: bool = False,
    ) -> tuple[Array, dict[str, PyTree]]:
        """The loss with L1, and ``aux`` of :func:`keep_stats`.

        Args:
          gates: ``(D,)``, by which the inputs are multiplied; the L1 of the weights is without
            them, so that it does not close gates.
          few: whether most gates are closed.
        """
        stats, spec = state.extra["stats"], state.spec
        module = self.module(spec)
        used, x = self._gated(weights, batch.x, gates)
        if few and self.network == "mlp" and is_wide(x):
            module = module.clone(first_product=lambda x, w, *_, **__: input_product(x, w))
        outputs, changed = module.apply(
            {"params": used, "batch_stats": stats},
            x,
            train=True,
            weight=batch.weight,
            rngs={"dropout": key} if self.dropout else None,
            mutable=["batch_stats"],
        )
        loss = spec.loss_of(outputs, batch.y, batch.weight)
        if is_used(self.l1):
            kernels = [leaf for leaf in jax.tree.leaves(weights) if leaf.ndim >= 2]
            loss += self.l1 * sum(jnp.sum(jnp.abs(kernel)) for kernel in kernels)
        return loss, {"stats": changed.get("batch_stats", stats)}

    def predict(
        self, weights: PyTree, state: TrainState, x: Array, gates: Array | None = None
    ) -> Array:
        """Outputs ``(B, C)`` with running statistics and without dropout; gates as in training."""
        weights, x = self._gated(weights, x, gates)
        variables = {"params": weights, "batch_stats": state.extra["stats"]}
        return outputs_of(self.module(state.spec), variables, x, train=False)

    def _gated(self, weights: PyTree, x: Array, gates: Array | None) -> tuple[PyTree, Array]:
        """The weights and the inputs ``(B, D)`` that multiply inputs by gates ``(D,)``."""
        if gates is None:
            return weights, x
        if self.network != "mlp":
            return weights, x * gates
        # Scaling first-layer weights instead is equivalent and needs no gradient for the inputs.
        return with_kernel(weights, first_kernel(weights) * gates[:, None]), x

    def strength(self, weights: PyTree, spec: Spec) -> Array:
        """``(D,)`` sums of each input's absolute weights; zeros for convolutional networks."""
        if self.network != "mlp":
            return jnp.zeros((spec.num_columns,))
        return jnp.sum(jnp.abs(first_kernel(weights)), axis=1)


#: A ReLU network trained by Adam at a constant rate: the defaults of most selectors.
PLAIN = NetworkOptions(
    activation="relu",
    optimizer="adam",
    learning_rate=1e-3,
    final_learning_rate=None,
    weight_decay=0.0,
)


def first_kernel(weights: PyTree) -> Array:
    """The ``(D, H)`` weights of the first layer of an ``mlp``."""
    return weights[FIRST_LAYER]["Dense_0"]["kernel"]


def with_kernel(weights: PyTree, kernel: Array) -> PyTree:
    """The tree with ``kernel`` as the weights of the first layer of an ``mlp``."""
    layer = {**weights[FIRST_LAYER]["Dense_0"], "kernel": kernel}
    return {**weights, FIRST_LAYER: {"Dense_0": layer}}


def open_share(mu: Array) -> Array:
    """Values in [0, 1] of Gaussian gates (STG, DUFS) with means ``mu``, with or without noise."""
    return jnp.clip(mu + 0.5, 0.0, 1.0)


def first_state(body: NetworkOptions, key: Array, spec: Spec, **extra: Array) -> TrainState:
    """The first state of a method whose parameters are the weights, with ``extra`` arrays."""
    weights, stats = body.init(key, spec)
    return create_state(spec, weights, extra={"stats": stats, **extra})


def keep_stats(state: TrainState, grads: PyTree, aux: dict[str, Any], *_: Any) -> TrainState:
    """``after_step`` of a network: stores the new batch statistics."""
    return state.replace(extra={**state.extra, "stats": aux["stats"]})


def close(state: TrainState, threshold: Array) -> TrainState:
    """``close`` of a search: stores the threshold below which gates are closed."""
    return state.replace(extra={**state.extra, "threshold": threshold})
