"""The papers' tables, cell by cell: ``python -m experiments.reproduce --workdir=runs/papers``.

    python -m experiments.reproduce --paper=wast --tables=2,5 --datasets=madelon,coil20 --plan
    python -m experiments.reproduce --paper=ctre --seeds=3 --minutes=60 --workdir=runs/papers

The cheapest runs come first. Finished runs are read, an interrupted one continues from its
checkpoint, and after ``--minutes`` the launcher stops until the same command is given again.
``--cluster=local:2``, or the address of a Dask scheduler, trains on workers. ``--plan`` trains
nothing and prints the runs, their cells and their cost. ``--methods`` also takes your own, as
``my_file:my_method``. Results go to ``reproduction/results.csv`` and onto the page
``docs/reproduction.md``; the reason why a cell disagrees comes from ``reproduction/reasons.toml``.
"""

from experiments.start import start

if __name__ == "__main__":
    start("papers.reproduce")
