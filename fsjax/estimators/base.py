"""What all estimators share: input checks, one call of ``fsjax.fit``, selection, prediction."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils._tags import ClassifierTags, RegressorTags
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from fsjax import persist
from fsjax.data.dataset import Dataset
from fsjax.data.splits import Split
from fsjax.engine import FitResult, fit
from fsjax.engine.search import usable_gates
from fsjax.errors import ConfigError, DataError, check_whole, nearest
from fsjax.estimators.inputs import check_finite, number_to_select, validation_split
from fsjax.evaluation.stability import consensus, selection_mask
from fsjax.method import Method
from fsjax.methods import METHODS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A column that this share of the seeds leaves open is kept where a method picks its own number.
MAJORITY = 0.5

#: Larger seeds do not fit into PRNG keys.
_SEED_LIMIT = 2**31


def _has_head(estimator: Selector) -> bool:
    if estimator.task == "reconstruction":
        raise AttributeError(
            f"{type(estimator).__name__} with task='reconstruction' selects columns and predicts "
            "nothing; use transform, and a predictor behind it"
        )
    return True


def _classifies(estimator: Selector) -> bool:
    return _has_head(estimator) and estimator.task == "classification"


class Selector(SelectorMixin, BaseEstimator):
    """Base of the estimators; :mod:`fsjax.estimators` makes a class of every method.

    Fitting is one call of :func:`fsjax.fit` on all rows, of which a share validates.

    Attributes:
      method_name: name in ``fsjax.methods.METHODS``.
      method_parameters: the constructor parameters that are the method's own.
      training: further arguments of :func:`fsjax.fit`.
    """

    method_name: ClassVar[str]
    method_parameters: ClassVar[tuple[str, ...]]
    training: ClassVar[dict[str, Any]]

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Trains the method and selects columns.

        Args:
          X: ``(N, D)`` numbers without missing values: an array, or a pandas or polars frame.
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
        weight = self._weights(X, y, sample_weight)
        if weight is not None and not (weight > 0).all():
            kept = weight > 0
            X, y, weight = X[kept], None if y is None else y[kept], weight[kept]
            if self.task == "classification":
                present, y = np.unique(y, return_inverse=True)
                self.classes_, y = self.classes_[present], y.astype(np.int32)
                if len(present) < 2:
                    raise DataError(
                        "y holds one class only in the rows that count; give at least two"
                    )
        seeds = self._seeds()
        dataset, split, weight = self._data(X, y, weight, seeds[0])
        groups = self._groups()
        wanted = self._number_to_select(int(groups.max()) + 1)
        k = 1 if wanted is None else wanted
        method = self._method(wanted)
        options = {**self.training, "num_epochs": self.num_epochs}
        batch_size = len(split.train) if self.batch_size is None else self.batch_size
        result = fit(
            method,
            dataset,
            seeds=seeds,
            task=self.task,
            num_features=k if method.num_features is None else None,
            batch_size=batch_size,
            split=split,
            scaling=self._scaling(),
            sample_weight=weight,
            groups=None if self.groups is None else groups,
            progress=bool(self.verbose),
            **options,
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
        from fsjax.estimators.files import save

        save(self, path)

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
          ConfigError: for another kind.
          DataError: for a path where there is none.
        """
        from fsjax import report  # brings in Matplotlib, which fitting does not need

        check_is_fitted(self, "support_")
        kinds = {
            "selection": report.plot_selection,
            "stability": report.plot_stability,
            "curves": report.plot_curves,
            "path": report.plot_path,
        }
        if kind not in kinds:
            raise ConfigError(f"kind={kind!r}: {nearest(str(kind), kinds)}")
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
            chosen = usable_gates(result.method, result.states) >= 0.5
            own = [row[open_[row]] for row, open_ in zip(result.select(units), chosen, strict=True)]
            count = int((chosen.mean(axis=0) >= MAJORITY).sum())
            kept = max(count, 1)
            result = dataclasses.replace(result, num_features=kept, selected=result.select(kept))
        else:
            chosen, own, count = (
                selection_mask(result.selected, units),
                list(result.selected),
                wanted,
            )
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
        outputs = self._outputs(X)
        if self.task == "classification":
            return self.classes_[_probabilities(outputs).argmax(axis=1)]
        outputs = outputs.mean(axis=0)
        return outputs[:, 0] if self._one_target else outputs

    @available_if(_classifies)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """``(N, classes)`` mean probabilities over the seeds, in the order of ``classes_``."""
        return _probabilities(self._outputs(X))

    @available_if(_has_head)
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy in [0, 1] for classes, R2 for numbers (the mean over several targets)."""
        measure = accuracy_score if self.task == "classification" else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        tags.input_tags.sparse = False
        if self.task == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif self.task == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
            tags.target_tags.multi_output = True
        tags.target_tags.required = self.task != "reconstruction"
        return tags

    def _validate(self, X: ArrayLike, y: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
        """X and y as arrays; for classes, y as their numbers."""
        self._check_task()
        checks = {"ensure_all_finite": False, "ensure_min_samples": 2}
        if self.task == "reconstruction":
            X, y = validate_data(self, X, **checks), None
        else:
            X, y = validate_data(self, X, y, multi_output=self.task == "regression", **checks)
        names = getattr(self, "feature_names_in_", None)
        check_finite(X, names, type(self).__name__)
        if self.task == "classification":
            self._check_classes(y)
            self.classes_, y = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise DataError("y holds one class only; give at least two")
            return X, y.astype(np.int32)
        if self.task == "regression":
            try:
                y = np.asarray(y, np.float32)
            except (TypeError, ValueError):
                raise DataError(
                    "y holds text, but task='regression' needs numbers; "
                    "task='classification' is for labels"
                ) from None
            if not np.isfinite(y).all():
                raise DataError("y has NaN or infinite values; leave these rows out")
            self._one_target = y.ndim == 1
        return X, y

    def _check_classes(self, y: np.ndarray) -> None:
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise DataError(
                f"{error} For numbers choose task='regression' in an estimator that has it."
            ) from None

    def _check_task(self) -> None:
        tasks = METHODS[self.method_name]().tasks
        if self.task not in tasks:
            raise ConfigError(
                f"task={self.task!r} for {type(self).__name__}: {nearest(str(self.task), tasks)}"
            )

    def _weights(
        self, X: np.ndarray, y: np.ndarray | None, sample_weight: ArrayLike | None
    ) -> np.ndarray | None:
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if self.class_weight is None:
            return weight
        if self.task != "classification":
            raise ConfigError(f"class_weight={self.class_weight!r} needs task='classification'")
        if not (self.class_weight == "balanced" or isinstance(self.class_weight, dict)):
            raise ConfigError(
                f"class_weight={self.class_weight!r}; choose 'balanced', a dictionary of a "
                "weight by class, or None"
            )
        by_class = compute_sample_weight(self.class_weight, self.classes_[y])
        return by_class if weight is None else weight * by_class

    def _seeds(self) -> tuple[int, ...]:
        """``random_state``, the next number and so on; drawn where it is no number."""
        count = check_whole("n_seeds", self.n_seeds)
        if isinstance(self.random_state, int | np.integer):
            if not 0 <= self.random_state <= _SEED_LIMIT:
                raise ConfigError(
                    f"random_state={self.random_state}; choose a seed from 0 to {_SEED_LIMIT}"
                )
            return tuple(int(self.random_state) + i for i in range(count))
        first = int(check_random_state(self.random_state).randint(_SEED_LIMIT))
        return tuple(first + i for i in range(count))

    def _data(
        self, X: np.ndarray, y: np.ndarray | None, weight: np.ndarray | None, seed: int
    ) -> tuple[Dataset, Split, np.ndarray | None]:
        """The table, who trains and who validates, and the weights of all rows."""
        rows = len(X)
        if self.validation_data is None:
            classes = y if self.task == "classification" else None
            train, valid = validation_split(rows, self.validation_fraction, seed, classes)
        else:
            X, y, weight = self._with_validation_data(X, y, weight)
            train, valid = np.arange(rows), np.arange(rows, len(X))
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else tuple(map(str, names))
        image_shape = getattr(self, "image_shape", None)
        image_shape = None if image_shape is None else tuple(image_shape)
        dataset = Dataset("table", X, y, feature_names=names, image_shape=image_shape)
        return dataset, Split(train, valid, np.zeros(0, np.int32)), weight

    def _with_validation_data(
        self, X: np.ndarray, y: np.ndarray | None, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        given = self.validation_data
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ConfigError("validation_data is a pair (X, y); y is None for reconstruction")
        X_valid = validate_data(self, given[0], reset=False, ensure_all_finite=False)
        check_finite(X_valid, getattr(self, "feature_names_in_", None), "validation_data")
        if self.task != "reconstruction":
            y_valid = np.asarray(given[1])
            if len(y_valid) != len(X_valid):
                raise DataError(
                    f"validation_data has {len(X_valid)} rows in X but {len(y_valid)} in y"
                )
            if self.task == "classification":
                unknown = np.setdiff1d(y_valid, self.classes_)
                if len(unknown):
                    raise DataError(f"validation_data has classes that y lacks: {unknown[:5]}")
                y_valid = np.searchsorted(self.classes_, y_valid).astype(np.int32)
            y = np.concatenate([y, y_valid.astype(y.dtype)])
        if weight is not None:
            weight = np.concatenate([weight, np.ones(len(X_valid))])
        return np.concatenate([X, X_valid]), y, weight

    def _groups(self) -> np.ndarray:
        """``(D,)`` the number of each column's group; without groups, of the column."""
        columns = self.n_features_in_
        if self.groups is None:
            return np.arange(columns)
        labels = np.asarray(self.groups)
        if labels.shape != (columns,):
            raise ConfigError(
                f"groups has shape {labels.shape}; give a label for each of the {columns} columns"
            )
        return np.unique(labels, return_inverse=True)[1]

    def _number_to_select(self, choices: int) -> int | None:
        if self.n_features_to_select is None and self._picks_its_number():
            return None
        what = "columns" if self.groups is None else "groups"
        return number_to_select(self.n_features_to_select, choices, what)

    def _picks_its_number(self) -> bool:
        """Whether the method has gates, which open for a number of columns of its own."""
        return self._method(None).gates is not None

    def _method(self, num_features: int | None) -> Method:
        build = METHODS[self.method_name]
        settings = {name: getattr(self, name) for name in self.method_parameters}
        if num_features is None:
            if "search" in settings:
                settings["search"] = False
        elif takes_number(self.method_name):
            settings["num_features"] = num_features
        return build(**settings)

    def _scaling(self) -> str:
        if isinstance(self.standardize, str):
            return self.standardize
        return "standard" if self.standardize else "none"

    def _outputs(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self, "support_")
        X = validate_data(self, X, reset=False, ensure_all_finite=False)
        check_finite(X, getattr(self, "feature_names_in_", None), type(self).__name__)
        return self.result_.predict(X)


def takes_number(method_name: str) -> bool:
    """Whether the method is made for a number of columns."""
    return "num_features" in inspect.signature(METHODS[method_name]).parameters


def _probabilities(outputs: np.ndarray) -> np.ndarray:
    """``(S, N, classes)`` logits to their mean probabilities ``(N, classes)``."""
    return softmax(outputs.astype(np.float64), axis=-1).mean(axis=0)
