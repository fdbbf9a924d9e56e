"""Speed and memory: ``python -m experiments.benchmark``.

Each case runs in a process of its own, whose CPU seconds (user and system, of all threads) and peak
memory are measured. ``--cases=text,sweep`` chooses groups of cases; ``torch`` is left out where
PyTorch is not installed. ``BENCHMARKS.md`` has the numbers measured so far.
"""

from experiments.start import start

if __name__ == "__main__":
    start("benchmarks.cases")
