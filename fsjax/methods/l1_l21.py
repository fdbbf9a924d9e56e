"""L1_L21 (Liu et al., UAI 2009): logistic regressions of all classes that share few columns."""

from __future__ import annotations

import functools

import numpy as np

from fsjax.arguments import Count, NonNegative
from fsjax.method import Method
from fsjax.methods.shared.fixed_columns import linear_filter
from fsjax.registry import register


def multitask_logistic(
    x: np.ndarray,
    signs: np.ndarray,
    weight: np.ndarray,
    penalty: float = 0.1,
    tolerance: float = 1e-8,
    *,
    relative: bool = False,
    max_steps: int = 1000,
) -> np.ndarray:
    """Minimises ``mean log(1 + exp(-y_nc (x_n W_c + b_c))) + penalty sum_d ||W_d||``.

    The mean is over the weighted rows and the classes. The solver is accelerated proximal gradient
    descent, whose step is shortened until the quadratic bound holds (algorithm 1), and whose
    momentum is given up where the objective rises (O'Donoghue and Candes, 2015). It starts at
    W = 0, with the log-odds of the class frequencies as intercepts.

    Args:
      x: ``(N, D)``.
      signs: ``(N, C)``, 1 where the row belongs to the class and -1 where it does not.
      weight: ``(N,)`` positive weights of the rows.
      penalty: factor of the norms of the columns' weights, at least 0.
      tolerance: the solver stops when the objective changes by less than this, and would do so
        without momentum, too.
      relative: whether ``penalty`` is a share of the smallest factor at which W = 0.
      max_steps: the largest number of steps.

    Returns:
      W, ``(D, C)``.
    """
    mean = weight[:, None] / (weight.sum() * signs.shape[1])
    share = np.clip(weight @ (signs > 0) / weight.sum(), 1e-12, 1 - 1e-12)

    def loss(margin: np.ndarray) -> float:
        return float(np.sum(mean * np.logaddexp(0.0, -margin)))

    def slopes(margin: np.ndarray) -> np.ndarray:
        return x.T @ (-signs * mean / (1 + np.exp(np.minimum(margin, 700.0))))

    kernel = np.zeros((x.shape[1], signs.shape[1]))
    point = np.vstack([kernel, np.log(share / (1 - share))])  # intercepts in the last row
    x = np.column_stack([x, np.ones(len(x))])
    output = x @ point
    if relative:
        # W = 0 is a minimum where no column's gradient is longer than the factor.
        penalty *= float(np.linalg.norm(slopes(signs * output)[:-1], axis=1).max())
    last_point, last_output = point, output
    curvature = 1.0 / signs.size
    momentum, before = 1.0, np.inf
    last_momentum = 0.0
    for _ in range(max_steps):
        # s = w_k + (t_{k-1} - 1) / t_k (w_k - w_{k-1})
        pull = (last_momentum - 1) / momentum
        search = point + pull * (point - last_point)
        margin = signs * (output + pull * (output - last_output))
        value = loss(margin)
        gradient = slopes(margin)
        last_point, last_output = point, output
        while True:
            point = _proximal(search - gradient / curvature, penalty / curvature)
            output = x @ point
            moved = point - search
            squared = np.sum(moved**2) / 2
            current = loss(signs * output)
            excess = current - value - np.sum(moved * gradient)
            if squared <= 1e-20 or excess < squared * curvature:
                break
            curvature = max(2 * curvature, excess / squared)
        objective = current + penalty * np.linalg.norm(point[:-1], axis=1).sum()
        # Where its momentum turns, the objective stands still far from the minimum, too.
        change = max(abs(objective - before), squared * curvature)
        if squared <= 1e-20 or change < tolerance:
            break
        if objective > before:
            momentum = 1.0
        before = objective
        last_momentum, momentum = momentum, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
    return point[:-1]


def _proximal(point: np.ndarray, strength: float) -> np.ndarray:
    """Shortens each row but the last (the intercepts) by ``strength``, at most to length 0."""
    length = np.linalg.norm(point[:-1], axis=1, keepdims=True)
    # max(1 - strength / length, 0), defined also where both are 0.
    shrink = 1.0 - strength / np.maximum(length, max(strength, np.finfo(np.float64).tiny))
    return np.vstack([shrink * point[:-1], point[-1:]])


@register(
    estimator="L1L21",
    paper="Liu et al., UAI 2009",
    optimises="the logistic loss of each class plus a penalty on the norms of the columns' weights",
    small={"max_steps": 100},
)
def l1_l21(
    *,
    penalty: NonNegative = 0.1,
    relative: bool = True,
    tolerance: NonNegative = 1e-8,
    max_steps: Count = 1000,
) -> Method:
    """Logistic regression of each class against the rest, with a group penalty on each column.

    It minimises ``mean log(1 + exp(-y_nc (x_n W_c + b_c))) + penalty sum_d ||W_d||``, where the
    mean is over rows and classes. The score of a column is the norm ``||W_d||`` of its weights.

    The published accuracies on Madelon (WAST, Table 2: 49.33) and COIL-20 are those of the order
    in which NumPy 1.24 leaves equal scores: with scikit-feature's factor of 0.1 all weights are 0
    there, and that order gives 49.50 on Madelon.

    Args:
      penalty: the larger, the fewer columns have non-zero weights; at least 0. Columns whose
        weights are 0 have equal scores.
      relative: whether ``penalty`` is a share of the smallest factor at which all weights are 0,
        which falls with the number of classes (0.28 for the two classes of breast cancer, 0.007 for
        the 26 of ISOLET, standardised); otherwise it is the factor of the norms itself.
      tolerance: the solver stops when the objective changes by less than this. At 1e-3 it often
        stops after a few steps, when the order of columns is that of their gradients at W = 0.
      max_steps: the largest number of steps.

    Returns:
      The method, for classification.
    """
    solve = functools.partial(multitask_logistic, relative=relative, max_steps=max_steps)
    return linear_filter(solve, penalty, tolerance, low=-1.0)
