"""The embedded protocol: the trained network itself on the test rows, without retraining."""

import numpy as np

from fsjax.tasks import TABLE


def embedded_metrics(task: str, outputs: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Test metrics of the outputs of one seed.

    Args:
      task: one of ``fsjax.tasks.TASKS``.
      outputs: ``(N, C)`` class logits, reconstructions, predictions, logits of labels, logarithms
        of expected counts or of hazard ratios.
      y: ``(N,)`` classes, ``(N, D)`` inputs, ``(N, C)`` targets, or ``(N, 2)`` time and event.

    Returns:
      By name: ``embedded_accuracy`` in percent and, for two classes that both occur, ``auc`` in
      [0, 1]; or ``reconstruction_frobenius``, the mean over rows of ``||x - x_hat||_2 / D``
      (IP-CAE, Table 1), with ``mse``; or ``mse`` and ``r2``; or ``label_accuracy`` and
      ``subset_accuracy`` in percent and ``auc``; or ``poisson_deviance`` and ``d2``; or
      ``concordance_index`` in [0, 1].
    """
    return TABLE[task].test_metrics(outputs, y)
