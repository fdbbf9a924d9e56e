"""The dense network, the baseline of the CTRE paper's Table 2.

    python -m experiments.run --config=configs/dense.py:madelon --workdir=runs/dense

Variants: a data set, a task and ``quick``; three hidden layers of 1000 and 500 epochs.
"""

from configs.rewiring import classifier_config

get_config = classifier_config("dense")
