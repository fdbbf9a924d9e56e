"""Evaluation protocols for selections and trained networks, and metrics of stability and cost.

Examples:
  >>> y, rates = np.array([0, 1, 4]), np.array([0.5, 1.0, 3.5])
  >>> print(fsjax.evaluation.d2_poisson(y, rates))
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
