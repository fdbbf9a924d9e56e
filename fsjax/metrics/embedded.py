"""The embedded protocol: the jointly trained network itself, on the test rows, not retrained."""

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score


def embedded_metrics(task: str, outputs: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Test metrics of one seed's outputs.

    Args:
      task: ``classification``, ``reconstruction`` or ``regression``.
      outputs: ``(N, C)`` class logits, reconstructions or predictions.
      y: ``(N,)`` classes, ``(N, D)`` inputs, or ``(N, C)`` targets.

    Returns:
      By name: ``embedded_accuracy`` in percent and, for two classes that both occur, ``auc`` in
      [0, 1]; or ``reconstruction_frobenius``, the mean over rows of ``||x - x_hat||_2 / D``
      (IP-CAE, Table 1), with ``mse``; or ``mse`` and ``r2``.
    """
    if task == "classification":
        metrics = {"embedded_accuracy": 100.0 * float(np.mean(outputs.argmax(-1) == y))}
        if outputs.shape[-1] == 2 and np.unique(y).size == 2:
            # Probabilities of a nearly empty network would round to ties.
            metrics["auc"] = float(roc_auc_score(y, outputs[:, 1] - outputs[:, 0]))
        return metrics
    residual = np.asarray(outputs, np.float64) - y
    mse = float(np.mean(np.square(residual)))
    if task == "reconstruction":
        norms = np.linalg.norm(residual, axis=-1)
        return {"reconstruction_frobenius": float(np.mean(norms) / y.shape[-1]), "mse": mse}
    return {"mse": mse, "r2": float(r2_score(y, outputs))}


def reconstruction_metrics(norms: np.ndarray, num_columns: int) -> dict[str, float]:
    """:func:`embedded_metrics` of reconstructions, from the norm ``(N,)`` of every row's residual.

    Args:
      norms: ``||x - x_hat||_2``, at least 0.
      num_columns: D.
    """
    norms = np.asarray(norms, np.float64)
    mse = float(np.mean(np.square(norms)) / num_columns)
    return {"reconstruction_frobenius": float(np.mean(norms) / num_columns), "mse": mse}
