"""What the methods around an ordinary network share: the network, its optimiser, its options.

The options are those of :class:`NetworkOptions`; BinMask, STG, ProbMask and the plain network take
them all as further keyword arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

from fsjax import tasks
from fsjax.errors import ConfigError, check_whole, nearest
from fsjax.method import Array, Batch, PyTree, Spec
from fsjax.methods.arguments import checked_arguments
from fsjax.nets import NETWORKS, build_network
from fsjax.optimizers import cosine_by_epoch

OPTIMIZERS = ("sgd", "adam", "adamw")

#: The first dense layer of the multilayer perceptrons, which sees the inputs.
FIRST_LAYER = "FanInDense_0"


@dataclass(frozen=True)
class NetworkOptions:
    """A network and how its weights are trained; the defaults are those of BinMask, section 4.1.

    Attributes:
      network: ``mlp``, or for images ``lenet5``, ``resnet32`` or ``vgg19``.
      hidden: widths of the hidden layers of ``mlp``; ``()`` is a linear model.
      activation: of ``mlp``: ``tanh``, ``relu``, ``leaky_relu`` or ``sigmoid``.
      batch_norm: batch normalisation after each activation of ``mlp``.
      layer_norm: LayerNorm before each activation of ``mlp``.
      dropout: rate in [0, 1) after each activation of ``mlp``.
      optimizer: ``sgd``, ``adam`` or ``adamw``.
      learning_rate: in the first epoch, above 0.
      final_learning_rate: in the last epoch, along a cosine; ``None`` keeps the first.
      momentum: of ``sgd``, in [0, 1).
      weight_decay: times the parameters it is added to the gradients (``sgd`` and ``adam``, as in
        PyTorch), or to the steps times the rate (``adamw``).
      l1: weight of the sum of absolute weights (biases excluded) in the loss.
      finetune_epochs: last epochs in which the masks rest, at rates that begin anew.
      finetune_learning_rate: in the first of them.
    """

    network: str = "mlp"
    hidden: tuple[int, ...] = (64, 20)
    activation: str = "tanh"
    batch_norm: bool = False
    layer_norm: bool = False
    dropout: float = 0.0
    optimizer: str = "sgd"
    learning_rate: float = 0.1
    final_learning_rate: float | None = 1e-5
    momentum: float = 0.9
    weight_decay: float = 5e-4
    l1: float = 0.0
    finetune_epochs: int = 0
    finetune_learning_rate: float = 0.01

    def __post_init__(self) -> None:
        annotations = {field.name: str(field.type) for field in fields(self)}
        for name, value in checked_arguments(annotations, vars(self)).items():
            object.__setattr__(self, name, value)
        if self.network not in NETWORKS:
            raise ConfigError(f"network={self.network!r}: {nearest(self.network, NETWORKS)}")
        check_whole("finetune_epochs", self.finetune_epochs, least=0)
        if self.optimizer not in OPTIMIZERS:
            raise ConfigError(
                f"optimizer={self.optimizer!r}: {nearest(self.optimizer, OPTIMIZERS)}"
            )
        for name in ("learning_rate", "finetune_learning_rate"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}={getattr(self, name)}; choose a value above 0")
        for name in ("weight_decay", "l1", "final_learning_rate"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ConfigError(f"{name}={value}; choose a value from 0")
        for name in ("momentum", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}; choose a value from 0 to below 1")
        # Finds what the modules refuse, such as an unknown activation.
        if self.network == "mlp":
            self._module(2, None, "C")

    def _module(self, num_outputs: int, image_shape: Any, image_order: str) -> nn.Module:
        return build_network(
            self.network,
            num_outputs,
            hidden=self.hidden,
            activation=self.activation,
            batch_norm=self.batch_norm,
            layer_norm=self.layer_norm,
            dropout=self.dropout,
            image_shape=image_shape,
            image_order=image_order,
        )

    def module(self, spec: Spec) -> nn.Module:
        """The Flax module for a run.

        Raises:
          ConfigError: if a convolutional network meets data without images.
        """
        return self._module(spec.num_outputs, spec.image_shape, spec.image_order)

    def mask_epochs(self, spec: Spec) -> int:
        """Epochs before fine-tuning.

        Raises:
          ConfigError: if fine-tuning leaves none.
        """
        left = spec.num_epochs - self.finetune_epochs
        if left < 1:
            raise ConfigError(
                f"num_epochs={spec.num_epochs} includes finetune_epochs={self.finetune_epochs}; "
                "choose more epochs"
            )
        return left

    def tx(self, spec: Spec) -> optax.GradientTransformation:
        """The optimiser of the weights for a run."""
        steps, epochs = spec.steps_per_epoch, self.mask_epochs(spec)

        def schedule(first: float, num_epochs: int) -> optax.Schedule:
            last = self.final_learning_rate
            if last is None:
                return optax.constant_schedule(first)
            return cosine_by_epoch(first, min(last, first), num_epochs, steps)

        rate = schedule(self.learning_rate, epochs)
        if self.finetune_epochs:
            again = schedule(self.finetune_learning_rate, self.finetune_epochs)
            rate = optax.join_schedules([rate, again], [epochs * steps])
        if self.optimizer == "adamw":
            return optax.adamw(rate, weight_decay=self.weight_decay)
        inner = optax.adam(rate) if self.optimizer == "adam" else optax.sgd(rate, self.momentum)
        return optax.chain(optax.add_decayed_weights(self.weight_decay), inner)

    def init(self, key: Array, spec: Spec) -> tuple[PyTree, PyTree]:
        """Weights and batch statistics (``{}`` where there are none)."""
        variables = self.module(spec).init(key, jnp.zeros((1, spec.num_features)))
        return variables["params"], variables.get("batch_stats", {})

    def train(
        self, weights: PyTree, stats: PyTree, spec: Spec, batch: Batch, key: Array
    ) -> tuple[Array, Array, PyTree]:
        """One training pass.

        Returns:
          The loss with its L1 term, a scalar; outputs ``(B, C)``; the new batch statistics.
        """
        outputs, changed = self.module(spec).apply(
            {"params": weights, "batch_stats": stats},
            batch.x,
            train=True,
            weight=batch.weight,
            rngs={"dropout": key} if self.dropout else None,
            mutable=["batch_stats"],
        )
        loss = tasks.loss(spec.task, outputs, batch.y, batch.weight)
        if self.l1:
            loss += self.l1 * sum(jnp.sum(jnp.abs(w)) for w in kernels(weights))
        return loss, outputs, changed.get("batch_stats", stats)

    def predict(self, weights: PyTree, stats: PyTree, spec: Spec, x: Array) -> Array:
        """Outputs ``(B, C)`` with running statistics and without dropout."""
        variables = {"params": weights, "batch_stats": stats}
        return self.module(spec).apply(variables, x, train=False)

    def gate(self, weights: PyTree, x: Array, gates: Array) -> tuple[PyTree, Array]:
        """Weights and inputs such that each input is multiplied by its gate.

        Args:
          weights: of the network.
          x: ``(B, D)``.
          gates: ``(D,)``.
        """
        if self.network != "mlp":
            return weights, x * gates
        # On the weights of the first layer it is the same, without a gradient for every input.
        layer = weights[FIRST_LAYER]["Dense_0"]
        layer = {**layer, "kernel": layer["kernel"] * gates[:, None]}
        return {**weights, FIRST_LAYER: {"Dense_0": layer}}, x

    def strength(self, weights: PyTree, num_features: int) -> Array:
        """``(D,)``: sum of the absolute weights of each input; zeros for convolutions."""
        if self.network != "mlp":
            return jnp.zeros((num_features,))
        return jnp.sum(jnp.abs(weights[FIRST_LAYER]["Dense_0"]["kernel"]), axis=1)


def network_options(**options: Any) -> NetworkOptions:
    """The options by name.

    Raises:
      ConfigError: for an unknown name or a value outside its range.
    """
    known = [field.name for field in fields(NetworkOptions)]
    for name in options:
        if name not in known:
            raise ConfigError(f"unknown option {name!r}: {nearest(name, known)}")
    return replace(NetworkOptions(), **options)


def kernels(weights: PyTree) -> list[Array]:
    """The arrays of two or more dimensions."""
    return [leaf for leaf in jax.tree.leaves(weights) if leaf.ndim >= 2]
