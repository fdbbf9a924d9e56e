"""The retrain and reconstruct protocols: a new network that sees only the selected columns.

It removes the noise and the network of the selector from the comparison (BinMask, section 4.1;
Tables 1 and 2 of IP-CAE for methods that do not train a network on exactly K columns).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fsjax.engine.fit import plan
from fsjax.engine.prepare import scaler_of
from fsjax.errors import check_names
from fsjax.method import Method
from fsjax.methods.neural_network import neural_network
from fsjax.methods.shared.network import NetworkOptions
from fsjax.tables.dataset import Dataset
from fsjax.tables.scaled import dense_rows, scaled
from fsjax.tables.splits import Split
from fsjax.tasks import TABLE, Task, name_of
from fsjax.tasks.output_metrics import reconstruction_metrics

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
      task: one of ``fsjax.tasks.TASKS``, or a registered task. For ``reconstruction`` the network
        predicts all scaled columns from the selected ones; tables on disk are not supported.
      scaling: as for ``fsjax.fit``.
      options: of the network (``fsjax.methods.shared.network.NetworkOptions``) and its training
        (``num_epochs``, ``batch_size``, ``min_steps_per_epoch``, ``best_by``, ``shuffle``,
        ``drop_last``), which replace those of the paper.
      progress: whether to show a progress bar.

    Returns:
      ``(S,)`` by name: ``retrain_accuracy`` in percent and, for two classes, ``retrain_auc``; or
      ``retrain_mse`` and ``retrain_r2``, or the other metrics of :func:`embedded_metrics`. For
      ``reconstruction``, ``retrain_reconstruction_frobenius`` and ``retrain_reconstruction_mse``.

    Raises:
      ConfigError: for an unknown option or a value outside its range.

    Examples:
      >>> split = fsjax.data.make_split(data, "stratified", seed=0)
      >>> print(fsjax.evaluation.svm_accuracy(data, split, np.array([0, 1])))
      >>> options, selected = {"num_epochs": 2, "hidden": (8,)}, np.array([[0, 1]])
      >>> print(fsjax.evaluation.retrain_metrics(data, [split], selected, (0,), options=options))
      >>> # None: all rows
      >>> print(fsjax.evaluation.sampled_rows(data, split, fsjax.evaluation.SAMPLE_ROWS))
    """
    method, training = neural_network_of(options)
    if TABLE[name_of(task)].objective.coupled and "batch_size" not in options:
        training["batch_size"] = "auto"
    if training["best_by"] == "last":
        none = np.zeros(0, np.int32)
        splits = [Split(np.concatenate([s.train, s.valid]), none, s.test) for s in splits]
    training["scaling"] = scaling
    training["zero_others"] = options.get("network", "mlp") != "mlp"
    training["progress"] = progress
    seeds = [int(seed) for seed in seeds]
    if not TABLE[name_of(task)].target.supervised:
        return _reconstruction_metrics(method, dataset, splits, columns, seeds, training)
    planned = plan(
        method, dataset, seeds=seeds, task=task, split=splits, columns=columns, **training
    )
    metrics = planned.test_metrics(planned.choose(planned.train()))
    return {f"retrain_{name.removeprefix('embedded_')}": values for name, values in metrics.items()}


def _reconstruction_metrics(
    method: Method,
    dataset: Dataset,
    splits: Sequence[Split],
    columns: np.ndarray | None,
    seeds: Sequence[int],
    training: Mapping[str, Any],
) -> dict[str, np.ndarray]:
    """Metrics ``(S,)`` of networks that predict all scaled columns from the selected ones.

    The scaled columns are the targets of a regression, so that the network may see other inputs
    than it has to predict. Seeds that share a split are trained together.
    """
    metrics: dict[str, np.ndarray] = {}
    for split in {id(split): split for split in splits}.values():
        places = [place for place, of_seed in enumerate(splits) if of_seed is split]
        targets = dense_rows(scaled(dataset.table, scaler_of(dataset, split, training["scaling"])))
        planned = plan(
            method,
            dataclasses.replace(dataset, y=targets, class_names=None),
            seeds=[seeds[place] for place in places],
            task="regression",
            split=[split] * len(places),
            columns=None if columns is None else columns[places],
            **training,
        )
        outputs = np.asarray(planned.choose(planned.train()).outputs)
        for place, of_seed in zip(places, outputs, strict=True):
            truth = targets[split.test]
            for name, value in reconstruction_metrics(of_seed[: len(truth)], truth).items():
                full = f"retrain_reconstruction_{name.removeprefix('reconstruction_')}"
                metrics.setdefault(full, np.zeros(len(splits)))[place] = value
    return metrics
