"""scikit-learn estimators, one class for every method, thin over :func:`fsjax.fit`.

They select columns (``fit``, ``transform``, ``get_support``), and where the method trains a
classifier or a regressor they predict as well. The defaults are those of the methods and their
papers, also for epochs, rows per step and scaling.
"""

from __future__ import annotations

from fsjax import methods
from fsjax.estimators.base import Selector
from fsjax.estimators.factory import selector
from fsjax.estimators.files import load
from fsjax.methods.network import NetworkOptions

_CONCRETE = {"num_epochs": 200, "batch_size": 64}
_FIXED = {"num_epochs": 100, "batch_size": 64}
_AUTOENCODER = {"batch_size": 128}
_SPARSE = {"num_epochs": 500, "batch_size": 100}
_NETWORK = {
    "options": NetworkOptions,
    "num_epochs": 100,
    "batch_size": 256,
    "min_steps_per_epoch": 30,
}

CAE = selector("CAE", methods.cae, **_CONCRETE)
IPCAE = selector("IPCAE", methods.ip_cae, **_CONCRETE)
GJSD = selector("GJSD", methods.gjsd, options=methods.cae, **_CONCRETE)
# The authors' scaling, without which WAST loses much; columns of different units want ``True``.
WAST = selector("WAST", methods.wast, num_epochs=10, standardize="scalar", **_AUTOENCODER)
QuickSelection = selector("QuickSelection", methods.quick_selection, num_epochs=100, **_AUTOENCODER)
CTRESim = selector("CTRESim", methods.ctre_sim, **_SPARSE)
CTRESeq = selector("CTRESeq", methods.ctre_seq, **_SPARSE)
SET = selector("SET", methods.set, **_SPARSE)
RigL = selector("RigL", methods.rigl, **_SPARSE)
SNIP = selector("SNIP", methods.snip, **_SPARSE)
StaticSparse = selector("StaticSparse", methods.static_sparse, **_SPARSE)
Dense = selector("Dense", methods.dense, **_SPARSE)
BinMask = selector("BinMask", methods.binmask, **_NETWORK)
STG = selector(
    "STG",
    methods.stg,
    options=NetworkOptions,
    num_epochs=100,
    batch_size=128,
    without=("finetune_epochs", "finetune_learning_rate"),
    min_steps_per_epoch=10,
)
LassoNet = selector("LassoNet", methods.lassonet, num_epochs=50_000, batch_size=None, shuffle=False)
ProbMask = selector("ProbMask", methods.probmask, **{**_NETWORK, "num_epochs": 30})
NeuralNetwork = selector("NeuralNetwork", methods.neural_network, **_NETWORK)
FisherScore = selector("FisherScore", methods.fisher_score, **_FIXED)
RandomSelection = selector("RandomSelection", methods.random_selection, **_FIXED)

#: The classes by the name of their method. A new one is two lines here and one below.
ESTIMATORS: dict[str, type[Selector]] = {
    one.method_name: one
    for one in (
        CAE,
        IPCAE,
        GJSD,
        WAST,
        QuickSelection,
        CTRESim,
        CTRESeq,
        SET,
        RigL,
        SNIP,
        StaticSparse,
        Dense,
        BinMask,
        STG,
        LassoNet,
        ProbMask,
        NeuralNetwork,
        FisherScore,
        RandomSelection,
    )
}

__all__ = [
    "ESTIMATORS",
    "BinMask",
    "CAE",
    "CTRESeq",
    "CTRESim",
    "Dense",
    "FisherScore",
    "GJSD",
    "IPCAE",
    "LassoNet",
    "NeuralNetwork",
    "ProbMask",
    "QuickSelection",
    "RandomSelection",
    "RigL",
    "SET",
    "SNIP",
    "STG",
    "Selector",
    "StaticSparse",
    "WAST",
    "load",
]
