"""Fisher score (Gu et al. 2011): the decoder of the concrete selectors on the K best columns.

    python -m experiments.run --config=configs/fisher_score.py --workdir=runs/fisher

Variants: a data set and ``quick``; classification only. On ``digits``, K = 10:
88.7 +- 0.5 (three seeds).
"""

from functools import partial

from configs.common import concrete_config

#: Takes the variant.
get_config = partial(concrete_config, method="fisher_score", hidden=(200,))
