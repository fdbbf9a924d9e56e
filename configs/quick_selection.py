"""QuickSelection (Atashgahi et al. 2022) in the setting of the WAST paper.

    python -m experiments.run --config=configs/quick_selection.py:madelon --workdir=runs/qs

Variants: a data set and ``quick``. Accuracy in percent of a support vector machine on 20 columns,
and seconds of training for all seeds on 2 cores:

| variant | paper | here | seconds |
| --- | --- | --- | --- |
| madelon | 82.07 +- 1.10 | 82.83 +- 1.17 (2 seeds) | 12 |
"""

from configs.rewiring import autoencoder_config

get_config = autoencoder_config("quick_selection", num_epochs=100)
