"""The dense network, the baseline of the CTRE paper's Table 2.

    python -m experiments.run --config=configs/dense.py:madelon --workdir=runs/dense

Variants: a data set, a task and ``quick``; three hidden layers of 1000 and 500 epochs.
"""

from functools import partial

from configs.rewiring import classifier_config

#: Takes the variant.
get_config = partial(classifier_config, method="dense")
