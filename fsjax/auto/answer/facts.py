"""Further numbers of a selection: rows, folds, permutations, decoys and what was left out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """Numbers behind a selection, as ``selection.json`` has them.

    Attributes:
      rows, rows_compared: of the table, and those on which methods were compared.
      columns_offered, columns_left_out: to choose from, and others of the table.
      classes: their names, or ``None``.
      row_groups: whether rows belong to groups.
      folds, rounds: of cross-validation.
      judge_name: of the model that predicts best in cross-validation.
      judges_tried: scores of the models that it was chosen from, ``None`` where one failed; each
        fold has the one that predicts best within its training rows.
      permutations, as_good: of the target, and those that are predicted as well as it is.
      permutation_p_value: ``None`` without permutations.
      folds_p_value: one-sided, of the score of the whole procedure over its folds.
      halves: of the rows, on which the selection was repeated.
      decoy_sets, decoy_statistic: their number, and the method whose importance is compared.
      methods_left_out: why methods did not take part, by name.
      best_method, best_num_features, best_score, standard_error: of the best score.
      kept: labels of the columns that are always selected.
      nonzeros: values that a sparse table stores, ``None`` for a dense one.
      seed: of the selection.
      version: of fsjax.
    """

    rows: int
    rows_compared: int
    columns_offered: int
    columns_left_out: int
    classes: Sequence[str] | None
    row_groups: bool
    folds: int
    rounds: int
    judge_name: str
    judges_tried: Mapping[str, float | None]
    permutations: int
    as_good: int
    permutation_p_value: float | None
    folds_p_value: float
    halves: int
    decoy_sets: int
    decoy_statistic: str
    methods_left_out: Mapping[str, str]
    best_method: str
    best_num_features: int
    best_score: float
    standard_error: float
    kept: Sequence[Hashable] = ()
    nonzeros: int | None = None
    seed: int = 0
    version: str = ""
