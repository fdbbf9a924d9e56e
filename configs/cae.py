"""CAE (Balin et al. 2019) as the baseline of the IP-CAE paper runs it.

    python -m experiments.run --config=configs/cae.py:coil20 --workdir=runs/coil20-cae

Variants: a data set, a task and ``quick``. Test accuracy in percent and reconstruction error with
K = 50, and minutes for the ten seeds on 2 cores:

| variant | paper | here | minutes |
| --- | --- | --- | --- |
| coil20 | 80.70 +- 2.93 | 81.42 +- 0.52 (2 seeds) | 4 |
| isolet | 75.82 +- 2.31 | 76.40 +- 3.46 (2 seeds) | 14 |
| mnist | 83.10 +- 1.23 | 84.88 +- 1.33 (4 seeds) | 27 |
| coil20,reconstruction | 4.21e-3 +- 0.08e-3 | 4.15e-3 +- 0.01e-3 (2 seeds) | 4 |

Without a data set it runs on ``digits``, K = 10: 85.9 +- 2.9 in 12 seconds.
"""

from configs.common import concrete_config

get_config = concrete_config("cae")
