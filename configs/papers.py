"""Any method in the protocol of a paper's tables, as ``experiments.reproduce`` runs it.

    python -m experiments.run --config=configs/papers.py:wast,stg,isolet --workdir=runs/stg

Variants: a paper (``wast``, ``ctre``, ``ip_cae``), a method by name or as ``module:function``, a
data set of the paper, a task and ``quick``.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import ml_collections

from configs.common import base_config, method_fields, parse_variant, words_of
from configs.rewiring import autoencoder_config, classifier_config
from fsjax.errors import ConfigError, nearest
from fsjax.methods import get_method

#: Epochs of the methods that WAST is compared with (section 4.1); WAST is trained for 10.
WAST_EPOCHS = 100

#: Methods whose own configuration has the settings of WAST's tables.
WAST_OWN = ("wast", "quick_selection", "aefs", "dufs")

#: Methods whose published figures on PCMAC are near those of random columns; the reason is in
#: :func:`_as_published`.
WAST_BYTES = ("wast", "quick_selection", "aefs", "dufs", "cae", "stg")

#: Scaling of the inputs, and arguments, of methods in WAST's tables for which the paper states
#: none: of those that were tried, the ones that reproduce most of its values.
WAST_SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "fisher_score": ("none", {}),
    "laplacian_score": ("none", {}),
    # As in scikit-feature, except that its vectors are those that a dense solver returns.
    "mcfs": (
        "none",
        {
            "weights": "heat",
            "metric": "euclidean",
            "unit_columns": False,
            "signed": True,
            "tied": "random",
        },
    ),
    "l1_l21": ("standard", {"penalty": 0.1, "relative": False, "tolerance": 1e-3}),
    "rfs": ("standard", {"penalty": 0.3, "low": -1.0}),
    "cife": ("none", {"bins": None}),
    "icap": ("none", {"bins": None}),
    "lassonet": ("scalar", {"hidden": (200,)}),
    # One training run for every K: columns are ranked by the means of their gates.
    "stg": ("standard", {"search": False, "hidden": (200,)}),
    # The authors' package, with hidden layers of K and 3K/2.
    "cae": (
        "scalar",
        {
            "noise": "batch",
            "anneal": "step",
            "temperature_end": 0.1,
            "layer_norm": False,
            "logits_init": "glorot_normal",
            "dropout": 0.1,
        },
    ),
}

#: Further arguments of a method on one data set, chosen in the same way.
WAST_ON: dict[tuple[str, str], dict[str, Any]] = {
    # Keras' epsilon, as in the authors' package. It matters on these almost constant inputs: at
    # K = 50, 1e-7 has 64.0 +- 0.6 and 1e-8 has 71.6 +- 2.6 (three seeds each).
    ("cae", "pcmac"): {"adam_epsilon": 1e-7},
    ("mcfs", "madelon"): {"unit_columns": True, "tied": "weakest"},
    ("rfs", "madelon"): {"low": 0.0},
    ("laplacian_score", "madelon"): {"weights": "heat", "metric": "euclidean"},
    ("laplacian_score", "pcmac"): {"weights": "heat", "metric": "euclidean"},
    # At the rate of the authors' example, 1, the gates of these do worse than random columns.
    ("dufs", "isolet"): {"learning_rate": 0.01},
    ("dufs", "mnist"): {"learning_rate": 0.01},
    ("dufs", "usps"): {"learning_rate": 0.01},
}

#: Rows of a batch in the authors' package of CAE, N // 256, where that is more than its least, 16.
CAE_BATCH = {"isolet": 24, "har": 28, "usps": 29, "mnist": 234, "fashion_mnist": 234}

#: Methods whose published values are those of a first change without similarities, as coded. With
#: 500 neurons and epsilon 1 on Madelon, CTRE_seq has 61.2 in the paper, 60.3 by the authors' code,
#: 62.7 with that change here, and 84.8 without it; CTRE_sim that grows by similarity alone has 58.6
#: +- 12.0 in the paper, 69.8 +- 11.4 with that change here, and 84.8 +- 0.2 without it.
CTRE_BLIND = ("ctre_seq", "ctre_sim")

#: The network of STG and LassoNet in IP-CAE's section 4.4, while they select and afterwards, when a
#: fresh one is trained on their columns; all for 100 epochs, except LassoNet's path. It is used for
#: reconstruction only: the kept cells of Table 2 were run with the networks of the two configs.
IP_CAE_OTHERS = ("stg", "lassonet")
IP_CAE_FRESH = {"hidden": (200,), "activation": "relu", "layer_norm": False, "num_epochs": 100}

#: Upper bound of the epochs of LassoNet, which stops by itself.
LASSONET_EPOCHS = 20_000


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The protocol of a paper for a method and a data set.

    Raises:
      ConfigError: if the variant does not begin with a paper and a method.
    """
    words = words_of(variant)
    if len(words) < 2:
        raise ConfigError("name a paper and a method, as in configs/papers.py:wast,stg,isolet")
    paper, method, *rest = words
    if paper not in PROTOCOLS:
        raise ConfigError(f"unknown paper {paper!r}: {nearest(paper, PROTOCOLS)}")
    return PROTOCOLS[paper](method, ",".join(rest))


