"""Writes files in place of pictures and pages, to save the time of drawing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure

from experiments.launch import experiment as launch
from fsjax.storage.atomic_files import write_text


@contextmanager
def plain_pictures() -> Iterator[None]:
    """Within the block nothing is drawn, which takes most of the time of a quick run."""

    def save_figure(figure: Figure, path: Path) -> None:
        plt.close(figure)
        write_text(path, path.name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch.report, "save_figure", save_figure)
        patch.setattr(
            launch.artifacts, "write_report", lambda f: write_text(f / "report.html", "-")
        )
        yield
