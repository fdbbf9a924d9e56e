"""Runs several configs and prints one table.

``python -m experiments.compare --configs=configs/ip_cae.py,configs/cae.py --workdir=runs/compare``

Every config may carry its variant, as for ``experiments.run``; ``--set=train.num_epochs=50``
(repeatable) overrides a field in all of them. Below the table, configs that share data set and
task are compared: training delay, where test accuracy was recorded in each epoch, and p-values.
With ``--cluster=local:2``, or the address of a Dask scheduler, each config is a cell on a worker.
"""

from experiments.start import start

if __name__ == "__main__":
    start("launch.compare")
