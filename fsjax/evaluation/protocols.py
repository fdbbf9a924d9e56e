"""``evaluate``: test metrics of a fit under protocols that are chosen by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from joblib import Parallel, delayed

from fsjax.arguments import NonNegative, check
from fsjax.engine.distributed.exchange import shared_out
from fsjax.engine.result import FitResult
from fsjax.errors import ConfigError, DataError, check_names, check_whole
from fsjax.evaluation.retrain import neural_network_of, retrain_metrics
from fsjax.evaluation.sampling import SAMPLE_ROWS, in_memory
from fsjax.evaluation.svm import NEEDS_CLASSES, svm_accuracy
from fsjax.tables.dataset import Dataset
from fsjax.tables.splits import Split
from fsjax.tasks import TABLE, Task, name_of

#: The names that ``evaluation.protocols`` may hold.
PROTOCOLS: Final = ("embedded", "svm", "retrain", "reconstruct")

#: The name of the data of a fit that got arrays.
UNNAMED: Final = "table"


def evaluate(
    result: FitResult,
    dataset: Dataset,
    protocols: Sequence[str] = ("embedded",),
    num_features: Sequence[int] = (),
    *,
    noise_std: float = 0.0,
    scaling: str = "paper",
    retrain: Mapping[str, Any] = {},
    sample_rows: int = SAMPLE_ROWS,
) -> dict[str, np.ndarray]:
    """Test metrics of a fit under one or more protocols.

    Args:
      result: the result of ``fsjax.fit``, for S seeds.
      dataset: the data of the fit.
      protocols: names of :data:`PROTOCOLS`. ``embedded`` gives the metrics of the fit itself;
        ``svm`` is :func:`fsjax.evaluation.svm_accuracy` of the selected columns, and ``retrain``
        is :func:`fsjax.evaluation.retrain_metrics` of them; ``reconstruct`` is the same with a
        network that predicts all columns from them.
      num_features: further numbers of columns K, 1 to D, for which the other protocols evaluate
        the same fit.
      noise_std: noise on the training rows of the SVM, at least 0; the same for each seed.
      scaling: of the rows for ``retrain`` and ``reconstruct``, as in the fit.
      retrain: options of the network for ``retrain`` and ``reconstruct``, and its training.
      sample_rows: for a table on disk, the most rows that ``svm`` and ``retrain`` read into memory,
        with only the selected columns (so that ``retrain`` computes its scaling from these).

    Returns:
      By name, ``(S,)`` each: ``result.metrics`` for ``embedded``; ``svm_accuracy`` and
      ``retrain_accuracy`` in percent and ``retrain_reconstruction_frobenius`` at the fit's own K,
      and ``svm_accuracy_k25``, ... at the further ones. Without test rows, nothing is judged.

    Raises:
      ConfigError: as for :func:`check_protocols`, and for groups of columns, noise or a table on
        disk where a protocol does not support them.
      DataError: if ``svm`` or ``retrain`` needs classes that the data set does not have, or if
        the data set is not that of the fit: another name or number of columns, or too few rows.

    Examples:
      >>> print(fsjax.evaluation.PROTOCOLS)
      >>> fsjax.evaluation.check_protocols(("svm",), (2, 4), num_columns=6)
      >>> result = fsjax.fit(method, data, num_features=2, num_epochs=2)
      >>> print(fsjax.evaluation.evaluate(result, data, ("svm",), (2, 4)))
    """
    _check_same_data(result, dataset)
    check_protocols(
        protocols,
        num_features,
        dataset.num_features,
        num_classes=dataset.num_classes,
        noise_std=noise_std,
        retrain=retrain,
        task=result.task,
        sample_rows=sample_rows,
        on_disk=dataset.table.on_disk,
    )
    if result.states.spec.groups is not None and set(protocols) != {"embedded"}:
        raise ConfigError(
            f"evaluation.protocols={tuple(protocols)!r}, but groups of columns were selected; "
            "choose ('embedded',)"
        )
    metrics = dict(result.metrics) if "embedded" in protocols else {}
    if not all(len(split.test) for split in result.splits):
        return metrics
    further = {f"_k{k}": k for k in map(int, num_features) if k != result.num_features}
    selections = {"": result.selected, **{end: result.select(k) for end, k in further.items()}}
    splits: Sequence[Split] = result.splits
    if dataset.table.on_disk and set(protocols) != {"embedded"}:
        if noise_std:
            raise ConfigError(
                f"noise_std={noise_std}, but {dataset.name} is read from disk; leave it out, or "
                "read it with data.dense=true"
            )
        dataset, splits, selections = in_memory(dataset, splits, selections, sample_rows)
    if "svm" in protocols:
        named = {f"svm_accuracy{end}": columns for end, columns in selections.items()}
        metrics |= _svm(splits, dataset, named, noise_std)
    tasks = {"retrain": judged_as(result.task), "reconstruct": "reconstruction"}
    for protocol, task in tasks.items():
        for end, columns in selections.items() if protocol in protocols else ():
            retrained = retrain_metrics(
                dataset,
                splits,
                columns,
                result.seeds,
                task=task,
                scaling=scaling,
                options=retrain,
            )
            metrics |= {f"{name}{end}": values for name, values in retrained.items()}
    return metrics


def _check_same_data(result: FitResult, dataset: Dataset) -> None:
    """Raises DataError for a data set that cannot be the one of the fit.

    A result knows the rows of its split, which may be a part of the table.
    """
    parts = [part for split in result.splits for part in split if len(part)]
    rows = 1 + max((int(part.max()) for part in parts), default=-1)
    columns = result.states.spec.num_columns
    named = UNNAMED not in (result.dataset, dataset.name)
    if (
        rows > dataset.num_samples
        or columns != dataset.num_features
        or (named and result.dataset != dataset.name)
    ):
        whole = all(sum(map(len, split)) == rows for split in result.splits)
        known = f"{rows} rows" if whole else f"at least {rows} rows"
        raise DataError(
            f"the result was trained on {result.dataset!r} ({known}, {columns} columns); "
            f"this is {dataset.name!r} ({dataset.num_samples} rows, "
            f"{dataset.num_features} columns); pass the data of the fit"
        )


def check_protocols(
    protocols: Sequence[str],
    num_features: Sequence[int],
    num_columns: int,
    *,
    num_classes: int | None = None,
    noise_std: float = 0.0,
    retrain: Mapping[str, Any] = {},
    task: str | Task = "classification",
    predicts: bool = True,
    sample_rows: int = SAMPLE_ROWS,
    on_disk: bool = False,
) -> None:
    """Check the arguments of :func:`evaluate` before anything is trained.

    Args:
      protocols, num_features, noise_std, retrain, sample_rows: as for :func:`evaluate`.
      num_columns: D.
      num_classes: of the data set, 0 if it has none; ``None`` skips this check.
      task: of the fit and of ``retrain``, which classifies if the task is ``reconstruction``.
      predicts: whether the method makes predictions.
      on_disk: whether the data set is read from disk.

    Raises:
      ConfigError: for an unknown name, a number of columns outside 1 to D, a negative noise, an
        option that cannot be used, ``embedded`` without predictions, or ``reconstruct`` for a table
        on disk.
      DataError: if ``svm`` or ``retrain`` needs classes that the data set does not have.
    """
    if isinstance(protocols, str):
        raise ConfigError(
            f"evaluation.protocols={protocols!r}; give a tuple of names: ({protocols!r},)"
        )
    check_names("evaluation.protocols has", protocols, PROTOCOLS)
    if "embedded" in protocols and not predicts:
        raise ConfigError(
            "evaluation.protocols has 'embedded', but the method makes no predictions; choose "
            "'retrain'"
        )
    for k in num_features:
        if check_whole("evaluation.num_features", k) > num_columns:
            raise ConfigError(
                f"evaluation.num_features has {k} but X has {num_columns} columns; choose at most "
                f"{num_columns}"
            )
    check(NonNegative, noise_std=noise_std)
    check_whole("evaluation.sample_rows", sample_rows, min_value=3)
    if "svm" in protocols and num_classes == 0:
        raise DataError(f"the data set has no classes; {NEEDS_CLASSES}")
    if "reconstruct" in protocols and on_disk:
        raise ConfigError(
            "evaluation.protocols has 'reconstruct', but the data set is read from disk; leave it "
            "out, or read the table with data.dense=true"
        )
    if "retrain" in protocols or "reconstruct" in protocols:
        neural_network_of(retrain)
    if "retrain" in protocols:
        if num_classes == 0 and TABLE[judged_as(task)].target.classes:
            raise DataError(
                "the data set has no classes, which the retrain protocol needs; leave 'retrain' "
                "out of evaluation.protocols"
            )


def judged_as(task: str | Task) -> str:
    """The task of a fresh network on columns that were selected for a task."""
    name = name_of(task)
    return name if TABLE[name].target.supervised else "classification"


def _svm(
    splits: Sequence[Split],
    dataset: Dataset,
    selections: dict[str, np.ndarray],
    noise_std: float,
) -> dict[str, np.ndarray]:
    """``svm_accuracy`` of each seed's columns ``(S, K)``, by name."""

    def key(split: Split, columns: np.ndarray) -> tuple[int, ...]:
        return id(split), *columns.tolist()

    # Sorted, so that the order of importance does not matter.
    ordered = {name: np.sort(columns, axis=1) for name, columns in selections.items()}
    pairs = {name: list(zip(splits, of_seeds, strict=True)) for name, of_seeds in ordered.items()}
    # Seeds often agree, so each pair of a set of columns and a split is computed once.
    wanted = {key(*pair): pair for row in pairs.values() for pair in row}

    def judged(pairs: Sequence[tuple[Split, np.ndarray]]) -> list[float]:
        # Threads suffice, because libsvm releases the interpreter lock.
        return Parallel(n_jobs=-1, prefer="threads")(
            delayed(svm_accuracy)(dataset, *pair, noise_std=noise_std) for pair in pairs
        )

    accuracies = shared_out("support vector machines", list(wanted.values()), judged)
    by_pair = dict(zip(wanted, accuracies, strict=True))
    return {name: np.array([by_pair[key(*pair)] for pair in row]) for name, row in pairs.items()}


def embedded_metrics(task: str, outputs: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Test metrics of the outputs of one seed.

    Args:
      task: one of ``fsjax.tasks.TASKS``.
      outputs: ``(N, C)`` class logits, reconstructions, predictions, logits of labels, logarithms
        of expected counts or of hazard ratios.
      y: ``(N,)`` classes, ``(N, D)`` inputs, ``(N, C)`` targets (or ``(N,)`` for C = 1), or
        ``(N, 2)`` time and event.

    Returns:
      By name: ``embedded_accuracy`` in percent and, for two classes, ``auc`` in [0, 1], NaN unless
      both occur; or ``reconstruction_frobenius``, the mean over rows of ``||x - x_hat||_2 / D``
      (IP-CAE, Table 1), with ``mse``; or ``mse`` and ``r2``; or ``label_accuracy`` and
      ``subset_accuracy`` in percent and ``auc``; or ``poisson_deviance`` and ``d2``; or
      ``concordance_index`` in [0, 1].

    Examples:
      >>> outputs = np.array([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
      >>> print(fsjax.evaluation.embedded_metrics("classification", outputs, np.array([0, 1, 1])))
    """
    return TABLE[task].outputs.test_metrics(outputs, y)
