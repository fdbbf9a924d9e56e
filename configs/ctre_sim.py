"""CTRE_sim (Atashgahi et al. 2022): similarity and random search at once.

    python -m experiments.run --config=configs/ctre_sim.py:madelon --workdir=runs/ctre_sim

Variants: a data set, a task and ``quick``. Test accuracy in percent and minutes for all seeds, in
the setting of ``configs.rewiring.classifier_config`` unless said otherwise:

| variant | paper | here | minutes |
| --- | --- | --- | --- |
| madelon | 78.8 +- 2.2 | 79.46 +- 2.53 (4 seeds) | 5 |
| madelon, ``hidden=100,100,100`` | 81.6 +- 1.3 | 81.54 +- 1.02 (4 seeds) | 1 |
| isolet | 88.3 +- 0.7 | 90.11 +- 0.86 (4 seeds) | 13 |
| mnist, hidden 500, epsilon 5, 120 epochs | 97.7 +- 0.1 | 97.43 +- 0.09 (2 seeds) | 21 |
"""

from configs.rewiring import classifier_config

get_config = classifier_config("ctre_sim")
