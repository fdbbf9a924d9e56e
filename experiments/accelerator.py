"""Checks and measures an accelerator: ``python -m experiments.accelerator --minutes=12``.

All methods are trained there and on the CPU, and their selections are compared. Then come the time
of a step with 1, 10 and 100 seeds in one program (and with PyTorch, where it is installed), the
operations of a step, networks for images, pruned networks, and single operations.

Every measurement is a row of ``rows.csv`` in ``--workdir``, with the name of the device. The same
command resumes with the measurements that are missing, so that an accelerator may be lent in
pieces. ``--size=tiny`` is for tests on a CPU.
"""

from experiments.start import start

if __name__ == "__main__":
    start("benchmarks.accelerator.launcher")
