"""What is written to disk and read again: arrays, checkpoints, what a run is, and results."""
