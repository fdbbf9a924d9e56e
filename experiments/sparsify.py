"""Compares sparse networks with the dense network (BinMask, section 4.2, Figure 2).

    python -m experiments.sparsify --config=configs/sparsify.py:mnist,lenet5 \\
        --workdir=runs/sparsify/mnist-lenet5

trains the dense network, BinMask on its weights at every strength (lambda), and ProbMask at the
sparsities that BinMask reached; prints how many points of accuracy each of them loses; and writes
``sparsity.csv``, ``layers.csv``, ``accuracy_sparsity.png``, ``layer_sparsity.png``,
``config.json`` and ``result.json``. The same command resumes with the settings that are missing.
"""

from experiments.start import start

if __name__ == "__main__":
    start("studies.sparsify")
