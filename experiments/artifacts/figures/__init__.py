"""The figures and tables of single papers, drawn from the rows that the launchers write."""
