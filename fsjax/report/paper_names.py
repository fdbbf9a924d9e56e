"""What the papers' names mean here: their methods, data sets, metrics and settings.

A paper joins with one CSV in ``paper_results`` (columns ``paper, table, dataset, method, setting,
metric, mean, std, n_repeats``, names and numbers as printed) and one entry in :data:`PAPERS`; data
sets that are new go into :data:`DATASETS`, options of methods that its tables vary into
:data:`PUBLISHED_OPTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Metric(NamedTuple):
    """A metric of a CSV.

    Attributes:
      name: ours.
      factor: takes the printed number to our unit.
      any_k: whether the number holds for every K, whatever the row's setting says.
      any_length: whether the number stands for runs of another number of epochs, where the paper
        has none of that length.
    """

    name: str
    factor: float = 1.0
    any_k: bool = False
    any_length: bool = True


class Named(NamedTuple):
    """A method of a CSV.

    Attributes:
      method: our name.
      options: in which it differs from :data:`PUBLISHED_OPTIONS`.
      num_epochs: of its runs, where they are not the paper's usual ones.
      task: of its runs, where it is not the paper's.
      metrics: by the name in the CSV, where they differ from the paper's.
    """

    method: str
    options: Mapping[str, Any] = {}
    num_epochs: int | None = None
    task: str | None = None
    metrics: Mapping[str, Metric] = {}


class Paper(NamedTuple):
    """How the tables of one paper are read.

    Attributes:
      metrics: by the name in the CSV; rows with another one are not used.
      methods: by the name in the CSV; rows of another one are not used.
      num_epochs: of the runs behind its tables, where not said otherwise.
      task: of these runs, where the setting does not tell.
      needs: keys that the setting of every row must have to be used.
    """

    metrics: Mapping[str, Metric]
    methods: Mapping[str, Named]
    num_epochs: int
    task: str | None = None
    needs: frozenset[str] = frozenset()


class Besides(NamedTuple):
    """Stands for every value of an option but these."""

    values: tuple[Any, ...]


def agrees(wanted: Any, given: Any) -> bool:
    """Whether the value of an option is the one behind a published number.

    Args:
      wanted: the published value, or :class:`Besides`.
      given: the value of a run; lists count as tuples.
    """
    given = tuple(given) if isinstance(given, list) else given
    return given not in wanted.values if isinstance(wanted, Besides) else given == wanted


_RETRAINED = {"accuracy_pct": Metric("retrain_accuracy")}

#: By the name in the column ``paper``.
PAPERS: dict[str, Paper] = {
    # The error of Table 6 is on another scale than that of Table 1 and has no name here.
    "IP-CAE": Paper(
        metrics={
            "accuracy_pct": Metric("embedded_accuracy"),
            "reconstruction_frobenius": Metric("reconstruction_frobenius"),
        },
        methods={
            "CAE": Named("cae"),
            "GJSD": Named("gjsd"),
            "IP-CAE": Named("ip_cae"),
            # Their networks were trained again on the selected columns.
            "STG": Named("stg", metrics=_RETRAINED),
            "LassoNet": Named("lassonet", metrics=_RETRAINED),
        },
        num_epochs=200,
        needs=frozenset({"task", "K"}),
    ),
    # Section 4 and appendix A. CAE was trained otherwise than in IP-CAE and has no name here.
    "WAST": Paper(
        metrics={
            "svm_accuracy_pct": Metric("svm_accuracy"),
            "params": Metric("params", any_k=True),
            "tflops": Metric("train_flops", 1e12, any_k=True, any_length=False),
        },
        methods={
            "WAST": Named("wast"),
            "WAST_wo_loss_gradient": Named("wast", {"sensitivity_weight": 0.0}),
            "WAST_wo_weight_magnitude": Named("wast", {"sensitivity_weight": 1.0}),
            "WAST_wo_momentum": Named("wast", {"accumulate": False}),
            "WAST_wo_neuron_importance": Named("wast", {"drop": "magnitude"}),
            "QS": Named("quick_selection", num_epochs=100),
            # These two learn from the labels.
            "STG": Named("stg", num_epochs=100, task="classification"),
            "LassoNet": Named("lassonet", num_epochs=100, task="classification"),
        },
        num_epochs=10,
        task="reconstruction",
        needs=frozenset({"K"}),
    ),
    # Section 4.1; the ablations are those of section 5 and of the appendix.
    "CTRE": Paper(
        metrics={"accuracy_pct": Metric("embedded_accuracy")},
        methods={
            "Baseline": Named("dense"),
            "SNIP": Named("snip"),
            "RigL": Named("rigl"),
            "SET": Named("set"),
            "CTRE_seq": Named("ctre_seq"),
            "CTRE_seq-Hebb": Named("ctre_seq", {"similarity": "hebb"}),
            "CTRE_abl1:seq": Named("ctre_seq", {"order": "random_first"}),
            "CTRE_abl2:seq": Named("ctre_seq", {"order": "half"}),
            "CTRE_sim": Named("ctre_sim"),
            "CTRE_sim-Hebb": Named("ctre_sim", {"similarity": "hebb"}),
            "CTRE_sim-euclidean": Named("ctre_sim", {"similarity": "euclidean"}),
            "CTRE_w/oRandom": Named("ctre_sim", {"grow": "similar"}),
            "CTRE_sim/LTH": Named("ctre_sim", {"grow": "dissimilar_or_random"}),
            "CTRE_sample2": Named("ctre_sim", {"similarity_fraction": 0.5}),
            "CTRE_sample4": Named("ctre_sim", {"similarity_fraction": 0.25}),
        },
        num_epochs=500,
        task="classification",
        needs=frozenset({"hidden"}),
    ),
}

#: Our name of each method whose numbers stand in the text of a paper, for no single run. The tables
#: of BinMask are of data that cannot be had, and its figures print no numbers.
TEXT_METHODS: dict[str, str] = {"BinMask": "binmask", "ProbMask": "probmask", "STG": "stg"}

#: Our options that the papers' tables vary, at the values of their main results.
PUBLISHED_OPTIONS: dict[str, dict[str, Any]] = {
    "wast": {
        # Chosen for each data set, never one of the ends, which are ablations.
        "sensitivity_weight": Besides((0.0, 1.0)),
        "accumulate": True,
        # By importance over all weights (eq. 4) or each sign by itself (the authors' code).
        "drop": Besides(("magnitude",)),
        "update": "step",
    },
    "ctre_seq": {"similarity": "cosine", "order": "similar_first"},
    "ctre_sim": {
        "drop": "magnitude",
        "grow": "similar_or_random",
        "similarity": "cosine",
        "similarity_fraction": 1.0,
    },
}

#: Keys of the setting that are options of ours, and how their text is read.
SETTING_OPTIONS: dict[str, Callable[[str], Any]] = {
    "hidden": lambda text: (int(text),) * 3,
    "epsilon": float,
    "update": lambda text: {"batch": "step"}.get(text, text),
}

#: Our name of each data set in the papers.
DATASETS: dict[str, str] = {
    "MNIST": "mnist",
    "FashionMNIST": "fashion_mnist",
    "Isolet": "isolet",
    "COIL-20": "coil20",
    "HAR": "har",
    "MiceProtein": "mice_protein",
    "Madelon": "madelon",
    "USPS": "usps",
    "PCMAC": "pcmac",
    "BASEHOCK": "basehock",
    "SMK": "smk_can_187",
    "GLA": "gla_bra_180",
    "CIFAR10": "cifar10",
    "CIFAR100": "cifar100",
}
