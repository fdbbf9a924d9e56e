"""The figures and tables of single papers, from the rows that the launchers leave."""
