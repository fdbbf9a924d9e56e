"""A page for a folder of runs: ``python -m experiments.report --workdir=runs/demo``.

Writes ``report.html`` into the folder of a run of any launcher, or into a folder of such folders,
where it has one table of all of them and links to the page of each.
"""

from experiments.start import start

if __name__ == "__main__":
    start("launch.report")
