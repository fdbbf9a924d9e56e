"""BinMask, section 4.2 and Figure 2: compares sparse networks with the dense one and ProbMask.

    python -m experiments.sparsify --config=configs/sparsify.py:mnist,lenet5 \
        --workdir=runs/sparsify/mnist-lenet5

Variants: a data set with classes (default ``digits``), a network (``mlp``, ``lenet5``, ``resnet32``
or ``vgg19``) and ``quick``, in any order. One BinMask network is trained for each lambda in
``strengths``; those for CIFAR are the paper's. ``train.num_epochs`` includes the
``network.finetune_epochs`` at its end, in which the masks are fixed. ``--config.probmask=False``
skips ProbMask.

On CIFAR the paper trains for 300 epochs and 20 of fine-tuning. The code of ProbMask, which it
follows, augments images by random crops and flips; here images are not augmented.
"""

import ml_collections

from configs.common import SGD, data_fields, sort_words
from fsjax.data import available
from fsjax.nets import NETWORKS
from fsjax.tables.datasets.catalog import ENTRIES

#: Lambda of section 4.2.
PAPER_STRENGTHS = (0.0, 1e-7, 1e-6, 2e-6, 4e-6, 8e-6, 1.6e-5)

#: Lambda for other large image data sets, up to sparsities above 97 % for either network.
LARGE_STRENGTHS = {
    "mlp": (1e-7, 4e-6, 1.6e-5, 2.2e-5, 6.4e-5),
    "lenet5": (1e-6, 1.6e-5, 6.4e-5, 1.28e-4, 2.56e-4),
}

#: Lambda on small data sets.
SMALL_STRENGTHS = (1e-5, 1e-4, 5e-4, 2e-3)


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The comparison of one network on one data set.

    Raises:
      ConfigError: for a word that is not a data set, a network or ``quick``, and for two of a kind.
    """
    names, networks, quick = sort_words(variant, available(), NETWORKS, ("quick",))
    (name,) = names or ["digits"]
    default = {0: "mlp", 2: "lenet5", 3: "resnet32"}[len(ENTRIES[name].image_shape or ())]
    (network,) = networks or [default]
    large = ENTRIES[name].shape[0] >= 50_000
    cifar = name.startswith("cifar")
    num_epochs, finetune_epochs = (300, 20) if cifar else (20, 2) if large else (20, 5)
    on_large = PAPER_STRENGTHS if cifar else LARGE_STRENGTHS.get(network, PAPER_STRENGTHS)
    strengths: tuple[float, ...] = on_large if large else SMALL_STRENGTHS
    if quick:
        num_epochs, finetune_epochs, strengths = 3, 1, strengths[-2:]
    return ml_collections.ConfigDict(
        {
            "data": data_fields(name, "official" if large else "stratified", "minmax"),
            "seeds": (0, 1) if quick else (0, 1, 2, 3),
            "strengths": strengths,
            "probmask": True,
            "network": {
                "network": network,
                "hidden": (512, 512) if large else (64, 20),  # of ``mlp`` only
                "activation": "relu",
                "batch_norm": True,
                "finetune_epochs": finetune_epochs,
                "finetune_learning_rate": 0.01,
                **SGD,
            },
            "train": {
                "num_epochs": num_epochs + finetune_epochs,
                "batch_size": 256 if large else 32,
                "seed_axis": "auto",
                "batch_devices": 1,
                "checkpoint_every": 20 if cifar else 5,
            },
            "binmask": {
                "initial": 0.3,
                "clip": 1.0,
                # With the paper's 1e-3 a mask needs about 300 steps to close, too many here.
                "mask_learning_rate": 1e-2 if quick else 1e-3 if large else 5e-3,
                "mask_final_learning_rate": 1e-5,
                "warmup": 0.1,
            },
            "probmask_options": {
                "samples": 2,
                "temperature_start": 1.0,
                "temperature_end": 0.03,
                "score_learning_rate": 6e-3,
                "sparsify_start": 0.16,
                "sparsify_end": 0.6,
                "max_norm": 3.0,
                "evaluation": "sample",
            },
        }
    )
