"""Compares feature selectors on many tables, and gives a new selector its place.

    python -m experiments.arena --selector=mine.py:select --suite=small
    python -m experiments.arena --workdir=runs/arena --minutes=60

A new selector is a function ``(X, y, k) -> ranking``, an estimator in the sense of scikit-learn, a
``fsjax.Method`` or the registered function that builds it; it runs on the suite's tables and is
rated among the recorded selectors. Each selection runs in a process of its own that holds training
rows only. The rows of ``reproduction/arena.parquet`` are not run again; new ones go to
``rows.parquet`` in the workdir, from which the same command resumes, and ``--publish`` adds them to
the recorded ones and writes the pages of the documentation.
"""

from experiments.start import start

if __name__ == "__main__":
    start("arena.launch")
