"""LassoNet (Lemhadri et al., JMLR 2021): the path down to K columns, with full batches.

    python -m experiments.run --config=configs/lassonet.py:coil20 --workdir=runs/lassonet

Variants: a data set, a task and ``quick`` (the first five epochs of a short path). A run stops when
its path has reached K columns; ``num_epochs`` is only an upper bound. ``config.method.until=0``
follows the path to its end. Accuracy in percent of a new network with 200 hidden units on K = 50
columns, as in Table 2 of IP-CAE:

| variant | paper | here |
| --- | --- | --- |
| coil20 | 89.37 +- 0.47 | 96.18 +- 0.35 (2 seeds) |
| isolet | 84.33 +- 0.28 | 85.92 +- 0.22 (2 seeds) |
| mnist | 90.06 +- 0.33 | 90.53 +- 0.27 (2 seeds) |

The history contains the lambda, the number of columns and the validation accuracy of every epoch:
``train/lambda``, ``train/num_selected`` and ``valid/accuracy``.
"""

import ml_collections

from configs.common import FRESH_NETWORK, PAPER_SETTINGS, base_config, method_fields, parse_variant

#: Upper bound of the path: 1000 dense epochs, then 100 for each of 190 lambdas.
MAX_EPOCHS = 20_000


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The authors' defaults, but with 200 hidden units like the other selectors."""
    read = parse_variant(variant)
    fields = method_fields("lassonet", hidden=(200,))
    if read.quick:
        fields |= {"dense_epochs": 2, "path_epochs": 1}
    # The batch is capped at all training rows: one step for each epoch.
    train = {"batch_size": 1_000_000, "shuffle": False, "drop_last": False, "checkpoint_every": 500}
    config = base_config(read, fields, (0, 1, 2, 3), MAX_EPOCHS, **train)
    config.data.valid_fraction = 0.1
    if read.name not in PAPER_SETTINGS:
        config.data.scaling = "minmax"
    if read.task in FRESH_NETWORK:
        config.evaluation.protocols = (FRESH_NETWORK[read.task], "embedded")
    return config
