"""Trains a grid of settings with many seeds: ``python -m experiments.sweep``.

    python -m experiments.sweep --config=configs/wast.py:madelon --workdir=runs/sweep \\
        --sweep=method.sensitivity_weight=0.1,0.4,0.9 --sweep=method.drop_fraction=0.1,0.3 \\
        --config.seeds=0,1,2,3,4

One compiled program trains every pair of a setting and a seed, if the fields are traced numbers;
for fields that change shapes, one program is compiled per value (see ``fsjax.sweep``). Writes
``sweep.csv`` (a row per setting and seed), ``sweep.png`` and ``result.json``, and prints the
setting that is best on the validation rows. The same command resumes after a stop. With
``--cluster=local:2``, or the address of a Dask scheduler, each setting is trained by a worker, in
its own folder below ``cells``.
"""

from experiments.start import start

if __name__ == "__main__":
    start("launch.sweep")
