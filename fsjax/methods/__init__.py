"""The methods, each a function of its hyperparameters that returns a ``fsjax.Method``."""

from __future__ import annotations

from collections.abc import Callable

from fsjax.errors import ConfigError, nearest
from fsjax.method import Method
from fsjax.methods.binmask import binmask
from fsjax.methods.cae import cae
from fsjax.methods.ctre_seq import ctre_seq
from fsjax.methods.ctre_sim import ctre_sim
from fsjax.methods.dense import dense
from fsjax.methods.fisher_score import fisher_score
from fsjax.methods.gjsd import gjsd
from fsjax.methods.ip_cae import ip_cae
from fsjax.methods.lassonet import lassonet
from fsjax.methods.neural_network import neural_network
from fsjax.methods.probmask import probmask
from fsjax.methods.quick_selection import quick_selection
from fsjax.methods.random_selection import random_selection
from fsjax.methods.rigl import rigl
from fsjax.methods.set import set  # noqa: A004
from fsjax.methods.snip import snip
from fsjax.methods.static_sparse import static_sparse
from fsjax.methods.stg import stg
from fsjax.methods.wast import wast

#: Every method by name. A new one is a file in this folder and a line here.
METHODS: dict[str, Callable[..., Method]] = {
    "binmask": binmask,
    "cae": cae,
    "ctre_seq": ctre_seq,
    "ctre_sim": ctre_sim,
    "dense": dense,
    "fisher_score": fisher_score,
    "gjsd": gjsd,
    "ip_cae": ip_cae,
    "lassonet": lassonet,
    "neural_network": neural_network,
    "probmask": probmask,
    "quick_selection": quick_selection,
    "random_selection": random_selection,
    "rigl": rigl,
    "set": set,
    "snip": snip,
    "static_sparse": static_sparse,
    "stg": stg,
    "wast": wast,
}


def get_method(name: str) -> Callable[..., Method]:
    """The function that builds the method of this name.

    Raises:
      ConfigError: for an unknown name, with the nearest known one.
    """
    if name not in METHODS:
        raise ConfigError(f"unknown method {name!r}: {nearest(name, METHODS)}")
    return METHODS[name]


__all__ = [
    "METHODS",
    "binmask",
    "cae",
    "ctre_seq",
    "ctre_sim",
    "dense",
    "fisher_score",
    "get_method",
    "gjsd",
    "ip_cae",
    "lassonet",
    "neural_network",
    "probmask",
    "quick_selection",
    "random_selection",
    "rigl",
    "set",
    "snip",
    "static_sparse",
    "stg",
    "wast",
]
