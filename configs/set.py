"""SET (Mocanu et al. 2018) as the CTRE paper compares with it.

    python -m experiments.run --config=configs/set.py:madelon --workdir=runs/set

Variants: a data set, a task and ``quick``. Test accuracy in percent and minutes for all seeds, in
the setting of ``configs.rewiring.classifier_config`` unless said otherwise:

| variant | paper | here | minutes |
| --- | --- | --- | --- |
| madelon | 61.7 +- 1.2 | 58.89 +- 1.50 (3 seeds) | 2 |
| madelon, ``hidden=100,100,100`` | 60.4 +- 2.1 | 60.44 +- 1.91 (3 seeds) | 1 |
| isolet | 75.2 +- 4.7 | 77.44 +- 0.64 (2 seeds) | 7 |
"""

from configs.rewiring import classifier_config

get_config = classifier_config("set")
