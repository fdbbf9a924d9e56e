"""SNIP (Lee et al. 2019) as the CTRE paper compares with it.

    python -m experiments.run --config=configs/snip.py:madelon --workdir=runs/snip

Variants: a data set, a task and ``quick``; three hidden layers of 1000 and 500 epochs.
"""

from configs.rewiring import classifier_config

get_config = classifier_config("snip")
