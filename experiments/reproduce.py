"""Reproduces the papers' tables: ``python -m experiments.reproduce --workdir=runs/papers``.

    python -m experiments.reproduce --paper=wast --tables=2,5 --datasets=madelon,coil20 --plan
    python -m experiments.reproduce --paper=ctre --seeds=3 --minutes=60 --workdir=runs/papers
    python -m experiments.reproduce --verify=20 --minutes=30 --workdir=runs/papers
    python -m experiments.reproduce --only_fewer --seeds=3 --minutes=60 --workdir=runs/papers

Runs with the least CPU time per cell come first. The launcher stops after ``--minutes``; the same
command then resumes: it reads finished runs and continues an interrupted one from its checkpoint.
``--plan`` trains nothing and prints the runs, their cells and their cost. ``--methods`` also
accepts methods of your own, as ``my_file:my_method``. ``--cluster=local:2``, or the address of a
Dask scheduler, trains on workers. Results are written to ``reproduction/results.csv`` and the page
``docs/reproduction.md``; ``reproduction/reasons.toml`` explains cells that disagree with the paper.
``--verify`` runs recorded cells again with other seeds (``reproduction/verification.csv``), and
``--only_fewer`` adds seeds to recorded cells that have fewer than ``--seeds``.
"""

from experiments.start import start

if __name__ == "__main__":
    start("papers.reproduce")
