"""Type stub, written by ``python -m fsjax.stubs``."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from fsjax.estimators.auto import AutoSelector as AutoSelector
from fsjax.estimators.base import Selector as Selector
from fsjax.estimators.files import load as load

ESTIMATORS: dict[str, type[Selector]]

class AEFS(Selector):
    """An autoencoder with a group lasso on the weights of its inputs."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "reconstruction",
        penalty: float = 0.001,
        weight_decay: float = 0.001,
        hidden: Sequence[int] = (200,),
        activation: Literal["leaky_relu", "sigmoid"] = "leaky_relu",
        rank_by: Literal["largest", "norm"] = "largest",
        learning_rate: float = 0.001,
        num_epochs: int = 100,
        batch_size: int | None = 256,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = "scalar",
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
        masked: Literal["inputs", "weights"] = "inputs",
        strength: float = 0.001,
        search: bool = True,
        initial: float | None = None,
        clip: float = 1.0,
        mask_learning_rate: float = 0.001,
        mask_final_learning_rate: float = 1e-05,
        warmup: float = 0.1,
        smoothing: float = 0.9,
        network: Literal["mlp", "lenet5", "resnet32", "vgg19"] = "mlp",
        hidden: Sequence[int] = (64, 20),
        activation: Literal["leaky_relu", "relu", "sigmoid", "tanh"] = "tanh",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: Literal["sgd", "adam", "adamw"] = "sgd",
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

class CAE(Selector):
    """The concrete autoencoder: logits learnt directly (IP-CAE, section 2.1)."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        logits_init: Literal["near_zero", "glorot_normal", "glorot_uniform"] = "near_zero",
        hidden: Sequence[int] = (200,),
        layer_norm: bool = True,
        dropout: float = 0.0,
        noise: Literal["row", "batch"] = "row",
        anneal: Literal["epoch", "step"] = "epoch",
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

class CIFE(Selector):
    """Conditional infomax: what a column tells of the class beside those chosen before it."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        depth: int = 200,
        bins: int | None = 5,
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

class CTRESim(Selector):
    """A sparse ReLU network that grows connections between similar neurons (Algorithm 2)."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        drop_fraction: float = 0.2,
        drop: Literal["magnitude", "lowest_similarity", "random"] = "magnitude",
        grow: Literal["similar_or_random", "similar", "dissimilar_or_random"] = "similar_or_random",
        similarity: Literal["cosine", "hebb", "euclidean"] = "cosine",
        similarity_fraction: float = 1.0,
        grow_init: Literal["uniform", "zeros"] = "uniform",
        hidden: Sequence[int] = (1000, 1000, 1000),
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
        epsilon: float | None = 1.0,
        density: float | None = None,
        form: Literal["auto", "dense", "coordinates"] = "auto",
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
        drop_fraction: float = 0.2,
        order: Literal["similar_first", "random_first", "half"] = "similar_first",
        patience: int = 40,
        similarity: Literal["cosine", "hebb", "euclidean"] = "cosine",
        similarity_fraction: float = 1.0,
        grow_init: Literal["uniform", "zeros"] = "uniform",
        hidden: Sequence[int] = (1000, 1000, 1000),
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
        epsilon: float | None = 1.0,
        density: float | None = None,
        form: Literal["auto", "dense", "coordinates"] = "auto",
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

class DeepLasso(Selector):
    """A network whose loss is to feel few columns: the lasso, on gradients instead of weights."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        penalty: float = 0.1,
        network: Literal["mlp", "lenet5", "resnet32", "vgg19"] = "mlp",
        hidden: Sequence[int] = (200,),
        activation: Literal["leaky_relu", "relu", "sigmoid", "tanh"] = "relu",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: Literal["sgd", "adam", "adamw"] = "adamw",
        learning_rate: float = 0.001,
        final_learning_rate: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 0.0002,
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
        verbose: bool = False,
    ) -> None: ...

