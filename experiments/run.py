"""Runs one experiment: ``python -m experiments.run --config=configs/ip_cae.py --workdir=runs/a``.

A colon and a variant may follow the file, as in ``--config=configs/ip_cae.py:coil20,quick``: a
data set, a task and ``quick``, in any order. Any field can be overridden:
``--config.num_features=25``, ``--config.seeds=1,2,3``, or, for your own table,
``--config.data.name=table.csv --config.data.target=label``.
"""

from experiments.start import start

if __name__ == "__main__":
    start("launch.run")
