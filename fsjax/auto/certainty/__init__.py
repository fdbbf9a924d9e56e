"""How sure a selection is: permutations, decoys, halves of the rows, comparisons, leaks."""
