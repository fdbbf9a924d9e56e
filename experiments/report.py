"""Writes a page about a folder: ``python -m experiments.report --workdir=runs/demo``.

The page, ``report.html``, shows the run in the folder, of any launcher. In a folder whose
subfolders hold runs, it has one table of all of them and a link to the page of each.
"""

from experiments.start import start

if __name__ == "__main__":
    start("launch.report")
