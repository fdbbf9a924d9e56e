"""Networks as Flax modules, and how to build one by its name."""

from fsjax.nets.feedforward import Feedforward
from fsjax.nets.lenet5 import LeNet5
from fsjax.nets.mlp import MLP, FanInDense
from fsjax.nets.networks import NETWORKS, build_network, count_parameters, outputs_of
from fsjax.nets.resnet import ResNet
from fsjax.nets.skip_network import SkipNetwork
from fsjax.nets.vgg import VGG

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
