"""Colours and width of the figures, which pages need without Matplotlib too."""

from typing import Final

#: Colours of Okabe and Ito's palette, which can be distinguished with any colour vision.
BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
GREY: Final = "#5F5F5F"

#: Width of the figures in inches.
WIDTH: Final = 8.0
