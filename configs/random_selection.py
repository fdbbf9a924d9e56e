"""Random selection: the decoder of the concrete selectors on K random columns, as a control.

    python -m experiments.run --config=configs/random_selection.py --workdir=runs/random

Variants: a data set, a task and ``quick``. On ``digits``, K = 10: 72.8 +- 5.3 in 4 seconds.
"""

from configs.common import concrete_config

get_config = concrete_config("random_selection")
