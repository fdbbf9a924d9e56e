"""STG (Yamada et al., ICML 2020), with the search for exactly K gates of BinMask's section 4.1.

    python -m experiments.run --config=configs/stg.py:coil20 --workdir=runs/stg

Variants: a data set, a task and ``quick``. Accuracy in percent of a fresh network with 200 hidden
units on K = 50 columns, as in Tables 1 and 2 of IP-CAE:

| variant | paper | here |
| --- | --- | --- |
| coil20 | 96.80 +- 0.25 | 97.92 +- 0.00 (2 seeds) |
| isolet | 84.95 +- 0.31 | 88.74 +- 0.61 (2 seeds) |
| mnist | 92.29 +- 0.30 | 94.03 +- 0.10 (2 seeds) |
"""

from configs.common import gates_config

#: Settings of the authors' library, except its learning rate, with which no gate would move.
get_config = gates_config(
    "stg",
    {"method.hidden": (400, 200), "train.batch_size": 128, "train.min_steps_per_epoch": 10},
)
