"""BinMask (Jia and Rinard): L0 regularisation by binary masks, here on the inputs.

    python -m experiments.run --config=configs/binmask.py:isolet --workdir=runs/binmask

Variants: a data set, a task and ``quick``. The comparison of the paper's Figure 1 is
``experiments.feature_selection``, masks on the weights are ``experiments.sparsify`` and
``experiments.regularize``; ``--config.method.masked=weights`` does a single run of them.
"""

from configs.common import gates_config

get_config = gates_config("binmask")
