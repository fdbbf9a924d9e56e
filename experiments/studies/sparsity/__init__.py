"""Studies of sparse training on standard networks: accuracy, one-shot pruning, inference."""
