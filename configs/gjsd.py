"""GJSD: CAE with the diversity term of the IP-CAE paper, section 2.5.

    python -m experiments.run --config=configs/gjsd.py:coil20,reconstruction --workdir=runs/gjsd

Variants: a data set, a task and ``quick``. Test accuracy in percent and reconstruction error with
K = 50, and minutes for the ten seeds on 2 cores:

| variant | paper | here | minutes |
| --- | --- | --- | --- |
| coil20 | 82.10 +- 3.72 | 84.20 +- 2.26 (2 seeds) | 4 |
| coil20,reconstruction | 2.80e-3 +- 0.03e-3 | 2.82e-3 +- 0.03e-3 (2 seeds) | 4 |
"""

import ml_collections

from configs.common import base_config, method_fields, parse_variant


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set, with lambda from Table 5."""
    read = parse_variant(variant)
    weak = read.task == "reconstruction" and read.name in ("har", "isolet", "mice_protein")
    return base_config(read, method_fields("gjsd", gjsd_weight=0.005 if weak else 0.05))
