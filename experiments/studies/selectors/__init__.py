"""The parts of the comparison of selectors: tables, selectors, judges, ranks and pictures."""
