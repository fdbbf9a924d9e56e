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

import ml_collections

from configs.common import base_config, method_fields, parse_variant


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The setting of a data set, with the four trials of BinMask's section 4.2."""
    read = parse_variant(variant)
    # No fine-tuning in quick runs, so that they can have a single epoch.
    fields = method_fields("probmask", finetune_epochs=0 if read.quick else 5)
    if read.name == "mnist":
        fields["network"] = "lenet5"
    train = {"batch_size": 256, "min_steps_per_epoch": 30, "shuffle": True, "drop_last": False}
    config = base_config(read, fields, (0, 1, 2, 3), 30, record_test=True, **train)
    config.data.update(split="wast", scaling="minmax", valid_fraction=0.0)
    return config
