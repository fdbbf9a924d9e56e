"""Type stub, written by ``python -m fsjax.stubs``."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from fsjax.method import Method
from fsjax.registry import get_method as get_method

METHODS: dict[str, Callable[..., Method]]

def binmask(
    num_features: int | None = None,
    *,
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
) -> Method: ...

def cae(
    num_features: int = 50,
    *,
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
) -> Method: ...

def ctre_sim(
    *,
    drop_fraction: float = 0.2,
    drop: Literal["magnitude", "lowest_similarity", "random"] = "magnitude",
    grow: Literal["similar_or_random", "similar", "dissimilar_or_random"] = "similar_or_random",
    similarity: Literal["cosine", "hebb", "euclidean"] = "cosine",
    similarity_fraction: float = 1.0,
    grow_init: Literal["uniform", "zeros"] = "uniform",
    epsilon: float | None = 1.0,
    density: float | None = None,
    hidden: Sequence[int] = (1000, 1000, 1000),
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 0.0001,
    form: Literal["auto", "dense", "coordinates"] = "auto",
) -> Method: ...

def ctre_seq(
    *,
    drop_fraction: float = 0.2,
    order: Literal["similar_first", "random_first", "half"] = "similar_first",
    patience: int = 40,
    similarity: Literal["cosine", "hebb", "euclidean"] = "cosine",
    similarity_fraction: float = 1.0,
    grow_init: Literal["uniform", "zeros"] = "uniform",
    epsilon: float | None = 1.0,
    density: float | None = None,
    hidden: Sequence[int] = (1000, 1000, 1000),
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 0.0001,
    form: Literal["auto", "dense", "coordinates"] = "auto",
) -> Method: ...

def fisher_score(
    num_features: int | None = None,
    *,
    hidden: Sequence[int] | None = None,
    layer_norm: bool = True,
    learning_rate: float = 0.001,
) -> Method: ...

def gjsd(
    num_features: int = 50,
    *,
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
) -> Method: ...

def ip_cae(
    num_features: int = 50,
    *,
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
) -> Method: ...

def lassonet(
    num_features: int = 50,
    *,
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
) -> Method: ...

def neural_network(
    *,
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
) -> Method: ...

def probmask(
    *,
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
) -> Method: ...

def random_selection(
    num_features: int = 50,
    *,
    hidden: Sequence[int] = (200,),
    layer_norm: bool = True,
    learning_rate: float = 0.001,
) -> Method: ...

def set(
    *,
    drop_fraction: float = 0.2,
    drop: Literal["magnitude", "per_sign"] = "magnitude",
    grow_init: Literal["uniform", "zeros"] = "uniform",
    epsilon: float | None = 1.0,
    density: float | None = None,
    hidden: Sequence[int] = (1000, 1000, 1000),
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 0.0001,
    form: Literal["auto", "dense", "coordinates"] = "auto",
) -> Method: ...

def rigl(
    *,
    drop_fraction: float = 0.2,
    grow_init: Literal["uniform", "zeros"] = "zeros",
    epsilon: float | None = 1.0,
    density: float | None = None,
    hidden: Sequence[int] = (1000, 1000, 1000),
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 0.0001,
    form: Literal["auto", "dense", "coordinates"] = "auto",
) -> Method: ...

def snip(
    *,
    epsilon: float | None = 1.0,
    density: float | None = None,
    hidden: Sequence[int] = (1000, 1000, 1000),
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 0.0001,
    form: Literal["auto", "dense", "coordinates"] = "auto",
) -> Method: ...

def static_sparse(
    *,
    epsilon: float | None = 1.0,
    density: float | None = None,
    hidden: Sequence[int] = (1000, 1000, 1000),
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 0.0001,
    form: Literal["auto", "dense", "coordinates"] = "auto",
) -> Method: ...

def dense(
    *,
    hidden: Sequence[int] = (1000, 1000, 1000),
    learning_rate: float = 0.01,
    momentum: float = 0.9,
    l2: float = 0.0001,
) -> Method: ...

def quick_selection(
    *,
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
    form: Literal["auto", "dense", "coordinates"] = "auto",
) -> Method: ...

def stg(
    num_features: int | None = None,
    *,
    strength: float = 0.1,
    search: bool = True,
    sigma: float = 0.5,
    penalty: Literal["mean", "sum"] = "mean",
    hidden: Sequence[int] = (400, 200),
    activation: Literal["leaky_relu", "relu", "sigmoid", "tanh"] = "relu",
    optimizer: Literal["sgd", "adam", "adamw"] = "adam",
    learning_rate: float = 0.01,
    final_learning_rate: float | None = None,
    weight_decay: float = 0.001,
    network: Literal["mlp", "lenet5", "resnet32", "vgg19"] = "mlp",
    batch_norm: bool = False,
    layer_norm: bool = False,
    dropout: float = 0.0,
    momentum: float = 0.9,
    l1: float = 0.0,
) -> Method: ...

def wast(
    *,
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
) -> Method: ...
