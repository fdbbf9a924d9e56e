"""Files that fsjax writes and reads again: arrays, results, checkpoints, identities of runs."""
