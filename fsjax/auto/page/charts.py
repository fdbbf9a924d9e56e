"""Matplotlib figures for HTML pages: in light and dark colours, for wide and narrow screens."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape

from fsjax.auto.page.rendering import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours of Okabe and Ito's palette, which can be distinguished with any colour vision.
BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
GREY: Final = "#5F5F5F"

#: Width in inches of a chart on a wide screen.
WIDTH: Final = 8.0

#: Width in inches of a chart on a telephone of 390 pixels.
NARROW: Final = 3.7

#: Colours of charts on a light page, and their replacements on a dark one.
_DARK: Final = {
    "#000000": "#e4e7eb",
    BLUE: "#4ea8de",
    ORANGE: "#f0803c",
    GREEN: "#2fbf94",
    PURPLE: "#e2a0c4",
    GREY: "#a0a7b0",
    "#8B5A2B": "#c49264",
    "#6A3D9A": "#ae8ad9",
    "#B15928": "#dd8a58",
}


def _variable(color: str) -> str:
    return f"--ink-{color.lstrip('#').lower()}"


def _declarations(dark: bool) -> str:
    colors = ((light, other if dark else light) for light, other in _DARK.items())
    return " ".join(f"{_variable(light)}: {color};" for light, color in colors)


#: Declarations of the colours, for light and for dark pages.
COLORS: Final = {"light_colors": _declarations(dark=False), "dark_colors": _declarations(dark=True)}


def chart(draw: Callable[[float], Figure | None], name: str, caption: str) -> Markup:
    """A figure in two widths; the page shows the one that fits the screen.

    Args:
      draw: from a width in inches to the figure, or to ``None`` if there is nothing to draw.
      name: of the figure, unique on the page.
      caption: text above the figure.

    Returns:
      HTML, empty if there is nothing to draw.
    """
    forms = []
    for form, width in (("wide", WIDTH), ("narrow", NARROW)):
        figure = draw(width)
        if figure is None:
            return Markup()
        forms.append((form, themed_svg(figure, f"{name}-{form}", caption)))
    return render("chart.html", caption=caption, forms=forms)


def themed_svg(figure: Figure, name: str, caption: str) -> Markup:
    """A figure as inline SVG without background, with the colours of the page."""
    import matplotlib  # optional

    buffer = io.StringIO()
    # Text stays text, and ids do not change from run to run.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    text = _inline(buffer.getvalue(), name, caption)
    for color in _DARK:
        text = re.sub(f"{color}\\b", f"var({_variable(color)})", text, flags=re.IGNORECASE)
    font = r"font(-family)?: ([^;\"]*?)'DejaVu Sans'[^;\"]*"
    return Markup(re.sub(font, r"font\1: \2sans-serif", text))


def _inline(text: str, name: str, caption: str) -> str:
    """An SVG for embedding in a page: without its head, with ids that are unique on the page."""
    text = re.sub("<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text[text.index("<svg") :])
    return text.replace("<svg", f"<svg role='img' aria-label='{escape(caption)}'", 1)