def _own(method: str) -> Any:
    """The module of the method's own config, or ``None``."""
    exists = ":" not in method and importlib.util.find_spec(f"configs.{method}")
    return importlib.import_module(f"configs.{method}") if exists else None


def _wast(method: str, variant: str) -> ml_collections.ConfigDict:
    """WAST, section 4: columns judged by a support vector machine; one training run for all K."""
    if method in WAST_OWN:
        return _as_published(_own(method).get_config(variant))
    build = get_method(method)
    small = build(**build.registration.small)
    task = parse_variant(variant, small.about.tasks[0]).task
    config = autoencoder_config(method, WAST_EPOCHS, task)(variant)
    if small.predict is None:
        config.evaluation.protocols = ("svm",)
    scaling, fields = WAST_SETTINGS.get(method, ("scalar", {}))
    config.data.scaling = scaling
    config.method.update(fields)
    if method == "cae":
        config.method.hidden = (3 * config.num_features // 2,)
        config.train.batch_size = CAE_BATCH.get(config.data.name, 16)
    if method == "lassonet":
        config.method.until = min(25, config.num_features)
        config.train.update(batch_size=1_000_000, shuffle=False, num_epochs=LASSONET_EPOCHS)
        config.train.update(checkpoint_every=500)
        if config.method.until < config.num_features:
            # If the path continues below K, the method itself determines the epoch to keep.
            config.train.best_by = None
        config.data.valid_fraction = 0.1
    return _as_published(config)


def _as_published(config: ml_collections.ConfigDict) -> ml_collections.ConfigDict:
    """Applies the settings of single data sets; on PCMAC counts were divided by 255 by accident."""
    method, data = config.method.name, config.data.name
    if data == "pcmac" and method in WAST_BYTES:
        config.data.scaling = "scalar255"
    config.method.update(WAST_ON.get((method, data), {}))
    return config


def _ctre(method: str, variant: str) -> ml_collections.ConfigDict:
    """CTRE, section 4.1: the test accuracy of the network itself at its best epoch."""
    config = classifier_config(method)(variant)
    if method in CTRE_BLIND:
        config.method.blind_start = True
    return config


def _ip_cae(method: str, variant: str) -> ml_collections.ConfigDict:
    """IP-CAE, section 4: the selector's own network, or a fresh one on the columns."""
    module = _own(method)
    if module is not None:
        config = module.get_config(variant)
        if method in IP_CAE_OTHERS and config.task == "reconstruction":
            config.method.hidden = IP_CAE_FRESH["hidden"]
            config.evaluation.retrain.update(IP_CAE_FRESH)
        return config
    config = base_config(parse_variant(variant), method_fields(method))
    if get_method(method)(**get_method(method).registration.small).predict is None:
        config.evaluation.protocols = ("retrain",)
    return config


#: By the name of the paper.
PROTOCOLS = {"wast": _wast, "ctre": _ctre, "ip_cae": _ip_cae}
