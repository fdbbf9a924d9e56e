"""Static sparse training, the control for methods that rewire.

    python -m experiments.run --config=configs/static_sparse.py:madelon --workdir=runs/static

Variants: a data set, a task and ``quick``; three hidden layers of 1000 and 500 epochs.
"""

from configs.rewiring import classifier_config

get_config = classifier_config("static_sparse")
