"""Reproduces the papers' figures and claims: ``python -m experiments.figures --figure=wast/5``.

    python -m experiments.figures --list
    python -m experiments.figures --figure=wast --minutes=20 --workdir=runs/figures
    python -m experiments.figures --figure=wast/5,binmask/3 --workdir=runs/figures

``--figure`` names papers, or single figures and claims of ``reproduction/figures.toml``. A job that
is finished is kept in the workdir, so that the same command resumes after ``--minutes``. The rows
go to ``reproduction/figures/``; ``python docs/make_figures.py`` draws them and writes
``docs/figures.md``.
"""

from experiments.start import start

if __name__ == "__main__":
    start("papers.figures.launch")
