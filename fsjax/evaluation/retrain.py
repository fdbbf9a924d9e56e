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
from fsjax.engine.prepare import check_columns, scaler_of
from fsjax.errors import ConfigError, check_names
from fsjax.method import Method
from fsjax.methods.neural_network import neural_network
from fsjax.methods.shared.network import NetworkOptions
from fsjax.tables.dataset import CheckedDataset, Dataset
from fsjax.tables.scaled import dense_rows, scaled
from fsjax.tables.splits import Split
from fsjax.tasks import TABLE, Task, name_of
from fsjax.tasks.from_arrays import check_task

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
        predicts all scaled columns from the selected ones; tables on disk are not supported. For
        numbers and counts, y is scaled by the training rows, and the metrics have its units.
      scaling: as for ``fsjax.fit``.
      options: of the network (``fsjax.methods.shared.network.NetworkOptions``) and its training
        (``num_epochs``, ``batch_size``, ``min_steps_per_epoch``, ``best_by``, ``shuffle``,
        ``drop_last``), which replace those of the paper.
      progress: whether to show a progress bar.

    Returns:
      ``(S,)`` by name: ``retrain_accuracy`` in percent and, for two classes, ``retrain_auc``; or
      ``retrain_mse`` and ``retrain_r2``, or the other metrics of :func:`embedded_metrics`. For
      ``reconstruction``, ``retrain_reconstruction_frobenius`` and ``retrain_reconstruction_mse``.
      Without test rows, nothing.

    Raises:
      ConfigError: for an unknown option or a value outside its range, and for columns that are not
        those of each seed.

    Examples:
      >>> split = fsjax.data.make_split(data, "stratified", seed=0)
      >>> print(fsjax.evaluation.svm_accuracy(data, split, np.array([0, 1])))
      >>> options, selected = {"num_epochs": 2, "hidden": (8,)}, np.array([[0, 1]])
      >>> print(fsjax.evaluation.retrain_metrics(data, [split], selected, (0,), options=options))
      >>> # None: all rows
      >>> print(fsjax.evaluation.sampled_rows(data, split, fsjax.evaluation.SAMPLE_ROWS))
    """
    method, training = neural_network_of(options)
    if len(splits) != len(seeds):
        raise ConfigError(f"{len(splits)} splits for {len(seeds)} seeds; give one for each")
    if columns is not None:
        columns = check_columns(columns, len(seeds), dataset.num_features)
    if not all(len(split.test) for split in splits):
        return {}
    if TABLE[name_of(task)].objective.coupled and "batch_size" not in options:
        training["batch_size"] = "auto"
    if training["best_by"] == "last":
        none = np.zeros(0, np.int32)
        # One merged split for each split, so that seeds that share one are trained together.
        merged = {id(s): Split(np.concatenate([s.train, s.valid]), none, s.test) for s in splits}
        splits = [merged[id(split)] for split in splits]
    training["scaling"] = scaling
    training["zero_others"] = options.get("network", "mlp") != "mlp"
    training["progress"] = progress
    seeds = [int(seed) for seed in seeds]
    name = name_of(task)
    if not TABLE[name].target.supervised or _has_units(name):
        return _metrics_by_split(method, dataset, splits, columns, seeds, name, training)
    planned = plan(
        method, dataset, seeds=seeds, task=task, split=splits, columns=columns, **training
    )
    metrics = planned.test_metrics(planned.choose(planned.train()))
    return {f"retrain_{name.removeprefix('embedded_')}": values for name, values in metrics.items()}


def _has_units(task: str) -> bool:
    """Whether targets are scaled for training, and the outputs can be turned back into units."""
    entry = TABLE[task]
    base = TABLE[entry.like or task]
    if entry.target.scale is None or base.name not in ("regression", "counts"):
        return False
    # A task with outputs of its own, such as a mean and a variance, is trained on its y.
    ours, theirs = entry.outputs, base.outputs
    return ours.estimate is theirs.estimate and ours.num_outputs is theirs.num_outputs


def _targets(
    dataset: Dataset, split: Split, task: str, scaling: str
) -> tuple[np.ndarray, np.ndarray, Any, Any]:
    """Scaled columns for reconstruction, else y, scaled by its training rows as by estimators.

    Also the truth, and the factor and shift that turn outputs into its units.
    """
    entry = TABLE[task]
    if not entry.target.supervised:
        columns = dense_rows(scaled(dataset.table, scaler_of(dataset, split, scaling)))
        return columns, columns, 1.0, 0.0
    assert entry.target.scale is not None and dataset.y is not None
    y = entry.target.as_rows(dataset.y).astype(np.float64)
    mean, deviation = entry.target.scale(y[split.train])
    deviation = np.where(deviation > 0, deviation, 1.0)
    of_rows = ((y - mean) / deviation).astype(np.float32)
    if "counts" in (task, entry.like):  # the outputs are logarithms
        return of_rows, y, 1.0, np.log(deviation)
    return of_rows, y, deviation, mean


def _metrics_by_split(
    method: Method,
    dataset: Dataset,
    splits: Sequence[Split],
    columns: np.ndarray | None,
    seeds: Sequence[int],
    task: str,
    training: Mapping[str, Any],
) -> dict[str, np.ndarray]:
    """Metrics ``(S,)`` of networks whose targets are scaled by the rows of their split.

    For reconstruction, the scaled columns are the targets of a regression, so that the network
    may see other inputs than it has to predict. Seeds that share a split are trained together.
    """
    is_supervised = TABLE[task].target.supervised
    task = task if is_supervised else "reconstruction"
    prefix = "retrain_" if is_supervised else "retrain_reconstruction_"
    dataset = check_task(dataset, task)
    fields = {field.name: getattr(dataset, field.name) for field in dataclasses.fields(dataset)}
    metrics: dict[str, np.ndarray] = {}
    for split in {id(split): split for split in splits}.values():
        places = [place for place, of_seed in enumerate(splits) if of_seed is split]
        targets, truth, factor, shift = _targets(dataset, split, task, training["scaling"])
        planned = plan(
            method,
            CheckedDataset(**{**fields, "y": targets, "class_names": None}),
            seeds=[seeds[place] for place in places],
            task=task if is_supervised else "regression",
            split=[split] * len(places),
            columns=None if columns is None else columns[places],
            **training,
        )
        outputs = np.asarray(planned.choose(planned.train()).outputs)
        truth = truth[split.test]
        for place, of_seed in zip(places, outputs, strict=True):
            predicted = of_seed[: len(truth)] * factor + shift
            for name, value in TABLE[task].outputs.test_metrics(predicted, truth).items():
                full = f"{prefix}{name.removeprefix('reconstruction_')}"
                metrics.setdefault(full, np.full(len(splits), np.nan))[place] = value
    return metrics
