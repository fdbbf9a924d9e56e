"""The retrain protocol: a new network that sees only the selected columns.

It removes the noise and the network of the selector from the comparison (BinMask, section 4.1;
Tables 1 and 2 of IP-CAE for methods that do not train a classifier of their own).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fsjax.engine.fit import plan
from fsjax.errors import check_names
from fsjax.method import Method
from fsjax.methods.neural_network import neural_network
from fsjax.methods.shared.network import NetworkOptions
from fsjax.tables.dataset import Dataset
from fsjax.tables.splits import Split
from fsjax.tasks import TABLE, Task, name_of

#: Default options of training, as in BinMask, section 4.1, for tables.
TRAINING: Mapping[str, Any] = {
    "num_epochs": 100,
    "batch_size": 256,
    "min_steps_per_epoch": 30,
    "best_by": "last",
}

#: Options of ``fit`` that are allowed besides the options of the network.
_FIT_NAMES = (*TRAINING, "shuffle", "drop_last")


def neural_network_of(options: Mapping[str, Any]) -> tuple[Method, dict[str, Any]]:
    """The network of the protocol as a method, and the options of its training.

    Raises:
      ConfigError: for an unknown name or a value outside its range.
    """
    known = (*NetworkOptions.__dataclass_fields__, *_FIT_NAMES)
    check_names("evaluation.retrain has", options, known)
    training = {name: value for name, value in options.items() if name in _FIT_NAMES}
    network = {name: value for name, value in options.items() if name not in training}
    return neural_network(**network), {**TRAINING, **training}


def retrain_metrics(
    dataset: Dataset,
    splits: Sequence[Split],
    columns: np.ndarray | None,
    seeds: Sequence[int],
    *,
    task: str | Task = "classification",
    scaling: str = "paper",
    options: Mapping[str, Any] = {},
    progress: bool = False,
) -> dict[str, np.ndarray]:
    """Test metrics of new networks on the selected columns.

    Args:
      dataset: the data.
      splits: the rows of each seed. Validation rows determine the best epoch, except with
        ``best_by='last'``, where they are training rows.
      columns: ``(S, K)``, the columns of each seed; ``None`` for all columns. Multilayer
        perceptrons see only these, convolutional networks see zeros in place of the others.
      seeds: the S seeds, for initialisation and the order of rows.
      task: one of ``fsjax.tasks.TASKS``, or a registered task.
      scaling: as for ``fsjax.fit``.
      options: of the network (``fsjax.methods.shared.network.NetworkOptions``) and its training
        (``num_epochs``, ``batch_size``, ``min_steps_per_epoch``, ``best_by``, ``shuffle``,
        ``drop_last``), which replace those of the paper.
      progress: whether to show a progress bar.

    Returns:
      ``(S,)`` by name: ``retrain_accuracy`` in percent and, for two classes, ``retrain_auc``; or
      ``retrain_mse`` and ``retrain_r2``, or the other metrics of :func:`embedded_metrics`.

    Raises:
      ConfigError: for an unknown option or a value outside its range.
    """
    method, training = neural_network_of(options)
    if TABLE[name_of(task)].coupled and "batch_size" not in options:
        training["batch_size"] = "auto"
    if training["best_by"] == "last":
        none = np.zeros(0, np.int32)
        splits = [Split(np.concatenate([s.train, s.valid]), none, s.test) for s in splits]
    planned = plan(
        method,
        dataset,
        seeds=[int(seed) for seed in seeds],
        task=task,
        split=splits,
        scaling=scaling,
        columns=columns,
        zero_others=options.get("network", "mlp") != "mlp",
        progress=progress,
        **training,
    )
    metrics = planned.test_metrics(planned.choose(planned.train()))
    return {f"retrain_{name.removeprefix('embedded_')}": values for name, values in metrics.items()}
