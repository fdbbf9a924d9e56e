"""Any registered method with its own defaults: the library's, or one in a file of your own.

    python -m experiments.run --config=configs/any.py:deep_lasso,isolet --workdir=runs/any
    python -m experiments.run --config=configs/any.py:my_package.my_file:deep_lasso --workdir=runs/a

Variants: a method by name or as ``module:function``, a data set, a task and ``quick``; a task of
your own is for example ``my_file:quantile(0.9)``. The method can also be named by a flag:
``--config=configs/any.py:isolet --config.method.name=my_package.my_file:deep_lasso``.
"""

import ml_collections
from ml_collections import config_dict

from configs.common import base_config, method_fields, names_own_task, parse_variant, words_of
from fsjax.data import available
from fsjax.errors import ConfigError, nearest
from fsjax.methods import METHODS, get_method
from fsjax.tasks import TASKS

#: Seeds of methods that no paper sets.
SEEDS = (0, 1, 2, 3, 4)


def get_config(variant: str | None = None) -> ml_collections.ConfigDict:
    """The defaults of the method's registration on a data set.

    Raises:
      ConfigError: for a word that is not a method, data set, task or ``quick``.
    """
    others = (*available(), *TASKS, "quick")
    words = words_of(variant)
    named = [word for word in words if word not in others and not names_own_task(word)]
    rest = ",".join(word for word in words if word not in named)
    for word in named:
        try:
            get_method(word)
        except ConfigError:
            if ":" in word:
                raise
            known = (*METHODS, *others)
            raise ConfigError(f"unknown variant {word!r}: {nearest(word, known)}") from None
    if len(named) > 1:
        raise ConfigError(f"the variant names the methods {' and '.join(named)}; give one")
    if not named:
        return base_config(parse_variant(rest), {"name": config_dict.placeholder(str)}, SEEDS)
    builder = get_method(named[0])
    registration = builder.registration
    method = builder(**registration.small)
    read = parse_variant(rest, method.about.tasks[0])
    # A batch size is capped at all training rows.
    train = {
        "batch_size": registration.batch_size or 1_000_000,
        "shuffle": True,
        "drop_last": False,
    }
    train |= registration.training
    fields, epochs = method_fields(named[0]), registration.num_epochs
    config = base_config(read, fields, SEEDS, epochs, **train)
    config.data.scaling = registration.scaling
    svm = ("svm",) if read.task == "reconstruction" else ()
    embedded = () if method.predict is None else ("embedded",)
    config.evaluation.protocols = (*svm, *embedded) or ("retrain",)
    return config
