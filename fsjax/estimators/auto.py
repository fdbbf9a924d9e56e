"""``AutoSelector``: :func:`fsjax.select` as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from fsjax.auto import Selection, select
from fsjax.auto.page.summary import unsaid_sentences
from fsjax.errors import DataError, check_whole
from fsjax.estimators.base import importance_shares
from fsjax.tables.dataset import default_names
from fsjax.tables.user_arrays import check_row_order

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class AutoSelector(SelectorMixin, BaseEstimator):
    """Selects columns by cross-validation: which method, and how many columns.

    All columns, random ones, simple selectors and networks of the library compete on the rows of
    ``fit``; the fewest columns within one standard error of the best score are kept. See
    :func:`fsjax.select` for the procedure, and for tables with text and dates.

    Args:
      budget: time for ``fit``, for example ``'60s'``, ``'5min'`` or seconds; ``None`` sets no
        limit. What fits into it depends on the machine: for the same result everywhere, name
        ``methods`` that finish well within the budget.
      task: ``'classification'`` or ``'regression'``; by default inferred from y.
      metric: ``'accuracy'``, ``'auc'`` or ``'r2'``, or the name of a scorer of scikit-learn.
      judge: the model that predicts from the selected columns: ``'linear'``, ``'rbf'``,
        ``'trees'``, or an estimator of scikit-learn; by default whichever of the three predicts
        best.
      fdr: false discovery rate in (0, 1) of the selection; by default the fewest columns that
        predict as well as the best are selected.
      methods: names of the contenders, for example ``('univariate', 'l1', 'forest')``.
      random_state: seed of folds, draws and trainings, a whole number from 0.
      verbose: whether to show progress.

    Attributes:
      support_: ``(D,)`` bool, the selected columns.
      n_features_: number of selected columns; all D, with a warning, if nothing is better than
        chance, and also if no smaller selection is as good.
      ranking_: ``(D,)`` from 1, the most important.
      scores_: ``(D,)`` importance by the chosen method; NaN if it gave none or the column is
        constant.
      feature_importances_: ``(D,)`` scores as shares: at least 0, with a sum of 1; NaN becomes 0.
      selection_: the :class:`fsjax.auto.Selection`.
      n_features_in_, feature_names_in_: the columns of ``fit``.

    Examples:
      >>> selector = fsjax.estimators.AutoSelector(budget="20s", methods=("univariate",))
      >>> print(selector.fit(data.X, data.y).get_support())
    """

    def __init__(
        self,
        *,
        budget: str | float | None = "5min",
        task: str | None = None,
        metric: str | None = None,
        judge: Any = None,
        fdr: float | None = None,
        methods: Sequence[str] | None = None,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.budget = budget
        self.task = task
        self.metric = metric
        self.judge = judge
        self.fdr = fdr
        self.methods = methods
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        row_groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Runs the selection on all rows.

        Args:
          X: ``(N, D)`` numbers without missing values, also sparse.
          y: ``(N,)`` labels or numbers, or ``(N, C)`` numbers.
          row_groups: ``(N,)`` labels of rows that stay on one side of each split.
          sample_weight: ``(N,)`` weights of the rows, at least 0; see :func:`fsjax.select`.

        Raises:
          DataError, ConfigError: as :func:`fsjax.select`; both are ValueErrors.
        """
        if y is None:
            raise DataError("AutoSelector requires y to be passed, but the target y is None")
        seed = check_whole("random_state", self.random_state, 0)
        check_row_order(X, y=y, row_groups=row_groups)
        rows, targets = validate_data(
            self, X, y, multi_output=True, dtype="numeric", ensure_min_samples=4,
            ensure_min_features=2, accept_sparse="csr",
        )  # fmt: skip
        weights: dict[str, Any] = {} if sample_weight is None else {"sample_weight": sample_weight}
        names = getattr(self, "feature_names_in_", ())
        labels = _labels(X.columns if isinstance(X, pd.DataFrame) else names, rows.shape[1])
        self.selection_: Selection = select(
            _labelled(rows, labels),
            targets,
            task=self.task,
            metric=self.metric,
            judge=self.judge,
            budget=self.budget,
            fdr=self.fdr,
            methods=self.methods,
            row_groups=row_groups,
            seed=seed,
            progress=self.verbose,
            **weights,
        )
        table = self.selection_.table
        place = {label: number for number, label in enumerate(labels)}
        order = np.array([place[label] for label in table["column"]], int)
        columns = rows.shape[1]
        self.scores_ = np.full(columns, np.nan)
        self.scores_[order] = table["score"]
        self.feature_importances_ = importance_shares(self.scores_)
        rest = np.setdiff1d(np.arange(columns), order)
        self.ranking_ = np.empty(columns, int)
        self.ranking_[np.concatenate([order, rest])] = np.arange(1, columns + 1)
        self.support_ = np.zeros(columns, bool)
        self.support_[[place[label] for label in self.selection_.columns]] = True
        if not self.support_.any():
            verdict = unsaid_sentences(self.selection_)[0]
            warnings.warn(f"no column is selected, so all are kept: {verdict}", stacklevel=2)
            self.support_[:] = True
        self.n_features_ = int(self.support_.sum())
        return self

    def plot(self) -> Figure:
        """Scores by the number of columns for every method; see :meth:`Selection.plot`."""
        check_is_fitted(self, "support_")
        return self.selection_.plot()

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "support_")
        return self.support_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def _labels(names: Iterable[Hashable], number: int) -> list[Hashable]:
    """The names of so many columns; x0, x1, ... where there are none, or where texts are equal."""
    labels = list(names)
    return labels if len(set(map(str, labels))) == number else list(default_names(number))


def _labelled(rows: Any, labels: Sequence[Hashable]) -> Any:
    """The numbers as a frame, unless they have the names that :func:`select` gives them."""
    if list(labels) == list(default_names(len(labels))):
        return rows
    columns = pd.Index(labels, tupleize_cols=False)
    if sp.issparse(rows):
        return pd.DataFrame.sparse.from_spmatrix(rows, columns=columns)
    return pd.DataFrame(rows, columns=columns)
