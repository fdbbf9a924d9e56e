"""What the results mean: the record of a selection, effects of columns, sentences."""