class DUFS(Selector):
    """Stochastic gates that leave the columns which vary slowly along a graph of the rows."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "reconstruction",
        loss: Literal["ratio", "difference"] = "ratio",
        strength: float = 0.1,
        sigma: float = 0.5,
        noise: Literal["row", "batch"] = "row",
        num_neighbors: int = 2,
        width: float = 5.0,
        walk_steps: int = 2,
        learning_rate: float = 1.0,
        num_epochs: int = 100,
        batch_size: int | None = 128,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = "scalar",
        class_weight: Mapping[Any, float] | str | None = None,
        groups: ArrayLike | None = None,
        verbose: bool = False,
    ) -> None: ...

class EntryPrune(Selector):
    """A dense network on K columns and on candidates, which are exchanged every few steps."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        candidates: float = 0.2,
        every: int = 100,
        hidden: Sequence[int] = (100,),
        activation: Literal["leaky_relu", "relu", "sigmoid", "tanh"] = "relu",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: Literal["sgd", "adam", "adamw"] = "adam",
        learning_rate: float = 0.001,
        final_learning_rate: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        l1: float = 0.0,
        num_epochs: int = 200,
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
    """The Fisher score of every column, a filter that trains nothing."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] | None = None,
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

class GJSD(Selector):
    """CAE whose loss rewards distinct selectors by ``gjsd_weight`` times their GJSD (eq. 11)."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        gjsd_weight: float = 0.05,
        logits_init: Literal["near_zero", "glorot_normal", "glorot_uniform"] = "near_zero",
        hidden: Sequence[int] = (200,),
        layer_norm: bool = True,
        dropout: float = 0.0,
        noise: Literal["row", "batch"] = "row",
        anneal: Literal["epoch", "step"] = "epoch",
        temperature_start: float = 10.0,
        temperature_end: float = 0.01,
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

class ICAP(Selector):
    """Interaction capping: information on the class minus redundancy, without gain by synergy."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        depth: int = 200,
        bins: int | None = 5,
        redundancy: Literal["max", "sum"] = "max",
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

class IPCAE(Selector):
    """A concrete selector whose logits are a learnt map of a learnt embedding (section 2.3)."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        weights: Literal["full", "diagonal", "scalar"] = "full",
        embedding_dim: int | None = None,
        bias: bool = True,
        noise: Literal["row", "batch"] = "batch",
        hidden: Sequence[int] = (200,),
        layer_norm: bool = True,
        dropout: float = 0.0,
        anneal: Literal["epoch", "step"] = "epoch",
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

class L1L21(Selector):
    """Logistic regression of each class against the rest, with a penalty on columns as a whole."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        penalty: float = 0.01,
        tolerance: float = 0.001,
        max_steps: int = 1000,
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

class LaplacianScore(Selector):
    """The Laplacian score of every column, a filter without labels that trains nothing."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "reconstruction",
        metric: Literal["euclidean", "cosine"] = "cosine",
        weights: Literal["binary", "heat", "cosine"] = "binary",
        num_neighbors: int = 5,
        t: float = 1.0,
        self_loops: bool = True,
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

class MCFS(Selector):
    """Multi-cluster feature selection, a filter without labels."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "reconstruction",
        num_clusters: int = 5,
        metric: Literal["euclidean", "cosine"] = "cosine",
        weights: Literal["binary", "heat", "cosine"] = "binary",
        num_neighbors: int = 5,
        t: float = 1.0,
        self_loops: bool = True,
        unit_columns: bool = True,
        signed: bool = False,
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

class NeuralNetwork(Selector):
    """An ordinary network on all columns."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
        network: Literal["mlp", "lenet5", "resnet32", "vgg19"] = "mlp",
        hidden: Sequence[int] = (64, 20),
        activation: Literal["leaky_relu", "relu", "sigmoid", "tanh"] = "tanh",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: Literal["sgd", "adam", "adamw"] = "sgd",
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

class NeuroFS(Selector):
    """NeuroFS: the weakest inputs leave a sparse network, some come back by their gradient."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        epsilon: float = 30.0,
        input_fraction: float = 0.2,
        hidden_fraction: float = 0.3,
        removal_share: float = 0.65,
        activation: Literal["relu", "sigmoid", "tanh"] = "tanh",
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 2e-05,
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
        num_epochs: int = 100,
        batch_size: int | None = 100,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = "minmax",
        class_weight: Mapping[Any, float] | str | None = None,
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
        evaluation: Literal["sample", "most_probable"] = "sample",
        network: Literal["mlp", "lenet5", "resnet32", "vgg19"] = "mlp",
        hidden: Sequence[int] = (64, 20),
        activation: Literal["leaky_relu", "relu", "sigmoid", "tanh"] = "tanh",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: Literal["sgd", "adam", "adamw"] = "sgd",
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

class RFS(Selector):
    """Robust regression on the labels: norms, not squares, of the residuals and of the columns."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        penalty: float = 0.3,
        tolerance: float = 0.001,
        max_steps: int = 1000,
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

