"""What all estimators share: input checks, one call of ``fsjax.fit``, selection, prediction."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import issparse, vstack
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from fsjax import container, persist
from fsjax.data.dataset import Dataset
from fsjax.data.sparse import as_csr, has_sparse_columns
from fsjax.data.splits import Split
from fsjax.engine import FitResult, fit
from fsjax.engine.compilation import cache_by_default
from fsjax.engine.planned import MAJORITY
from fsjax.errors import ConfigError, DataError, check_choice, check_flag, check_whole, nearest
from fsjax.estimators import inputs
from fsjax.estimators.packing import pack
from fsjax.method import Method
from fsjax.metrics.stability import consensus, selection_mask
from fsjax.registry import METHODS, Registration, about_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: More different numbers in y than both are hardly classes.
MANY_CLASSES, MANY_SHARE = 30, 0.2


def _has_head(estimator: Selector) -> bool:
    task = " with task='reconstruction'" if estimator.task == "reconstruction" else ""
    if task or not estimator._predicts():
        raise AttributeError(
            f"{type(estimator).__name__}{task} selects columns and predicts nothing; use "
            "transform, and a predictor behind it"
        )
    return True


def _classifies(estimator: Selector) -> bool:
    return _has_head(estimator) and estimator.task == "classification"


class Selector(SelectorMixin, BaseEstimator):
    """Base of the estimators; :mod:`fsjax.estimators` makes a class of every method.

    Fitting is one call of :func:`fsjax.fit` on all rows, of which a share validates. X may be
    sparse where ``__sklearn_tags__().input_tags.sparse`` says so, in ``fit``, ``transform``,
    ``predict``, ``predict_proba`` and ``score``.

    Attributes:
      support_: ``(D,)`` bool, the selected columns.
      n_features_: how many they are.
      selected_: for each seed its own columns, in order of importance.
      selection_frequency_: ``(D,)`` share of the seeds, in [0, 1], that selected each column.
      scores_: ``(D,)`` importance of every column, the mean over the seeds.
      ranking_: ``(D,)`` from 1, the most important; the selection comes first.
      history_: recorded values by name, ``(n_seeds, epochs)``.
      result_: the :class:`fsjax.FitResult`.
      classes_: the labels, for classification.
      n_features_in_, feature_names_in_: the columns of ``fit``.
    """

    #: What is known of the method.
    registration: ClassVar[Registration]

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Trains the method and selects columns.

        Args:
          X: ``(N, D)`` numbers without missing values: an array, a pandas or polars frame, or for
            methods that train by batches a SciPy sparse matrix or array, or a pandas frame with
            sparse columns. Of a sparse table only batches are made dense.
          y: ``(N,)`` labels of any kind for ``task='classification'``, ``(N,)`` or ``(N, C)``
            numbers for ``'regression'``; not looked at for ``'reconstruction'``.
          sample_weight: ``(N,)`` weights in the loss, at least 0; rows of weight 0 are left out.

        Returns:
          The estimator.

        Raises:
          ConfigError: for a parameter outside its range.
          DataError: for data that cannot be used; both are ValueErrors.
        """
        X, y = self._validate(X, y)
        cache_by_default()
        weight = self._weights(X, y, sample_weight)
        if weight is not None and not (weight > 0).all():
            kept = weight > 0
            X, y, weight = X[kept], None if y is None else y[kept], weight[kept]
            if self.task == "classification":
                y = self._numbered(self.classes_[y], " in the rows that count")
        if self.task == "regression":
            self._target = inputs.target_scale(y, inputs.scaling_of(self.standardize) != "none")
            y = self._scaled(y)
        # Drawn where random_state is no number; the other seeds are the next numbers.
        count, first = check_whole("n_seeds", self.n_seeds), inputs.first_seed(self.random_state)
        dataset, split, weight = self._data(X, y, weight, first)
        grouped = getattr(self, "groups", None)
        groups = inputs.group_numbers(grouped, self.n_features_in_)
        wanted = self._number_to_select(int(groups.max()) + 1)
        method = self._method(wanted)
        result = fit(
            method,
            dataset,
            seeds=range(first, first + count),
            task=self.task,
            num_features=wanted if method.about.num_features is None else None,
            batch_size=self.batch_size,
            split=split,
            scaling=inputs.scaling_of(self.standardize),
            sample_weight=weight,
            groups=None if grouped is None else groups,
            progress=check_flag("verbose", self.verbose),
            **{**self.registration.training, "num_epochs": self.num_epochs},
        )
        self._learn(result, wanted, groups)
        return self

    def save(self, path: str | Path) -> None:
        """Writes the fitted estimator into one file without pickle; see :func:`load`.

        ``validation_data`` is not part of it.

        Raises:
          NotFittedError: before ``fit``.
          ConfigError: for parameters that JSON does not hold, such as a random generator.
        """
        check_is_fitted(self, "support_")
        container.write(path, *pack(self))

    def plot(self, kind: str = "selection", **options: Any) -> Figure:
        """A picture of what was learnt; notebooks show it, ``savefig`` writes it to a file.

        Args:
          kind: ``'selection'``, how often each column was selected, and its score;
            ``'stability'``, how far the seeds agree; ``'curves'``, the training; ``'path'``, of
            LassoNet, accuracy and number of columns by the strength of the penalty.
          **options: those of ``fsjax.report.plot_selection`` (such as ``image_shape`` and
            ``background``), ``plot_stability``, ``plot_curves`` or ``plot_path``.

        Raises:
          NotFittedError: before ``fit``.
          ConfigError: for another kind or option.
          DataError: for a path where there is none.
        """
        from fsjax import report  # brings in Matplotlib, which fitting does not need

        check_is_fitted(self, "support_")
        names = ("selection", "stability", "curves", "path")
        kinds = {name: getattr(report, f"plot_{name}") for name in names}
        check_choice("kind", kind, kinds)
        known = list(inspect.signature(kinds[kind]).parameters)[1:]
        for name in options:
            if name not in known:
                raise ConfigError(f"plot({kind!r}) has no option {name!r}: {nearest(name, known)}")
        shape = getattr(self, "image_shape", None)
        if kind == "selection" and shape is not None:
            options = {"image_shape": tuple(shape), **options}
        return kinds[kind](self.result_, **options)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "result_" in state:
            # The functions of a method do not pickle; its name and settings do.
            state = {**state, "result_": persist.pack(state["result_"])}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "result_" in state:
            state = {**state, "result_": persist.unpack(*state["result_"])}
        super().__setstate__(state)

    def _learn(self, result: FitResult, wanted: int | None, groups: np.ndarray) -> None:
        """Sets what is learnt from a result, which is about groups, for their columns."""
        units = result.scores.shape[1]
        if wanted is None:
            chosen = result.gates >= 0.5
            own = [row[open_[row]] for row, open_ in zip(result.ranking, chosen, strict=True)]
            count = int((chosen.mean(axis=0) >= MAJORITY).sum())
        else:
            chosen, own, count = selection_mask(result.selected, units), result.selected, wanted
        # By how many seeds selected them, so the first are those of a majority as well.
        order = consensus(chosen, result.scores, units)
        support, ranking = np.zeros(units, bool), np.empty(units, int)
        support[order[:count]] = True
        ranking[order] = np.arange(1, units + 1)
        self.result_, self.support_ = result, support[groups]
        self.selected_ = [result.columns_of(one) for one in own]
        self.own_number_ = wanted is None
        self.scores_ = np.mean(result.scores, axis=0)[groups]
        self.ranking_ = ranking[groups]
        self.selection_frequency_ = chosen.mean(axis=0)[groups]
        self.n_features_ = int(self.support_.sum())
        self.history_ = {name: np.asarray(values) for name, values in result.history.items()}

    def transform(self, X: ArrayLike) -> Any:
        """The selected columns of ``(N, D)`` rows, in the order of the table; sparse if X is."""
        if has_sparse_columns(X):
            # scikit-learn would make frames dense that have a dense column too.
            check_is_fitted(self, "support_")
            return self._table(X, reset=False, ensure_all_finite=False)[:, self.support_]
        return super().transform(X)

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "support_")
        return self.support_

    @available_if(_has_head)
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Classes or numbers for ``(N, D)`` rows, by the networks of all seeds together.

        Networks of methods that select as they train see what their own seed selected; those of
        methods that rank columns (the sparse classifiers, ProbMask) see all of them. Classes have
        the largest mean probability; numbers are means.

        Returns:
          ``(N,)`` or, for several targets, ``(N, C)``.
        """
        if self.task == "classification":
            likeliest = self.predict_proba(X).argmax(axis=1)
            return self.classes_[likeliest]
        outputs = self._outputs(X)
        mean, deviation = self._target
        outputs = outputs.mean(axis=0) * deviation + mean
        return outputs if np.ndim(mean) else outputs[:, 0]

    @available_if(_classifies)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """``(N, classes)`` mean probabilities over the seeds, in the order of ``classes_``."""
        return softmax(self._outputs(X).astype(np.float64), axis=-1).mean(axis=0)

    @available_if(_has_head)
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy in [0, 1] for classes, R2 for numbers (the mean over several targets)."""
        measure = accuracy_score if self.task == "classification" else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = about_of(self.registration).sparse
        tags.target_tags.required = self.task != "reconstruction"
        task = self.task if self._predicts() else None
        if task == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif task == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
            tags.target_tags.multi_output = True
        return tags

    def _validate(self, X: ArrayLike, y: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
        """X and y as arrays; for classes, y as their numbers."""
        tasks, name = about_of(self.registration).tasks, type(self).__name__
        if self.task not in tasks:
            raise ConfigError(f"task={self.task!r} for {name}: {nearest(str(self.task), tasks)}")
        inputs.check_frame(X)
        checks = {"ensure_all_finite": False, "ensure_min_samples": 2}
        if self.task == "reconstruction":
            X, y = self._table(X, **checks), None
        else:
            X, y = self._table(X, y=y, multi_output=self.task == "regression", **checks)
        inputs.check_finite(X, self)
        if self.task == "classification":
            if y.dtype == object and pd.isna(y).any():
                raise DataError("y has missing labels; leave these rows out")
            try:
                check_classification_targets(y)
            except ValueError as error:
                advice = "For numbers choose task='regression' in an estimator that has it."
                raise DataError(f"{error} {advice}") from None
            y = self._numbered(y)
            few, most = max(MANY_CLASSES, len(y) * MANY_SHARE), len(y) / 2
            # Above half of the rows scikit-learn warns.
            if self.classes_.dtype.kind in "fiu" and few < len(self.classes_) <= most:
                warnings.warn(
                    f"y holds {len(self.classes_)} different numbers in {len(y)} rows, each of "
                    "which becomes a class; for numbers choose task='regression'",
                    stacklevel=3,
                )
        if self.task == "regression":
            try:
                y = np.asarray(y, np.float64)
            except (TypeError, ValueError):
                raise DataError(
                    "y holds text, but task='regression' needs numbers; "
                    "task='classification' is for labels"
                ) from None
            if not np.isfinite(y).all():
                raise DataError("y has NaN or infinite values; leave these rows out")
        return X, y

    def _table(self, X: ArrayLike, reset: bool = True, **options: Any) -> Any:
        """``validate_data``; what is sparse stays so, as CSR, where the method takes it."""
        sparse = issparse(X) or has_sparse_columns(X)
        if not sparse or not about_of(self.registration).sparse:
            return validate_data(self, X, reset=reset, **options)
        # Names first: they are gone once a frame is a matrix.
        validate_data(self, X, reset=reset, skip_check_array=True)
        check = check_X_y if "y" in options else check_array
        return check(as_csr(X), accept_sparse="csr", estimator=self, **options)

    def _numbered(self, y: np.ndarray, where: str = "") -> np.ndarray:
        """The numbers of the labels that occur, which become the classes."""
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(f"y holds one class only{where}; give at least two")
        return numbers.astype(np.int32)

    def _scaled(self, y: np.ndarray) -> np.ndarray:
        """Targets as the network is to predict them."""
        mean, deviation = self._target
        return ((y - mean) / deviation).astype(np.float32)

    def _weights(
        self, X: np.ndarray, y: np.ndarray | None, sample_weight: ArrayLike | None
    ) -> np.ndarray | None:
        weight = None
        if sample_weight is not None:
            try:
                weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            except (TypeError, ValueError) as error:
                raise DataError(f"sample_weight: {error}; give a number for each row") from None
        if self.class_weight is None:
            return weight
        if self.task != "classification":
            raise ConfigError(f"class_weight={self.class_weight!r} needs task='classification'")
        by_class = inputs.class_weights(self.class_weight, self.classes_, y)
        return by_class if weight is None else weight * by_class

    def _data(
        self, X: np.ndarray, y: np.ndarray | None, weight: np.ndarray | None, seed: int
    ) -> tuple[Dataset, Split, np.ndarray | None]:
        """The table, who trains and who validates, and the weights of all rows."""
        rows = X.shape[0]
        if self.validation_data is None:
            classes = y if self.task == "classification" else None
            train, valid = inputs.validation_split(rows, self.validation_fraction, seed, classes)
        else:
            X, y, weight = self._with_validation_data(X, y, weight)
            train, valid = np.arange(rows), np.arange(rows, X.shape[0])
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else tuple(map(str, names))
        shape = inputs.shape_of_images(getattr(self, "image_shape", None), self.n_features_in_)
        dataset = Dataset("table", X, y, feature_names=names, image_shape=shape)
        return dataset, Split(train, valid, np.zeros(0, np.int32)), weight

    def _with_validation_data(
        self, X: np.ndarray, y: np.ndarray | None, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        given = self.validation_data
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ConfigError("validation_data is a pair (X, y); y is None for reconstruction")
        try:
            X_valid = self._table(given[0], reset=False, ensure_all_finite=False)
        except ValueError as error:
            raise DataError(f"validation_data: {error}") from None
        if issparse(X_valid) != issparse(X):
            raise DataError(
                "of X and validation_data one is sparse; give both sparse or both dense"
            )
        inputs.check_finite(X_valid, self, "validation_data")
        if self.task != "reconstruction":
            y_valid = np.asarray(given[1])
            if y_valid.shape[:1] != X_valid.shape[:1]:
                raise DataError(
                    f"validation_data has {X_valid.shape[0]} rows in X and a y of shape "
                    f"{y_valid.shape}; give one target for each row"
                )
            if self.task == "classification":
                unknown = np.setdiff1d(y_valid, self.classes_)
                if len(unknown):
                    raise DataError(f"validation_data has classes that y lacks: {unknown[:5]}")
                y_valid = np.searchsorted(self.classes_, y_valid).astype(np.int32)
            else:
                y_valid = self._scaled(y_valid.astype(np.float64).reshape(-1, *y.shape[1:]))
            y = np.concatenate([y, y_valid.astype(y.dtype)])
        if weight is not None:
            weight = np.concatenate([weight, np.ones(X_valid.shape[0])])
        join = vstack if issparse(X) else np.concatenate
        return join([X, X_valid]), y, weight

    def _number_to_select(self, choices: int) -> int | None:
        if self.n_features_to_select is None and self._method(1).about.gates:
            return None
        what = "columns" if getattr(self, "groups", None) is None else "groups"
        return inputs.number_to_select(self.n_features_to_select, choices, what)

    def _method(self, num_features: int | None) -> Method:
        """The method for a number of columns; ``None`` leaves it to the method."""
        settings = {name: getattr(self, name) for name in self.registration.defaults()}
        if num_features is not None and self.registration.takes_number:
            settings["num_features"] = num_features
        return METHODS[self.registration.name](**settings)

    def _predicts(self) -> bool:
        try:
            return self._method(1).predict is not None
        except ConfigError:  # told by fit
            return True

    def _outputs(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self, "support_")
        X = self._table(X, reset=False, ensure_all_finite=False)
        inputs.check_finite(X, self)
        return self.result_.predict(X)
