"""Measures speed and memory: ``python -m experiments.benchmark``.

Each case runs in its own process, and its CPU seconds (user and system, over all threads) and peak
memory are measured. ``--cases=text,sweep`` chooses groups of cases; the group ``torch`` is skipped
if PyTorch is not installed. ``BENCHMARKS.md`` lists the numbers measured so far.
"""

from experiments.start import start

if __name__ == "__main__":
    start("benchmarks.cases")
