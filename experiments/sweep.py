"""Many settings and many seeds at once: ``python -m experiments.sweep``.

    python -m experiments.sweep --config=configs/wast.py:madelon --workdir=runs/sweep \\
        --sweep=method.sensitivity_weight=0.1,0.4,0.9 --sweep=method.drop_fraction=0.1,0.3 \\
        --config.seeds=0,1,2,3,4

Every pair of a setting and a seed is a row of one compiled program, where the settings are traced;
those that decide on shapes compile once for each value (:func:`fsjax.sweep`). Leaves ``sweep.csv``,
a row for each setting and seed, ``sweep.png`` and ``result.json``, and names the setting that is
best on the validation rows. The same command goes on after a stop. With ``--cluster=local:2``, or
the address of a Dask scheduler, each setting is a cell on a worker, with a folder below ``cells``.
"""

from experiments.start import start

if __name__ == "__main__":
    start("launch.sweep")
