"""How a selection was done: the table of facts at the end of the page."""

from __future__ import annotations

import math
from typing import Final

from fsjax.auto.answer.selection_record import SelectionRecord
from fsjax.auto.contest.method_names import in_words
from fsjax.auto.contest.scoring import metric_named
from fsjax.auto.reading.column_operations import FEW
from fsjax.report.wording import count

#: Names of the judges that are tried.
_JUDGES: Final = {"linear": "linear model", "rbf": "RBF kernel", "trees": "boosted trees"}


def how_it_was_done(selection: SelectionRecord) -> dict[str, str]:
    """Rows, folds, judge, rule, permutations and decoys, by name."""
    facts, metric = selection.facts, metric_named(selection.metric, selection.task)
    rounds = f", {facts.rounds} rounds" if facts.rounds > 1 else ""
    sparse = {}
    if facts.nonzeros is not None:
        share = facts.nonzeros / facts.rows / facts.columns_offered
        sparse["nonzero values"] = f"{facts.nonzeros:,} ({100 * share:.2g} %)"
    importance = in_words(facts.decoy_statistic)
    values = {
        "rows": _rows(selection),
        "columns to choose from": facts.columns_offered,
        **sparse,
        "task": selection.task,
        "score": metric.label,
        "cross-validation": f"{facts.folds} folds{rounds}, selection within the training rows",
        "judge (model that predicts)": _judge(selection),
        "rule": ("fewest" if selection.costs is None else "cheapest")
        + " columns within one standard error of the best score, paired over the folds"
        + (f", and at most {metric.margin:g} behind it" if math.isfinite(metric.margin) else ""),
        "permutation test": f"{facts.permutations} permutations of the target, of which "
        f"{facts.as_good} are predicted as well as the target",
        "decoys": f"{count(facts.decoy_sets, 'set')}, importance by {importance}"
        if facts.decoy_sets
        else "none",
        "seconds": selection.seconds,
        "seed": facts.seed,
        "version": facts.version,
    }
    return {name: str(value) for name, value in values.items()}


def _rows(selection: SelectionRecord) -> str:
    """The number of rows, and the number on which methods were compared if that is smaller."""
    rows, compared = selection.facts.rows, selection.facts.rows_compared
    fewer = f"; methods were compared on {compared:,} of them" if compared < rows else ""
    return f"{rows:,}{fewer}"


def _judge(selection: SelectionRecord) -> str:
    """The model that predicts from the columns, and the models that it was chosen from."""
    facts = selection.facts
    tried = {name: score for name, score in facts.judges_tried.items() if score is not None}
    metric = metric_named(selection.metric, selection.task)
    scores = ", ".join(f"{_JUDGES[name]} {metric.show(score)}" for name, score in tried.items())
    chosen = f" (cross-validated: {scores}; each fold has the best on its training rows)"
    chosen = chosen if scores else ""
    wide = facts.nonzeros is not None and facts.columns_offered > FEW
    return selection.judge + chosen + ("; from all columns a linear model" if wide else "")
