"""ProbMask (Zhou et al., CVPR 2021), the baseline of BinMask's section 4.2, on small networks.

    python -m experiments.run --config=configs/probmask.py:mnist --workdir=runs/probmask

Variants: a data set, a task and ``quick``. LeNet-5 on ``mnist``, a multilayer perceptron of 64 and
20 hidden units otherwise; 30 epochs, of which 5 fine-tune a fixed mask. Four seeds:

| variant | weights kept | accuracy in percent before fine-tuning | after |
| --- | --- | --- | --- |
| digits | 0.03 | 54.0 | 69.4 +- 5.1 |
| digits, ``density=0.1`` | 0.1 | 82.4 | 89.7 +- 2.0 |
| isolet | 0.03 | 64.1 | 79.9 +- 2.6 |
"""

from __future__ import annotations

import ml_collections

from configs.common import base_config, method_fields, parse_variant

#: The four trials of BinMask's section 4.2.
SEEDS = (0, 1, 2, 3)


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set."""
    read = parse_variant(variant)
    quick = read.quick
    config = base_config(read, method_fields("probmask", finetune_epochs=5))
    if config.data.name == "mnist":
        config.method.network = "lenet5"
    if quick:
        # So that a single epoch is a run as well.
        config.method.finetune_epochs = 0
    config.seeds = SEEDS[:2] if quick else SEEDS
    config.data.split = "wast"
    config.data.scaling = "minmax"
    config.data.valid_fraction = 0.0
    config.train.num_epochs = 5 if quick else 30
    config.train.batch_size = 256
    config.train.min_steps_per_epoch = 30
    config.train.shuffle, config.train.drop_last = True, False
    config.train.record_test = True
    return config
