"""Runs the examples for the gallery: ``python docs/make_examples.py [names]``, about two minutes.

Their printed output and plots are stored with the pages, so that building the site trains nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes

from fsjax.report import save_figure, style

EXAMPLES = Path(__file__).parents[1] / "examples"
OUTPUT = Path(__file__).parent / "examples" / "output"


def main(names: list[str]) -> None:
    """Run the examples with these names; all by default."""
    OUTPUT.mkdir(exist_ok=True)
    sys.path.insert(0, str(EXAMPLES))
    for name in names or sorted(path.stem for path in EXAMPLES.glob("*.py")):
        printed = io.StringIO()
        with contextlib.chdir(OUTPUT), contextlib.redirect_stdout(printed):
            results = importlib.import_module(name).main()
        (OUTPUT / f"{name}.txt").write_text(printed.getvalue())
        if name in PICTURES:
            PICTURES[name](results)


def sparse_cnn(results: Mapping[str, tuple[float, float]]) -> None:
    """Plot the accuracy and share of zeros of both networks; the example itself draws nothing."""
    figure = style.new_figure(3.2)
    left, right = figure.subplots(1, 2)
    names = list(results)
    bars(left, names, [accuracy for accuracy, _ in results.values()], "test accuracy (%)")
    bars(right, names, [zeros for _, zeros in results.values()], "weights that are 0 (%)")
    save_figure(figure, OUTPUT / "sparse_cnn.png")


def binmask_cnn(results: Mapping[float, tuple[float, Mapping[str, float]]]) -> None:
    """Plot the accuracy and the share of masks that the penalty closed."""
    figure = style.new_figure(3.2)
    left, right = figure.subplots(1, 2)
    names = [f"lambda {strength:g}" for strength in results]
    bars(left, names, [accuracy for accuracy, _ in results.values()], "test accuracy (%)")
    closed = results[max(results)][1]
    bars(right, list(closed), list(closed.values()), f"closed masks (%), {names[-1]}")
    save_figure(figure, OUTPUT / "binmask_cnn.png")


def bars(axes: Axes, names: list[str], shares: list[float], title: str) -> None:
    """Draw a labelled bar for each name, in percent, from 0 to 100."""
    rectangles = axes.bar(names, [100 * share for share in shares], 0.6, color=style.BLUE)
    axes.bar_label(rectangles, fmt="%.0f", padding=2)
    axes.set_title(title, fontsize=10)
    axes.set_ylim(0, 110)
    axes.set_yticks(range(0, 101, 25))
    axes.tick_params(labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)


#: How to plot the examples that do not save a picture themselves.
PICTURES = {"sparse_cnn": sparse_cnn, "binmask_cnn": binmask_cnn}

if __name__ == "__main__":
    main(sys.argv[1:])
