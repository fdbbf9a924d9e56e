"""What is written to disk and read again: arrays, results, checkpoints, and what a run is."""
