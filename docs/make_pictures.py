"""Makes the pictures of the documentation: ``python docs/make_pictures.py``. Digits only."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fsjax
from fsjax import methods
from fsjax.data import load
from fsjax.evaluation import nogueira_stability
from fsjax.metrics.stability import selection_mask
from fsjax.report import plot_path, plot_selection, plot_stability, save_figure, style

PICTURES = Path(__file__).parent / "pictures"
K = 10


def main() -> None:
    """All pictures, each from trainings of its own."""
    PICTURES.mkdir(exist_ok=True)
    digits = load("digits")
    selection(digits)
    stability(digits)
    path(digits)
    many(digits)


def selection(digits: fsjax.data.Dataset) -> None:
    """Ten pixels, by ten seeds of IP-CAE."""
    result = fsjax.fit(methods.ip_cae(K), digits, seeds=range(10), num_epochs=100, batch_size=32)
    figure = plot_selection(result, digits.image_shape, background=digits.X.mean(axis=0))
    save_figure(figure, PICTURES / "selection.png")


def stability(digits: fsjax.data.Dataset) -> None:
    """How often the halves of ten pairs agree."""
    result = fsjax.fit_subsamples(
        methods.ip_cae(K, hidden=(64,)), digits, num_pairs=10, num_epochs=40, batch_size=32
    )
    figure = plot_stability(result)
    save_figure(figure, PICTURES / "stability.png")


def path(digits: fsjax.data.Dataset) -> None:
    """LassoNet's way from all pixels down to three; nothing happens before its first lambda."""
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
    """Where nine methods look, five seeds each."""
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
    for place, (method, epochs) in zip(axes.flat, chosen, strict=True):
        result = fsjax.fit(
            method,
            digits,
            seeds=range(5),
            num_features=K,
            num_epochs=epochs,
            batch_size=64,
            # As these papers have it: one mean and one deviation for the whole table.
            scaling="scalar" if method.tasks == ("reconstruction",) else "paper",
        )
        found = nogueira_stability(selection_mask(result.selected, digits.num_features))
        share = result.selection_frequency.reshape(digits.image_shape)
        some = np.where(share > 0, share, np.nan)
        place.set_facecolor("#EEEEEE")
        shown = place.imshow(some, cmap=style.COLORS, vmin=0, vmax=1)
        place.set_title(f"{method.name}, stability {found.value:z.2f}", fontsize=9)
        place.set_xticks([])
        place.set_yticks([])
    bar = figure.colorbar(shown, ax=axes, shrink=0.6)
    bar.set_label("share of five seeds (grey: none)", fontsize=9)
    figure.suptitle("Ten of the 64 pixels of digits, by nine methods", fontsize=10)
    save_figure(figure, PICTURES / "many.png")


if __name__ == "__main__":
    main()
