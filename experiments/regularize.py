"""Compares regularizers of a network by AUC and weight norms (BinMask, section 4.3, Table 1).

    python -m experiments.regularize --config=configs/regularize.py:ehr_like \
        --workdir=runs/regularize

For every method and strength, eight trials with splits and weights of their own. The folder gets
``regularization.csv``, ``table.txt``, ``regularization.png`` and ``config.json``. The command goes
on where it was stopped: strengths whose rows are in ``regularization.csv`` are not trained again.
"""

from experiments.start import start

if __name__ == "__main__":
    start("studies.regularize")
