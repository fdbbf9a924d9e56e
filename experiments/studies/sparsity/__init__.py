"""Networks that are not of this package made sparse: accuracy, one-shot pruning, inference."""
