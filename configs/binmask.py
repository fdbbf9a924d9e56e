"""BinMask (Jia and Rinard): L0 regularisation by binary masks, here on the inputs.

    python -m experiments.run --config=configs/binmask.py:isolet --workdir=runs/binmask

Variants: a data set, a task and ``quick``. The comparison of the paper's Figure 1 is
``experiments.feature_selection``, masks on the weights are ``experiments.sparsify`` and
``experiments.regularize``; ``--config.method.masked=weights`` does a single run of them.
"""

from __future__ import annotations

import ml_collections

from configs.common import method_fields
from configs.gates import gates_config


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of section 4.1."""
    return gates_config(variant, method_fields("binmask"))
