"""What all estimators share: one call of ``fsjax.fit``, selection, prediction."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fsjax.engine.choose import MAJORITY
from fsjax.engine.compilation import cache_by_default
from fsjax.engine.fit import fit
from fsjax.engine.result import FitResult
from fsjax.engine.stability import consensus, selection_mask
from fsjax.errors import ConfigError, check_choice, check_flag, check_whole, nearest
from fsjax.estimators import inputs
from fsjax.estimators.packing import check_parameters, pack
from fsjax.estimators.reading import Reader
from fsjax.method import Method
from fsjax.registry import METHODS, about_of
from fsjax.storage import npz, results
from fsjax.tables.sparse import has_sparse_columns
from fsjax.tables.user_arrays import check_row_order
from fsjax.tasks import COUPLED_BATCH, name_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def _has_head(estimator: Selector) -> bool:
    entry = estimator._entry
    task = f" with task={estimator.task!r}" if entry.outputs.score is None else ""
    if task or not estimator._predicts():
        raise AttributeError(
            f"{type(estimator).__name__}{task} selects columns and predicts nothing; use "
            "transform, followed by a predictor"
        )
    return True


def _has_probabilities(estimator: Selector) -> bool:
    return _has_head(estimator) and estimator._entry.outputs.probabilities is not None


def _available(check: Callable[[Selector], bool]) -> Callable[[F], F]:
    """scikit-learn's ``available_if`` for a type checker: the method keeps its type."""
    return available_if(check)


def _present(function: Callable[P, R] | None) -> Callable[P, R]:
    """A function of the task, which :func:`_available` has checked to exist."""
    assert function is not None
    return function


def importance_shares(scores: np.ndarray) -> np.ndarray:
    """Scores ``(D,)`` as shares: at least 0, with a sum of 1.

    NaN and negative infinity count as 0, infinity as the largest finite score.
    """
    scores = scores.astype(np.float64)
    known = np.isfinite(scores)
    lowest, highest = (of(scores, where=known, initial=0.0) for of in (np.min, np.max))
    above = np.where(known, scores, np.where(scores == np.inf, highest, lowest)) - lowest
    total = above.sum()
    return above / total if total > 0 else above


