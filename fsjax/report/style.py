"""What the figures share: colours, sizes and the wording of titles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase

from fsjax.engine.result import FitResult

#: Okabe and Ito's palette: told apart with any colour vision.
BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
GREY: Final = "#5F5F5F"

#: Of maps. Dark means much, and even the lightest colour differs from the greys of a background.
COLORS: Final = "viridis_r"

#: Pixels per inch: the figures are 1200 pixels wide.
DPI: Final = 150
WIDTH: Final = 8.0

#: Longest name that is shown in full.
NAME_LENGTH: Final = 32


def new_figure(height: float, layout: str = "constrained") -> Figure:
    """An empty figure, :data:`WIDTH` by ``height`` inches, drawn without a display."""
    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout=layout, facecolor="white")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    FigureCanvasAgg(figure)
    return figure


def centred(figure: FigureBase, widths: Sequence[float], room: float) -> list[Axes]:
    """Axes side by side in the middle of a figure with constrained layout.

    Args:
      figure: a figure or subfigure.
      widths: of the axes, in inches.
      room: inches that there are for all of them.
    """
    side = max(room - sum(widths), 0.0) / 2
    if not side:
        return list(figure.subplots(1, len(widths), squeeze=False)[0])
    cells = figure.add_gridspec(1, len(widths) + 2, width_ratios=[side, *widths, side])
    return [figure.add_subplot(cells[number]) for number in range(1, len(widths) + 1)]


def title(result: FitResult) -> str:
    """One line: method, data set, K, task and number of seeds."""
    seeds = count(len(result.seeds), "seed")
    return (
        f"{shorten(result.method.name)} on {shorten(result.dataset)}, K = {result.num_features}, "
        f"{result.task}, {seeds}"
    )


def count(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shorten(name: object, length: int = NAME_LENGTH) -> str:
    """A name on one line, with dots in its middle where it is longer than ``length`` characters.

    Both ends stay, because long names of columns often differ only at the end.
    """
    text = " ".join(str(name).split())
    if len(text) <= length:
        return text
    tail = (length - 3) // 2
    return f"{text[: length - 3 - tail]}...{text[len(text) - tail :]}"


def literal(text: str) -> str:
    """Text that Matplotlib shows as it is: a pair of dollar signs would start a formula."""
    return text.replace("$", r"\$")
