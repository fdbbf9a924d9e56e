"""Runs several configs and prints one table.

``python -m experiments.compare --configs=configs/ip_cae.py,configs/cae.py --workdir=runs/compare``

Each config may have a variant after a colon, as for ``experiments.run``; the repeatable flag
``--set=train.num_epochs=50`` overrides a field in all of them. Configs with the same data set and
task are compared below the table by p-values and, if test accuracy was recorded in each epoch, by
training delay. With ``--cluster=local:2``, or the address of a Dask scheduler, each config is
trained by a worker.
"""

from experiments.start import start

if __name__ == "__main__":
    start("launch.compare")
