"""Ridge Cox regression, the linear model that judges columns of survival tables.

Cox, "Regression models and life-tables", JRSS B 34, 1972; ties as Breslow (1974) or Efron (1977).
"""

from __future__ import annotations

import warnings
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from fsjax.arguments import Count, NonNegative, Positive, check
from fsjax.errors import ConfigError, DataError, check_choice
from fsjax.tasks.output_metrics import survival_score
from fsjax.tasks.targets import check_survival, read_survival

#: Treatments of events with the same time.
TIES = ("efron", "breslow")


class CoxRegression(BaseEstimator):
    """Minimises ``-l(beta) + alpha / 2 ||beta||^2``, where l is the log partial likelihood.

    ``exp(x beta)`` is the hazard of a row relative to other rows. Newton's method in a trust
    region; time and memory grow with ``N D^2`` and ``N D``.

    Args:
      alpha: ridge penalty, at least 0. If it is 0, coefficients are not bounded where the columns
        predict the order of all events.
      ties: ``'efron'``, the better approximation for many events with the same time, or
        ``'breslow'``.
      tol: tolerance, above 0: the norm of the gradient per event, for standardised columns, at
        which the optimisation ends.
      max_iter: maximum number of steps, at least 1.

    Attributes:
      coef_: ``(D,)``, per unit of each column; 0 for constant columns.
      mean_: ``(D,)``, the means of the columns; a row at the mean has the risk 0.
      n_iter_: number of steps.
      n_features_in_, feature_names_in_: the columns of ``fit``.

    Examples:
      >>> rng = np.random.default_rng(0)
      >>> X = rng.normal(size=(80, 3))
      >>> # time, event
      >>> survival = np.column_stack([rng.exponential(np.exp(-X[:, 0])), np.ones(80)])
      >>> model = fsjax.evaluation.CoxRegression().fit(X, survival)
      >>> print(fsjax.evaluation.concordance_index(*survival.T, model.predict(X)))
    """

    def __init__(
        self, alpha: float = 1.0, *, ties: str = "efron", tol: float = 1e-8, max_iter: int = 100
    ) -> None:
        self.alpha = alpha
        self.ties = ties
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the coefficients.

        Args:
          X: ``(N, D)`` numbers.
          y: ``(N, 2)`` time and event, or records or a frame of these.

        Raises:
          ConfigError: for a parameter outside its range, or if alpha is too small to bound the
            coefficients.
          DataError: if y is not a survival target.

        Warns:
          ConvergenceWarning: if ``max_iter`` steps do not reach ``tol``.
        """
        check(NonNegative, alpha=self.alpha)
        check(Positive, tol=self.tol)
        check(Count, max_iter=self.max_iter)
        check_choice("ties", self.ties, TIES)
        if y is None:
            raise DataError("y is None; give (N, 2), time and event")
        rows, targets = validate_data(
            self, X, read_survival(y)[0], multi_output=True, dtype=np.float64
        )
        targets, _ = check_survival(targets, None, "y")
        self.mean_, deviation = rows.mean(axis=0), rows.std(axis=0)
        deviation = np.where(deviation > 1e-12 * np.abs(self.mean_), deviation, np.inf)
        table = _sorted((rows - self.mean_) / deviation, targets, self.ties)
        # alpha / 2 beta^2 in units of the standardised columns; constant ones stay at 0.
        ridge = self.alpha / np.square(deviation)
        events = targets[:, 1].sum()

        def value(beta: np.ndarray) -> tuple[float, np.ndarray]:
            loss, slope, _ = partial_likelihood(table, beta)
            return (loss + ridge @ beta**2 / 2) / events, (slope + ridge * beta) / events

        def curvature(beta: np.ndarray) -> np.ndarray:
            return (partial_likelihood(table, beta)[2] + np.diag(ridge)) / events

        minimum = minimize(
            value,
            np.zeros(rows.shape[1]),
            jac=True,
            hess=curvature,
            method="trust-exact",
            options={"gtol": self.tol, "maxiter": int(self.max_iter)},
        )
        if not np.isfinite(minimum.x).all():
            raise ConfigError(
                f"alpha={self.alpha} does not bound the coefficients; choose a larger one"
            )
        if minimum.nit >= self.max_iter and not minimum.success:
            warnings.warn(
                f"no minimum after max_iter={self.max_iter} steps (the gradient per event is "
                f"{np.linalg.norm(minimum.jac):.2g}, tol={self.tol}); raise max_iter",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_, self.n_iter_ = minimum.x / deviation, int(minimum.nit)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Log hazard ratios ``(N,)`` relative to a row at the mean; larger for earlier events."""
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return (rows - self.mean_) @ self.coef_

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Harrell's concordance index in [0, 1]."""
        return survival_score(read_survival(y)[0], self.predict(X), sample_weight)


class _RiskSets(NamedTuple):
    """Rows sorted from the longest time to the shortest.

    Attributes:
      x: ``(N, D)`` standardised columns.
      at_risk: ``(N,)``, the number of rows at risk at the time of each row, which are the first.
      event: ``(E,)``, the numbers of the rows with an event.
      tie: ``(E,)``, the number of the event time of each.
      share: ``(E,)``, the share of the events at the same time that come before each.
    """

    x: np.ndarray
    at_risk: np.ndarray
    event: np.ndarray
    tie: np.ndarray
    share: np.ndarray


def _sorted(x: np.ndarray, y: np.ndarray, ties: str) -> _RiskSets:
    order = np.argsort(-y[:, 0], kind="stable")
    time, x = y[order, 0], x[order]
    event = np.flatnonzero(y[order, 1] > 0)
    _, tie, counts = np.unique(-time[event], return_inverse=True, return_counts=True)
    # 0, 1 / d, ... (d - 1) / d of the d events of a time (Efron), or 0 (Breslow).
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    share = (np.arange(len(event)) - first[tie]) / counts[tie]
    if ties == "breslow":
        share = np.zeros(len(event))
    return _RiskSets(x, np.searchsorted(-time, -time, side="right"), event, tie, share)


def partial_likelihood(table: _RiskSets, beta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """``-l(beta)``, its gradient ``(D,)`` and its Hessian ``(D, D)``."""
    x, at_risk, event, tie, share = table
    linear = x @ beta
    # A shift cancels in the ratios.
    weight = np.exp(linear - linear.max())
    last = at_risk[event] - 1
    died = np.bincount(tie, weight[event])[tie]
    risk = np.cumsum(weight)[last] - share * died
    weighted = weight[:, None] * x
    sums = np.zeros((tie.max() + 1, x.shape[1]))
    np.add.at(sums, tie, weighted[event])
    means = (np.cumsum(weighted, axis=0)[last] - share[:, None] * sums[tie]) / risk[:, None]
    loss = float(np.sum(np.log(risk) + linear.max() - linear[event]))
    slope = means.sum(axis=0) - x[event].sum(axis=0)
    # For each row, the sum of 1 / risk over the risk sets that contain it.
    entered = np.bincount(last, 1.0 / risk, minlength=len(x))
    often = np.cumsum(entered[::-1])[::-1]
    often[event] -= np.bincount(tie, share / risk)[tie]
    hessian = (weighted * often[:, None]).T @ x - means.T @ means
    return loss, slope, hessian
