"""The figures and claims of the papers: runs, rows of data, verdicts and pictures."""
