"""Type stub, written by ``python -m fsjax.estimators.stubs``."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fsjax.estimators.base import Selector as Selector
from fsjax.estimators.files import load as load

ESTIMATORS: dict[str, type[Selector]]

class CAE(Selector):
    """The concrete autoencoder: logits learnt directly (IP-CAE, section 2.1)."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (200,),
        layer_norm: bool = True,
        dropout: float = 0.0,
        noise: str = "row",
        anneal: str = "epoch",
        temperature_start: float = 10.0,
        temperature_end: float = 0.01,
        logits_init: str = "near_zero",
        gjsd_weight: float = 0.0,
        learning_rate: float = 0.001,
        num_epochs: int = 200,
        batch_size: int | None = 64,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: ArrayLike | None = None,
        verbose: bool = False,
    ) -> None: ...

class IPCAE(Selector):
    """A concrete selector whose logits are a learnt map of a learnt embedding (section 2.3)."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        weights: str = "full",
        embedding_dim: int | None = None,
        bias: bool = True,
        hidden: Sequence[int] = (200,),
        layer_norm: bool = True,
        dropout: float = 0.0,
        noise: str = "batch",
        anneal: str = "epoch",
        temperature_start: float = 10.0,
        temperature_end: float = 0.01,
        gjsd_weight: float = 0.0,
        learning_rate: float = 0.001,
        num_epochs: int = 200,
        batch_size: int | None = 64,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: ArrayLike | None = None,
        verbose: bool = False,
    ) -> None: ...

class GJSD(Selector):
    """CAE whose loss rewards distinct selectors by ``gjsd_weight`` times their GJSD (eq. 11)."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        gjsd_weight: float = 0.05,
        hidden: Sequence[int] = (200,),
        layer_norm: bool = True,
        dropout: float = 0.0,
        noise: str = "row",
        anneal: str = "epoch",
        temperature_start: float = 10.0,
        temperature_end: float = 0.01,
        logits_init: str = "near_zero",
        learning_rate: float = 0.001,
        num_epochs: int = 200,
        batch_size: int | None = 64,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: ArrayLike | None = None,
        verbose: bool = False,
    ) -> None: ...

class WAST(Selector):
    """A sparse denoising autoencoder that moves its connections to the important features."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "reconstruction",
        hidden: Sequence[int] = (200,),
        density: float = 0.2,
        drop_fraction: float = 0.3,
        sensitivity_weight: float = 0.9,
        sensitivity: str = "residual",
        accumulate: bool = True,
        drop: str = "importance",
        update: str = "step",
        input_noise: float = 0.2,
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        num_epochs: int = 10,
        batch_size: int | None = 128,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = "scalar",
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class QuickSelection(Selector):
    """A sparse sigmoid autoencoder whose strongest input neurons are the selection."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "reconstruction",
        hidden: Sequence[int] = (200,),
        epsilon: float | None = None,
        density: float | None = 0.2,
        drop_fraction: float = 0.3,
        drop: str = "per_sign",
        grow_init: str = "zeros",
        input_noise: float = 0.2,
        initialisation: str = "fan_in",
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        l2: float = 0.0,
        num_epochs: int = 100,
        batch_size: int | None = 128,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class CTRESim(Selector):
    """A sparse ReLU network that grows connections between similar neurons."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        epsilon: float | None = 1.0,
        density: float | None = None,
        drop_fraction: float = 0.2,
        drop: str = "magnitude",
        grow: str = "similar_or_random",
        similarity: str = "cosine",
        similarity_fraction: float = 1.0,
        grow_init: str = "uniform",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        num_epochs: int = 500,
        batch_size: int | None = 100,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class CTRESeq(Selector):
    """A sparse ReLU network that grows between similar neurons until validation stalls."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        epsilon: float | None = 1.0,
        density: float | None = None,
        drop_fraction: float = 0.2,
        order: str = "similar_first",
        patience: int = 40,
        similarity: str = "cosine",
        similarity_fraction: float = 1.0,
        grow_init: str = "uniform",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        num_epochs: int = 500,
        batch_size: int | None = 100,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class SET(Selector):
    """A sparse ReLU network that drops small weights after each epoch and grows random ones."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        epsilon: float | None = 1.0,
        density: float | None = None,
        drop_fraction: float = 0.2,
        drop: str = "magnitude",
        grow_init: str = "uniform",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        num_epochs: int = 500,
        batch_size: int | None = 100,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class RigL(Selector):
    """A sparse ReLU network that grows where the gradient of a dense layer would be largest."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        epsilon: float | None = 1.0,
        density: float | None = None,
        drop_fraction: float = 0.2,
        grow_init: str = "zeros",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        num_epochs: int = 500,
        batch_size: int | None = 100,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class SNIP(Selector):
    """A ReLU network that is pruned once, before the first step, and then keeps its topology."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        epsilon: float | None = 1.0,
        density: float | None = None,
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        num_epochs: int = 500,
        batch_size: int | None = 100,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class StaticSparse(Selector):
    """A sparse ReLU network whose random connections never change."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        epsilon: float | None = 1.0,
        density: float | None = None,
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        num_epochs: int = 500,
        batch_size: int | None = 100,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class Dense(Selector):
    """A dense ReLU network, trained as the sparse ones are."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        num_epochs: int = 500,
        batch_size: int | None = 100,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class BinMask(Selector):
    """BinMask on the inputs or the weights of a network."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        masked: str = "inputs",
        strength: float = 0.001,
        search: bool = True,
        initial: float | None = None,
        clip: float = 1.0,
        mask_learning_rate: float = 0.001,
        mask_final_learning_rate: float = 1e-05,
        warmup: float = 0.1,
        smoothing: float = 0.9,
        network: str = "mlp",
        hidden: tuple[int, ...] = (64, 20),
        activation: str = "tanh",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: str = "sgd",
        learning_rate: float = 0.1,
        final_learning_rate: float | None = 1e-05,
        momentum: float = 0.9,
        weight_decay: float = 0.0005,
        l1: float = 0.0,
        finetune_epochs: int = 0,
        finetune_learning_rate: float = 0.01,
        image_shape: Sequence[int] | None = None,
        num_epochs: int = 100,
        batch_size: int | None = 256,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: ArrayLike | None = None,
        verbose: bool = False,
    ) -> None: ...

