"""DUFS (Lindenbaum et al., NeurIPS 2021), with the setting of the WAST paper.

    python -m experiments.run --config=configs/dufs.py:usps --workdir=runs/dufs

Variants: a data set and ``quick``.
"""

from functools import partial

from configs.rewiring import autoencoder_config

#: Takes the variant.
get_config = partial(autoencoder_config, method="dufs", num_epochs=100)