class SequentialAttention(Selector):
    """Sequential Attention: one column is fixed at the end of each of K equal phases."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        warmup: float = 0.1,
        columns_per_phase: int = 1,
        network: Literal["mlp", "lenet5", "resnet32", "vgg19"] = "mlp",
        hidden: Sequence[int] = (67,),
        activation: Literal["leaky_relu", "relu", "sigmoid", "tanh"] = "relu",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: Literal["sgd", "adam", "adamw"] = "adam",
        learning_rate: float = 0.001,
        final_learning_rate: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        l1: float = 0.0,
        finetune_epochs: int = 0,
        finetune_learning_rate: float = 0.01,
        image_shape: Sequence[int] | None = None,
        num_epochs: int = 100,
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

class SET(Selector):
    """A sparse ReLU network that drops small weights after each epoch and grows random ones."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        drop_fraction: float = 0.2,
        drop: Literal["magnitude", "per_sign"] = "magnitude",
        grow: Literal["random", "short_paths", "sampled_short_paths"] = "random",
        grow_init: Literal["uniform", "zeros"] = "uniform",
        hidden: Sequence[int] = (1000, 1000, 1000),
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
        epsilon: float | None = 1.0,
        density: float | None = None,
        form: Literal["auto", "dense", "coordinates"] = "auto",
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
        drop_fraction: float = 0.2,
        grow_init: Literal["uniform", "zeros"] = "zeros",
        hidden: Sequence[int] = (1000, 1000, 1000),
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
        epsilon: float | None = 1.0,
        density: float | None = None,
        form: Literal["auto", "dense", "coordinates"] = "auto",
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
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
        epsilon: float | None = 1.0,
        density: float | None = None,
        form: Literal["auto", "dense", "coordinates"] = "auto",
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
    """A sparse ReLU network whose random connections never change: the control of rewiring."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
        epsilon: float | None = 1.0,
        density: float | None = None,
        form: Literal["auto", "dense", "coordinates"] = "auto",
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
    """A dense ReLU network, trained as the sparse ones are: the baseline of CTRE's Table 2."""

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: str = "classification",
        hidden: Sequence[int] = (1000, 1000, 1000),
        learning_rate: float = 0.01,
        momentum: float = 0.9,
        l2: float = 0.0001,
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
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
        drop: Literal["magnitude", "per_sign"] = "per_sign",
        grow_init: Literal["uniform", "zeros"] = "zeros",
        input_noise: float = 0.2,
        initialisation: Literal["fan_in", "glorot"] = "fan_in",
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        l2: float = 0.0,
        rank_by: Literal["strength", "attribution", "attribution_times_input"] = "strength",
        form: Literal["auto", "dense", "coordinates"] = "auto",
        num_epochs: int = 100,
        batch_size: int | None = 128,
        n_seeds: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        validation_fraction: float = 0.1,
        validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
        standardize: bool | str = "scalar",
        class_weight: Mapping[Any, float] | str | None = None,
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
        penalty: Literal["mean", "sum"] = "mean",
        network: Literal["mlp", "lenet5", "resnet32", "vgg19"] = "mlp",
        hidden: Sequence[int] = (400, 200),
        activation: Literal["leaky_relu", "relu", "sigmoid", "tanh"] = "relu",
        batch_norm: bool = False,
        layer_norm: bool = False,
        dropout: float = 0.0,
        optimizer: Literal["sgd", "adam", "adamw"] = "adam",
        learning_rate: float = 0.01,
        final_learning_rate: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 0.001,
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
        sensitivity: Literal["residual", "gradient"] = "residual",
        accumulate: bool = True,
        drop: Literal["importance", "magnitude", "per_sign"] = "importance",
        update: Literal["step", "epoch"] = "step",
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