class STG(Selector):
    """Stochastic gates: Gaussian gates, clipped to [0, 1], multiply the inputs."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        strength: float = 0.1,
        search: bool = True,
        sigma: float = 0.5,
        penalty: str = "mean",
        hidden: tuple[int, ...] = (400, 200),
        activation: str = "relu",
        optimizer: str = "adam",
        learning_rate: float = 0.01,
        final_learning_rate: float | None = None,
        weight_decay: float = 0.001,
        network: str = "mlp",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        momentum: float = 0.9,
        l1: float = 0.0,
        image_shape: Sequence[int] | None = None,
        num_epochs: int = 100,
        batch_size: int | None = 128,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: ArrayLike | None = None,
        verbose: bool = False,
    ) -> None: ...

class LassoNet(Selector):
    """A network with a skip layer, trained under a penalty that grows until K features are left."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (100,),
        hierarchy: float = 10.0,
        dense_epochs: int = 1000,
        dense_patience: int = 100,
        path_epochs: int = 100,
        path_patience: int = 10,
        learning_rate: float = 0.001,
        path_learning_rate: float = 0.001,
        momentum: float = 0.9,
        path_start: float | None = None,
        path_multiplier: float = 1.02,
        tolerance: float = 0.99,
        until: int | None = None,
        num_epochs: int = 50000,
        batch_size: int | None = None,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        groups: ArrayLike | None = None,
        verbose: bool = False,
    ) -> None: ...

class ProbMask(Selector):
    """ProbMask on all kernels of dense and convolutional layers."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        density: float = 0.03,
        samples: int = 2,
        temperature_start: float = 1.0,
        temperature_end: float = 0.03,
        score_learning_rate: float = 0.006,
        sparsify_start: float = 0.16,
        sparsify_end: float = 0.6,
        max_norm: float | None = 3.0,
        evaluation: str = "sample",
        network: str = "mlp",
        hidden: tuple[int, ...] = (64, 20),
        activation: str = "tanh",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: str = "sgd",
        learning_rate: float = 0.1,
        final_learning_rate: float | None = 1e-05,
        momentum: float = 0.9,
        weight_decay: float = 0.0005,
        l1: float = 0.0,
        finetune_epochs: int = 0,
        finetune_learning_rate: float = 0.01,
        image_shape: Sequence[int] | None = None,
        num_epochs: int = 30,
        batch_size: int | None = 256,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class NeuralNetwork(Selector):
    """An ordinary network on all columns."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        network: str = "mlp",
        hidden: tuple[int, ...] = (64, 20),
        activation: str = "tanh",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: str = "sgd",
        learning_rate: float = 0.1,
        final_learning_rate: float | None = 1e-05,
        momentum: float = 0.9,
        weight_decay: float = 0.0005,
        l1: float = 0.0,
        finetune_epochs: int = 0,
        finetune_learning_rate: float = 0.01,
        image_shape: Sequence[int] | None = None,
        num_epochs: int = 100,
        batch_size: int | None = 256,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class FisherScore(Selector):
    """The decoder of the concrete selectors on the K columns of highest Fisher score."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (200,),
        layer_norm: bool = True,
        learning_rate: float = 0.001,
        num_epochs: int = 100,
        batch_size: int | None = 64,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...

class RandomSelection(Selector):
    """The decoder of the concrete selectors on K distinct columns drawn at random for each seed."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (200,),
        layer_norm: bool = True,
        learning_rate: float = 0.001,
        num_epochs: int = 100,
        batch_size: int | None = 64,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = True,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: bool = False,
    ) -> None: ...
