"""Evaluation protocols for selections and trained networks, and metrics of stability and cost.

Examples:
  >>> y, rates = np.array([0, 1, 4]), np.array([0.5, 1.0, 3.5])
  >>> print(fsjax.evaluation.d2_poisson(y, rates))

  Columns that a model needs beside all others:

  >>> from sklearn.linear_model import LogisticRegression
  >>> X, X_test, y, y_test = data.X[:60], data.X[60:], data.y[:60], data.y[60:]
  >>> model = LogisticRegression().fit(X, y)
  >>> drawn_anew = fsjax.evaluation.conditional_importance(model, X, X_test, y_test)
  >>> left_out = fsjax.evaluation.loco_importance(model, X, y, X_test, y_test)
  >>> assert isinstance(drawn_anew, fsjax.evaluation.ImportanceTest)
  >>> print(drawn_anew.p_values, left_out.q_values)
"""

from fsjax.engine.stability import (
    Stability,
    complementary_pairs,
    consensus,
    nogueira_stability,
    selection_frequency,
    selection_mask,
    stability_metrics,
)
from fsjax.evaluation.conditional import (
    ImportanceTest,
    conditional_importance,
    loco_importance,
)
from fsjax.evaluation.cox import CoxRegression
from fsjax.evaluation.protocols import PROTOCOLS, check_protocols, embedded_metrics, evaluate
from fsjax.evaluation.retrain import retrain_metrics
from fsjax.evaluation.sampling import SAMPLE_ROWS, sampled_rows
from fsjax.evaluation.svm import svm_accuracy
from fsjax.sparsity.summary import count_connections, training_flops
from fsjax.tasks.concordance import concordance_index
from fsjax.tasks.output_metrics import d2_poisson

__all__ = [
    "PROTOCOLS",
    "SAMPLE_ROWS",
    "CoxRegression",
    "ImportanceTest",
    "Stability",
    "check_protocols",
    "complementary_pairs",
    "concordance_index",
    "conditional_importance",
    "consensus",
    "count_connections",
    "d2_poisson",
    "embedded_metrics",
    "evaluate",
    "loco_importance",
    "nogueira_stability",
    "retrain_metrics",
    "sampled_rows",
    "selection_frequency",
    "selection_mask",
    "stability_metrics",
    "svm_accuracy",
    "training_flops",
]
