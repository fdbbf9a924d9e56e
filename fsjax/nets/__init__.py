"""Networks as Flax modules, and how to build one by its name."""

from fsjax.nets.images import VGG, LeNet5, ResNet
from fsjax.nets.mlp import MLP, FanInDense, Feedforward
from fsjax.nets.networks import NETWORKS, build_network, count_parameters, outputs_of
from fsjax.nets.skip_network import SkipNetwork

__all__ = [
    "MLP",
    "NETWORKS",
    "VGG",
    "FanInDense",
    "Feedforward",
    "LeNet5",
    "ResNet",
    "SkipNetwork",
    "build_network",
    "count_parameters",
    "outputs_of",
]