class Selector(SelectorMixin, Reader):
    """Base of the estimators; :mod:`fsjax.estimators` has a subclass for every method.

    Fitting is one call of :func:`fsjax.fit` on all rows, of which a share validates. If
    ``__sklearn_tags__().input_tags.sparse`` is true, X may be sparse in ``fit``, ``transform``,
    ``predict``, ``predict_proba``, ``predict_log_proba``, ``decision_function`` and ``score``.

    Attributes:
      support_: ``(D,)`` bool, the selected columns.
      n_features_: number of selected columns.
      selected_: for each seed its own columns, in order of importance.
      selection_frequency_: ``(D,)`` share of the seeds, in [0, 1], that selected each column.
      scores_: ``(D,)`` importance of every column, the mean over the seeds.
      feature_importances_: ``(D,)`` scores as shares: at least 0, with a sum of 1. If scores are
        negative, the lowest becomes 0. All 0 if all scores are equal.
      ranking_: ``(D,)`` from 1, the most important; selected columns come first.
      history_: recorded values by name, ``(n_seeds, epochs)``.
      n_iter_: number of trained epochs, for a search those of the training that was kept; 0 for
        methods that do not train.
      result_: the :class:`fsjax.FitResult`.
      classes_: the labels, for classification; for multilabel ``(L, 2)``, 0 and 1 for each label.
      n_features_in_, feature_names_in_: the columns of ``fit``.
    """

    support_: np.ndarray
    n_features_: int
    selected_: list[np.ndarray]
    selection_frequency_: np.ndarray
    scores_: np.ndarray
    feature_importances_: np.ndarray
    ranking_: np.ndarray
    history_: dict[str, np.ndarray]
    n_iter_: int
    result_: FitResult

    #: Whether the method chose the number of columns itself.
    own_number_: bool

    if TYPE_CHECKING:  # every class has an ``__init__`` of its own, made from its registration

        def __init__(
            self, n_features_to_select: float | None = None, **parameters: Any
        ) -> None: ...

    def fit(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Trains the method and selects columns.

        Args:
          X: ``(N, D)`` numbers without missing values: an array, a pandas or polars frame, or, for
            methods that train in batches, a SciPy sparse matrix or array or a pandas frame with
            sparse columns, of which only batches are made dense.
          y: ``(N,)`` labels of any kind for ``task='classification'``, ``(N,)`` or ``(N, C)``
            numbers for ``'regression'``, ``(N, L)`` of 0 and 1 for ``'multilabel'``, ``(N,)`` or
            ``(N, C)`` whole numbers from 0 for ``'counts'``; for ``'survival'`` ``(N, 2)``, time
            and event (a frame of these columns in this order, or records with a field of truth
            values and one of times); ignored for ``'reconstruction'``.
          sample_weight: ``(N,)`` weights in the loss, at least 0; rows of weight 0 are left out.
            Inputs and targets are scaled by the mean and deviation of the rows without weights, so
            that a row of weight 2 is not in all respects two rows.

        Returns:
          The estimator.

        Raises:
          ConfigError: for a parameter outside its range.
          DataError: for data that cannot be used; both are ValueErrors. After any error, the
            estimator is as it was before.
        """
        before = dict(self.__dict__)
        try:
            self._fit(X, y, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(self, X: ArrayLike, y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        entry = self._entry
        cache_by_default()
        continues = check_flag("warm_start", self.warm_start) and hasattr(self, "result_")
        known = {name: self.__dict__.pop(name, None) for name in (*inputs.LABELS, "_target")}
        rows, targets, weight = self._rows(X, y, sample_weight)
        if continues:
            inputs.check_labels(known, self.__dict__)
        batch_size = self.batch_size
        if (
            entry.objective.coupled
            and batch_size is not None
            and batch_size == self.registration.batch_size
        ):
            batch_size = COUPLED_BATCH
        # Drawn if random_state is not a number; the other seeds are the next numbers.
        count, first = check_whole("n_seeds", self.n_seeds), inputs.first_seed(self.random_state)
        dataset, split, weight = self._data(rows, targets, weight, first)
        fixed = dict(self.registration.training)
        early_stopping, default = self.early_stopping, fixed.pop("early_stopping", None)
        if early_stopping is not None and not len(split.valid):
            if early_stopping != default:
                raise ConfigError(
                    f"early_stopping={early_stopping!r} needs rows to validate on; choose a "
                    "validation_fraction above 0, or early_stopping=None"
                )
            early_stopping = None
        group_labels = getattr(self, "groups", None)
        groups = inputs.numbers_of_groups(group_labels, self.n_features_in_)
        wanted = self._number_to_select(int(groups.max()) + 1)
        method = self._method(wanted)
        result = fit(
            method,
            dataset,
            seeds=range(first, first + count),
            task=self.task,
            num_features=wanted if method.about.num_features is None else None,
            batch_size=batch_size,
            split=split,
            scaling=inputs.scaling_of(self.standardize),
            sample_weight=weight,
            groups=None if group_labels is None else groups,
            progress=check_flag("verbose", self.verbose),
            early_stopping=early_stopping,
            max_time=self.max_time,
            callback=self.callback,
            keep_partial=self.keep_partial,
            start=self.result_ if continues else None,
            **{**fixed, "num_epochs": self.num_epochs},
        )
        self._learn(result, wanted, groups)

    def save(self, path: str | Path) -> None:
        """Writes the fitted estimator into one file without pickle; see :func:`load`.

        The file does not contain ``validation_data``.

        Raises:
          NotFittedError: before ``fit``.
          ConfigError: for parameters that JSON cannot hold, such as a random generator, and for
            arguments of the method that were changed since ``fit``.
        """
        check_is_fitted(self, "support_")
        check_parameters(self, self.result_)
        npz.write(path, *pack(self))

    def plot(self, kind: str = "selection", **options: Any) -> Figure:
        """A figure of the fitted result; notebooks show it, ``savefig`` writes it to a file.

        Args:
          kind: ``'selection'``, how often each column was selected, and its score;
            ``'stability'``, the agreement of the seeds; ``'curves'``, the training; ``'path'``, for
            LassoNet, accuracy and number of columns by the penalty lambda.
          **options: those of ``fsjax.report.plot_selection`` (for example ``image_shape`` and
            ``background``), ``plot_stability``, ``plot_curves`` or ``plot_path``.

        Raises:
          NotFittedError: before ``fit``.
          ConfigError: for an unknown kind or option.
          DataError: for ``'path'`` if the result has none.
        """
        from fsjax import report  # imports Matplotlib, which fitting does not need

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
            # The functions of a method cannot be pickled; its name and settings can.
            state = {**state, "result_": results.pack(state["result_"])}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "result_" in state:
            name_of(state["task"])  # imports the module of a registered task that names it
            state = {**state, "result_": results.unpack(*state["result_"])}
        super().__setstate__(state)

    def _learn(self, result: FitResult, wanted: int | None, groups: np.ndarray) -> None:
        """Sets the fitted attributes for all columns, from a result whose units are groups."""
        units = result.scores.shape[1]
        by_seed: Iterable[np.ndarray] = result.selected
        if wanted is None:
            assert result.gates is not None  # only such methods choose the number themselves
            chosen = result.gates >= 0.5
            by_seed = [row[open_[row]] for row, open_ in zip(result.ranking, chosen, strict=True)]
            count = int((chosen.mean(axis=0) >= MAJORITY).sum())
        else:
            chosen, count = selection_mask(result.selected, units), wanted
        # Sorted by the number of seeds that selected them, so the first have a majority.
        order = consensus(chosen, result.scores, units)
        support, ranking = np.zeros(units, bool), np.empty(units, int)
        support[order[:count]] = True
        ranking[order] = np.arange(1, units + 1)
        self.result_, self.support_ = result, support[groups]
        self.selected_ = [result.columns_of(units_of_seed) for units_of_seed in by_seed]
        self.own_number_ = wanted is None
        self.scores_ = np.mean(result.scores, axis=0)[groups]
        self.feature_importances_ = importance_shares(self.scores_)
        self.ranking_ = ranking[groups]
        self.selection_frequency_ = chosen.mean(axis=0)[groups]
        self.n_features_ = int(self.support_.sum())
        self.history_ = {name: np.asarray(values) for name, values in result.history.items()}
        self.n_iter_ = max((values.shape[1] for values in self.history_.values()), default=0)

    def transform(self, X: ArrayLike) -> Any:
        """The selected columns of ``(N, D)`` rows, in the order of the table; sparse if X is."""
        if has_sparse_columns(X):
            # scikit-learn would make a frame dense if any of its columns is dense.
            check_is_fitted(self, "support_")
            return self._table(X, reset=False, ensure_all_finite=False)[:, self.support_]
        return super().transform(X)

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "support_")
        return self.support_

    @_available(_has_head)
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predictions for ``(N, D)`` rows, averaged over the networks of all seeds.

        The network of a method that selects during training sees the columns that its own seed
        selected; that of a method that ranks columns (the sparse classifiers, ProbMask) sees all.
        The predicted class has the largest mean probability, predicted labels one of at least a
        half; numbers and expected counts are means.

        Returns:
          ``(N,)`` or, for several targets, ``(N, C)``: classes, numbers, or expected counts; for
          ``'multilabel'`` ``(N, L)`` of 0 and 1; for ``'survival'`` ``(N,)`` logarithms of hazard
          ratios, larger for earlier events.
        """
        entry = self._entry
        predicted = entry.outputs.estimate(self._outputs(X))
        if entry.target.classes:
            return self.classes_[predicted]
        one_output = entry.outputs.one_output
        if self._has_units:
            mean, deviation = self._target
            predicted, one_output = predicted * deviation + mean, np.ndim(mean) == 0
        return predicted[:, 0] if one_output else predicted

    @_available(_has_probabilities)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Mean probabilities over the seeds: ``(N, classes)`` in the order of ``classes_``, or
        ``(N, L)`` of the labels.
        """
        return _present(self._entry.outputs.probabilities)(self._outputs(X)).mean(axis=0)

    @_available(_has_probabilities)
    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """Natural logarithms of :meth:`predict_proba`, of the same shape and always finite."""
        return _present(self._entry.outputs.log_probabilities)(self._outputs(X))

    @_available(_has_probabilities)
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Confidence scores of the classes, from the mean probabilities over the seeds.

        Returns:
          ``(N,)`` log-odds of ``classes_[1]`` for two classes, above 0 if it is predicted;
          ``(N, classes)`` logarithms of the probabilities for more, the largest for the predicted
          class; for ``'multilabel'`` ``(N, L)`` log-odds of the labels.
        """
        return _present(self._entry.outputs.decision)(self._outputs(X))

    @_available(_has_head)
    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Score of the predictions, larger is better.

        Accuracy in [0, 1] for classes, R2 for numbers (the mean over several targets), the share of
        rows whose labels are all correct for multilabel, D2 of the Poisson deviance for counts,
        Harrell's concordance index in [0, 1] for survival.
        """
        entry = self._entry
        check_row_order(X, y=y, sample_weight=sample_weight)
        targets = y if entry.target.classes else entry.target.read(y)[0]
        return float(
            _present(entry.outputs.score)(targets, self.predict(X), sample_weight=sample_weight)
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        entry = self._entry
        tags.input_tags.sparse = about_of(self.registration).sparse
        tags.target_tags.required = entry.target.supervised
        if not self._predicts():
            return tags
        tags.estimator_type = entry.outputs.estimator_type
        if entry.outputs.estimator_type == "classifier":
            tags.classifier_tags = ClassifierTags(multi_label=not entry.target.classes)
        elif entry.outputs.estimator_type == "regressor":
            tags.regressor_tags = RegressorTags()
        tags.target_tags.multi_output = entry.target.multi_output and entry.target.supervised
        tags.target_tags.positive_only = entry.target.positive_only
        return tags

    def _number_to_select(self, choices: int) -> int | None:
        if self.n_features_to_select is None and self._method(1).about.gates:
            return None
        what = "columns" if getattr(self, "groups", None) is None else "groups"
        return inputs.number_to_select(self.n_features_to_select, choices, what)

    def _method(self, num_features: int | None) -> Method:
        """The method for a number of columns, or its own number if ``None``."""
        settings = {name: getattr(self, name) for name in self.registration.defaults()}
        if num_features is not None and self.registration.takes_number:
            settings["num_features"] = num_features
        return METHODS[self.registration.name](**settings)

    def _predicts(self) -> bool:
        try:
            return self._method(1).predict is not None
        except ConfigError:  # reported by fit
            return True

    def _outputs(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self, "support_")
        if (trained := self.result_.task) != name_of(self.task):
            raise ConfigError(
                f"task={self.task!r}, but the network was trained with {trained!r}; fit again, or "
                "set it back"
            )
        rows = self._table(X, reset=False, ensure_all_finite=False)
        inputs.check_finite(rows, self)
        return self.result_.predict(rows)
