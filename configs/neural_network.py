"""A plain network on all columns: the classifier of BinMask's section 4.1.

    python -m experiments.run --config=configs/neural_network.py:isolet --workdir=runs/network

Variants: a data set, a task and ``quick``.
"""

from configs.common import gates_config

get_config = gates_config("neural_network", {"evaluation.protocols": ("embedded",)})
