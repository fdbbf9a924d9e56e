"""The contenders under cross-validation: folds, rankings, judge, scores, budget, and the rule."""
