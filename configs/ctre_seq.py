"""CTRE_seq (Atashgahi et al. 2022): similarity first, random search once validation stalls.

    python -m experiments.run --config=configs/ctre_seq.py:madelon --workdir=runs/ctre_seq

Variants: a data set, a task and ``quick``. Three hidden layers of 1000, epsilon 1, 500 epochs
unless said otherwise; test accuracy in percent at the epoch with the best validation accuracy, and
minutes of training for all seeds on 2 cores, with other work beside them:

| variant | paper | here | minutes |
| --- | --- | --- | --- |
| madelon, ``hidden=100,100,100`` | 82.2 +- 2.4 | 83.83 +- 1.92 (4 seeds) | 1 |
"""

from functools import partial

from configs.rewiring import classifier_config

#: Takes the variant.
get_config = partial(classifier_config, method="ctre_seq")
