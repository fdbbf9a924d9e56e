"""What ``fsjax select`` answers where the truth is known: the study of docs/selection-study.md.

Each launcher continues the file that it writes. ``noise`` and ``fdr`` ask the command itself, in a
process of its own; ``chance`` and ``comparisons`` call the test and the comparisons alone, on many
small tables.
"""
