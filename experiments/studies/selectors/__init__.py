"""Parts of the comparison of selectors: tables, rivals, judges, ranks and their picture."""
