"""What ``fsjax select`` answers where the truth is known: the study of docs/selection-study.md.

Each launcher asks the command itself, in a process of its own, and continues the file that it
writes: ``held_out`` (tables of others), ``noise``, ``sizes`` and ``fdr``.
"""
