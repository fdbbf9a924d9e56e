"""Names of methods: those that are not methods of the library, and all in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fsjax.auto.contest.rankers import SIMPLE
from fsjax.auto.contest.rule import CONSENSUS

#: Names of the selection of all columns, and of random columns, among the methods.
ALL, RANDOM = "all", "random"

#: Names in sentences by the key of the method; methods of other packages keep their own.
_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ALL: "all columns",
        CONSENSUS: "the consensus of simple methods",
        "network": "a network",
        "random": "columns drawn at random",
        "univariate": "the univariate filter",
        "l1": "the Lasso path",
        "mrmr": "minimum redundancy (mRMR)",
        "forward": "forward selection",
        "rfe": "recursive elimination",
        "forest": "forest importance",
        "shadow": "Boruta's shadow test",
        "aefs": "autoencoder selection (AEFS)",
        "auto_nfs": "randomly masked inputs (AutoNFS)",
        "binmask": "binary masks (BinMask)",
        "cae": "the concrete autoencoder (CAE)",
        "cife": "conditional information (CIFE)",
        "ctre_seq": "cosine growth, then random (CTRE)",
        "ctre_sim": "cosine growth (CTRE)",
        "deep_lasso": "Deep Lasso",
        "dense": "the dense network",
        "dufs": "gated Laplacian (DUFS)",
        "entryprune": "entry pruning (EntryPrune)",
        "fisher_score": "the Fisher score",
        "gjsd": "the diverse concrete autoencoder (GJSD)",
        "icap": "interaction capping (ICAP)",
        "ip_cae": "the indirect concrete autoencoder (IP-CAE)",
        "l1_l21": "jointly sparse regression (L1_L21)",
        "laplacian_score": "the Laplacian score",
        "lassonet": "LassoNet",
        "mcfs": "multi-cluster selection (MCFS)",
        "neural_network": "the plain network",
        "neurofs": "NeuroFS",
        "probmask": "probabilistic masks (ProbMask)",
        "quick_selection": "QuickSelection",
        "random_selection": "a network on random columns",
        "rfs": "robust regression (RFS)",
        "rigl": "gradient growth (RigL)",
        "sand": "noise distortion (SAND)",
        "sequential_attention": "Sequential Attention",
        "set": "sparse evolutionary training (SET)",
        "snip": "pruning before training (SNIP)",
        "static_sparse": "the static sparse network",
        "stg": "stochastic gates (STG)",
        "wast": "the attentive sparse autoencoder (WAST)",
    }
)


def of_library(name: str) -> bool:
    """Whether a contender is a method of the library, which ranks several folds as one program."""
    return name not in SIMPLE and name not in (ALL, CONSENSUS)


def in_words(method: str) -> str:
    """The name of a method in a sentence, with its article."""
    return _NAMES.get(method, method)


def title(method: str) -> str:
    """The name of a method in tables and legends, without an article."""
    return in_words(method).removeprefix("the ").removeprefix("a ")


def selected_by(method: str) -> str:
    """What the columns that a method selects are called in a sentence."""
    return "drawn at random" if method == "random" else f"selected by {in_words(method)}"
