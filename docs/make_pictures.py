"""Makes the pictures of the documentation, from digits: ``python docs/make_pictures.py``.

``report.png`` is a picture of the first page of a report in a browser: the levels of the data set
``mice_protein`` as a CSV file with the columns ``mouse`` and ``class``, then

    fsjax select mice_protein.csv --target=class --groups=mouse --budget=5min
    chromium --headless --hide-scrollbars --force-device-scale-factor=1.5 --window-size=900,1500 \\
        --screenshot=report.png mice_protein-selection/report.html

cut below the first chart.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fsjax
from fsjax import methods
from fsjax.data import load
from fsjax.engine.stability import selection_mask
from fsjax.evaluation import nogueira_stability
from fsjax.report import plot_path, plot_selection, plot_stability, save_figure, style

PICTURES = Path(__file__).parent / "pictures"
K = 10


def main() -> None:
    """Make all pictures, each from its own training runs."""
    PICTURES.mkdir(exist_ok=True)
    digits = load("digits")
    selection(digits)
    stability(digits)
    path(digits)
    many(digits)


def selection(digits: fsjax.data.Dataset) -> None:
    """Plot the ten pixels that each of ten seeds of IP-CAE selects."""
    result = fsjax.fit(methods.ip_cae(K), digits, seeds=range(10), num_epochs=100, batch_size=32)
    figure = plot_selection(result, digits.image_shape, background=digits.X.mean(axis=0))
    save_figure(figure, PICTURES / "selection.png")


def stability(digits: fsjax.data.Dataset) -> None:
    """Plot the selection frequency over ten pairs of complementary halves."""
    result = fsjax.fit_subsamples(
        methods.ip_cae(K, hidden=(64,)), digits, num_pairs=10, num_epochs=40, batch_size=32
    )
    figure = plot_stability(result)
    save_figure(figure, PICTURES / "stability.png")


def path(digits: fsjax.data.Dataset) -> None:
    """Plot LassoNet's path from all pixels to three; smaller first lambdas remove no pixel."""
    method = methods.lassonet(
        K,
        hidden=(32,),
        until=3,
        dense_epochs=200,
        dense_patience=20,
        path_start=25.0,
        path_multiplier=1.05,
    )
    result = fsjax.fit(method, digits, num_epochs=20_000, batch_size=10_000, shuffle=False)
    save_figure(plot_path(result), PICTURES / "path.png")


def many(digits: fsjax.data.Dataset) -> None:
    """Plot which pixels nine methods select, with five seeds each."""
    sparse = {"hidden": (100, 100), "epsilon": 5.0}
    chosen = (
        (methods.ip_cae(K), 40),
        (methods.cae(K), 40),
        (methods.wast(sensitivity_weight=0.4), 10),
        (methods.quick_selection(), 20),
        (methods.ctre_sim(**sparse), 30),
        (methods.set(**sparse), 30),
        (methods.binmask(search=False), 40),
        (methods.fisher_score(K), 2),
        (methods.random_selection(K), 2),
    )
    figure = style.new_figure(7.2)
    axes = figure.subplots(3, 3)
    for panel, (method, epochs) in zip(axes.flat, chosen, strict=True):
        result = fsjax.fit(
            method,
            digits,
            seeds=range(5),
            num_features=K,
            num_epochs=epochs,
            batch_size=64,
            # As in these papers: one mean and one standard deviation for the whole table.
            scaling="scalar" if method.about.tasks == ("reconstruction",) else "paper",
        )
        agreement = nogueira_stability(selection_mask(result.selected, digits.num_features))
        frequency = result.selection_frequency.reshape(digits.image_shape)
        positive = np.where(frequency > 0, frequency, np.nan)
        panel.set_facecolor("#EEEEEE")
        image = panel.imshow(positive, cmap=style.COLORS, vmin=0, vmax=1)
        panel.set_title(f"{method.name}, stability {agreement.value:z.2f}", fontsize=9)
        panel.set_xticks([])
        panel.set_yticks([])
    bar = figure.colorbar(image, ax=axes, shrink=0.6)
    bar.set_label("share of five seeds (grey: none)", fontsize=9)
    figure.suptitle("Ten of the 64 pixels of digits, selected by nine methods", fontsize=10)
    save_figure(figure, PICTURES / "many.png")


if __name__ == "__main__":
    main()
