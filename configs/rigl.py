"""RigL (Evci et al. 2020) as the CTRE paper compares with it.

    python -m experiments.run --config=configs/rigl.py:madelon --workdir=runs/rigl

Variants: a data set, a task and ``quick``. Test accuracy in percent and minutes for all seeds, in
the setting of ``configs.rewiring.classifier_config`` unless said otherwise:

| variant | paper | here | minutes |
| --- | --- | --- | --- |
| madelon | 50.0 +- 0.0 | 50.00 +- 0.00 (2 seeds) | 2 |
"""

from configs.rewiring import classifier_config

get_config = classifier_config("rigl")
