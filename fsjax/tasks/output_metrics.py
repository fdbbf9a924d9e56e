"""Test metrics of the tasks, in NumPy; the table of tasks assigns them.

``..._metrics`` functions take ``outputs (N, C)`` of the network and targets ``y``, and return
numbers by name.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, log_softmax, logsumexp
from sklearn.metrics import accuracy_score, mean_poisson_deviance, r2_score, roc_auc_score

from fsjax.errors import DataError
from fsjax.tasks.concordance import concordance_index

Metrics = dict[str, float]


def classification_metrics(outputs: np.ndarray, y: np.ndarray) -> Metrics:
    """``embedded_accuracy`` in percent and, for two classes, ``auc``; NaN unless both occur."""
    metrics = {"embedded_accuracy": 100.0 * float(np.mean(outputs.argmax(-1) == y))}
    if outputs.shape[-1] == 2:
        # Logits, because probabilities of a nearly empty network would be rounded to ties.
        margins, both_occur = outputs[:, 1] - outputs[:, 0], np.unique(y).size == 2
        metrics["auc"] = float(roc_auc_score(y, margins)) if both_occur else float("nan")
    return metrics


def reconstruction_metrics(outputs: np.ndarray, y: np.ndarray) -> Metrics:
    """``reconstruction_frobenius`` and ``mse``.

    The former is the mean over rows of ``||x - x_hat||_2 / D`` (IP-CAE, Table 1).
    """
    residual = np.asarray(outputs, np.float64) - y
    norms = np.linalg.norm(residual, axis=-1)
    return {
        "reconstruction_frobenius": float(np.mean(norms) / y.shape[-1]),
        "mse": float(np.mean(np.square(residual))),
    }


def reconstructed_row_metrics(rows: Mapping[str, np.ndarray]) -> Metrics:
    """:func:`reconstruction_metrics`, from these values of N rows."""
    names = {"reconstruction_frobenius": "reconstruction_frobenius", "mse": "loss"}
    return {name: float(np.mean(rows[metric], dtype=np.float64)) for name, metric in names.items()}


def regression_metrics(outputs: np.ndarray, y: np.ndarray) -> Metrics:
    """``mse`` and ``r2``, the mean over several targets; y is ``(N, C)``, or ``(N,)`` for C = 1."""
    y = np.reshape(y, outputs.shape)  # which would broadcast to (N, N) otherwise
    residual = np.asarray(outputs, np.float64) - y
    return {"mse": float(np.mean(np.square(residual))), "r2": float(r2_score(y, outputs))}


def label_metrics(outputs: np.ndarray, y: np.ndarray) -> Metrics:
    """``label_accuracy`` and ``subset_accuracy`` in percent, and ``auc``, the mean over labels.

    The first is the share of correct labels, the second that of rows with all labels correct.
    ``auc`` ignores constant labels, and is NaN if all are constant.
    """
    predicted = outputs > 0
    truth = y > 0.5
    both = [label for label in range(y.shape[1]) if 0 < truth[:, label].sum() < len(y)]
    areas = [roc_auc_score(truth[:, label], outputs[:, label]) for label in both]
    return {
        "label_accuracy": 100.0 * float(np.mean(predicted == truth)),
        "subset_accuracy": 100.0 * float(accuracy_score(truth, predicted)),
        "auc": float(np.mean(areas)) if areas else float("nan"),
    }


def count_metrics(outputs: np.ndarray, y: np.ndarray) -> Metrics:
    """``poisson_deviance`` and ``d2``, for outputs that are logarithms of expected counts."""
    with np.errstate(over="ignore"):
        expected = np.exp(np.asarray(outputs, np.float64))
    return {"poisson_deviance": deviance(y, expected), "d2": d2_poisson(y, expected)}


def survival_metrics(outputs: np.ndarray, y: np.ndarray) -> Metrics:
    """``concordance_index`` in [0, 1]; NaN if no two rows are comparable."""
    try:
        return {"concordance_index": concordance_index(y[:, 0], y[:, 1], outputs[:, 0])}
    except DataError:
        return {"concordance_index": float("nan")}


def deviance(y: np.ndarray, expected: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
    """Mean Poisson deviance of expected counts above 0, also infinite, ``(N,)`` or ``(N, C)``."""
    pairs = zip(*(np.reshape(target, (len(target), -1)).T for target in (y, expected)), strict=True)
    # scikit-learn refuses expected counts that were rounded to 0 or to infinity.
    tiny = np.finfo(np.float64).tiny
    deviances = [
        mean_poisson_deviance(
            target, np.clip(other, tiny, 1e300, dtype=np.float64), sample_weight=sample_weight
        )
        for target, other in pairs
    ]
    return float(np.mean(deviances))


def d2_poisson(
    y: np.ndarray, expected: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """The explained share of the Poisson deviance of the mean, at most 1.

    With several counts, the mean over them; NaN if one of them is constant.
    """
    columns = np.reshape(y, (len(y), -1)), np.reshape(expected, (len(expected), -1))
    values = []
    for target, other in zip(*(part.T for part in columns), strict=True):
        same = np.full(target.shape, np.average(target, weights=sample_weight))
        total = deviance(target, same, sample_weight)
        values.append(1.0 - deviance(target, other, sample_weight) / total if total > 0 else np.nan)
    return float(np.mean(values))


def survival_score(
    y: np.ndarray, risk: np.ndarray, sample_weight: ArrayLike | None = None
) -> float:
    """The concordance index of risks ``(N,)`` for ``y (N, 2)``, time and event."""
    if np.ndim(y) != 2 or np.shape(y)[1] != 2:
        raise DataError(f"y has shape {np.shape(y)}; give (N, 2), time and event")
    return concordance_index(y[:, 0], y[:, 1], risk, sample_weight)


def probabilities(outputs: np.ndarray) -> np.ndarray:
    """Probabilities of labels, from logits."""
    return expit(outputs.astype(np.float64))


def estimated_labels(outputs: np.ndarray) -> np.ndarray:
    """The labels ``(N, C)`` by the mean probabilities of S seeds, from logits ``(S, N, C)``.

    A row has a label of more than 1/2, as in the metrics.
    """
    return (probabilities(outputs).mean(axis=0) > 0.5).astype(np.int64)


def class_log_probabilities(outputs: np.ndarray) -> np.ndarray:
    """Logarithms ``(N, C)`` of the mean probabilities of S seeds, from logits ``(S, N, C)``."""
    return _log_mean(log_softmax(outputs.astype(np.float64), axis=-1))


def label_log_probabilities(outputs: np.ndarray) -> np.ndarray:
    """The same for labels, which have one logit each."""
    return _log_mean(log_expit(outputs.astype(np.float64)))


def class_decision(outputs: np.ndarray) -> np.ndarray:
    """``(N,)`` log-odds of the second of two classes, or ``(N, C)`` logarithms of more."""
    logs = class_log_probabilities(outputs)
    return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs


def label_decision(outputs: np.ndarray) -> np.ndarray:
    """Log-odds ``(N, L)`` of the labels."""
    return label_log_probabilities(outputs) - label_log_probabilities(-outputs)


def _log_mean(logs: np.ndarray) -> np.ndarray:
    return logsumexp(logs, axis=0) - np.log(len(logs))
