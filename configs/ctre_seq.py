"""CTRE_seq (Atashgahi et al. 2022): similarity first, random search once validation stalls.

    python -m experiments.run --config=configs/ctre_seq.py:madelon --workdir=runs/ctre_seq

Variants: a data set, a task and ``quick``. Test accuracy in percent and minutes for all seeds, in
the setting of ``configs.rewiring.classifier_config`` unless said otherwise:

| variant | paper | here | minutes |
| --- | --- | --- | --- |
| madelon, ``hidden=100,100,100`` | 82.2 +- 2.4 | 84.33 +- 1.84 (4 seeds) | 1 |
"""

from configs.rewiring import classifier_config

get_config = classifier_config("ctre_seq")
