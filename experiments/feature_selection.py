"""Compares selectors by networks retrained on their columns (BinMask, section 4.1, Figure 1).

    python -m experiments.feature_selection --config=configs/feature_selection.py:isolet \\
        --workdir=runs/feature_selection/isolet
    python -m experiments.feature_selection --workdir=runs/feature_selection

The first command selects columns with every method at five sizes, trains a new classifier on the
selected columns of every trial, and writes ``accuracy.csv`` and ``accuracy.png``; the same command
resumes with the methods that are missing. The second command, without a config, draws all data
sets in the subfolders of a folder in one picture and prints their means.
"""

from experiments.start import start

if __name__ == "__main__":
    start("studies.feature_selection")
