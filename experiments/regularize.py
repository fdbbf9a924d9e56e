"""Compares regularizers of a network by AUC and weight norms (BinMask, section 4.3, Table 1).

    python -m experiments.regularize --config=configs/regularize.py:ehr_like \\
        --workdir=runs/regularize

Trains every method at every strength in eight trials, each with its own split and initial weights.
Writes ``regularization.csv``, ``table.txt``, ``regularization.png`` and ``config.json``. The same
command resumes: strengths whose rows are in ``regularization.csv`` are not trained again.
"""

from experiments.start import start

if __name__ == "__main__":
    start("studies.regularize")
