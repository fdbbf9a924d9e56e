"""Makes the pictures of the methods' pages: ``python -m docs.make_method_pictures``.

They use the data set digits and small networks, and take a few minutes in total.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import fsjax
from experiments.artifacts.figures.sparsity import plot_layer_sparsity
from fsjax import methods
from fsjax.data import load
from fsjax.report import plot_selection, save_figure, style
from fsjax.sparsity import layer_sparsity, probmask

PICTURES = Path(__file__).parent / "pictures"
SEEDS = range(5)
K = 10
COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.GREY)


def main() -> None:
    """Make all pictures, each from its own training runs."""
    PICTURES.mkdir(exist_ok=True)
    digits = load("digits")
    for draw in (concrete, wast, ctre, sparse, gates, masks, baselines):
        save_figure(draw(digits), PICTURES / f"{draw.__name__}.png")


def concrete(digits: fsjax.data.Dataset) -> Figure:
    """Plot how many distinct columns CAE and IP-CAE pick, and their validation accuracy."""
    options = {"seeds": SEEDS, "num_epochs": 200, "batch_size": 32}
    results = {
        "IP-CAE": fsjax.fit(methods.ip_cae(K), digits, **options),
        "CAE": fsjax.fit(methods.cae(K), digits, **options),
    }
    figure = style.new_figure(3.0)
    left, right = figure.subplots(1, 2)
    _lines(left, results, "train/unique_percentage", "distinct picks (%)")
    _lines(right, results, "valid/accuracy", "validation accuracy (%)")
    figure.suptitle(f"{K} of 64 pixels of digits, five seeds", fontsize=10)
    return figure


def wast(digits: fsjax.data.Dataset) -> Figure:
    """Plot which pixels WAST selects."""
    method = methods.wast(sensitivity_weight=0.4)
    result = fsjax.fit(method, digits, seeds=SEEDS, num_features=K, num_epochs=10, scaling="scalar")
    return plot_selection(result, digits.image_shape, background=digits.X.mean(axis=0))


def ctre(digits: fsjax.data.Dataset) -> Figure:
    """Compare growth between similar neurons with random growth, at very few connections."""
    return _networks(digits, ("ctre_sim", "ctre_seq", "set"), epsilon=0.5)


def sparse(digits: fsjax.data.Dataset) -> Figure:
    """Compare sparse networks that move their connections with those that do not."""
    return _networks(digits, ("set", "rigl", "snip", "static_sparse", "dense"), epsilon=3.0)


def gates(digits: fsjax.data.Dataset) -> Figure:
    """Plot open gates and accuracy against the regularization strength."""
    strengths = {
        "BinMask": (methods.binmask, 10.0 ** np.arange(-4, -1.4, 0.5)),
        "STG": (methods.stg, 10.0 ** np.arange(-2, 1.1, 0.5)),
    }
    figure = style.new_figure(4.6)
    axes = figure.subplots(2, 2, sharex="col", sharey="row")
    for column, (name, (build, values)) in enumerate(strengths.items()):
        measurements = []
        for strength in values:
            result = fsjax.fit(
                build(strength=float(strength), search=False),
                digits,
                seeds=SEEDS,
                num_features=1,
                num_epochs=60,
                batch_size=128,
            )
            num_open = result.history["train/num_selected"][:, -1]
            measurements.append((num_open, result.metrics["embedded_accuracy"]))
        labels = ("open gates", "test accuracy (%)")
        for row, (label, measured) in enumerate(
            zip(labels, np.swapaxes(measurements, 0, 1), strict=True)
        ):
            _band(axes[row, column], values, measured.T, COLORS[column], "")
            axes[row, column].set_xscale("log")
            if column == 0:
                axes[row, column].set_ylabel(label, fontsize=9)
        axes[0, column].set_title(name, fontsize=10)
        axes[1, column].set_xlabel("regularization strength, λ", fontsize=9)
    figure.suptitle("digits, 64 gates, five seeds", fontsize=10)
    return figure


def masks(digits: fsjax.data.Dataset) -> Figure:
    """Plot in which layers ProbMask and BinMask keep weights, at about equal sparsity."""
    network = {"hidden": (100, 100), "activation": "relu"}
    options = {"seeds": SEEDS, "num_features": K, "num_epochs": 100, "batch_size": 64}
    by_probability = fsjax.fit(methods.probmask(density=0.085, **network), digits, **options)
    binary = fsjax.fit(
        methods.binmask(masked="weights", strength=3e-4, **network), digits, **options
    )
    probabilities = by_probability.states.params.probabilities
    rows = _layer_rows("ProbMask", by_probability, probabilities, probmask.layer_sparsity)
    rows += _layer_rows("BinMask", binary, binary.states.params.latents, layer_sparsity)
    return plot_layer_sparsity(rows)


def baselines(digits: fsjax.data.Dataset) -> Figure:
    """Plot the score of every pixel by a filter, a plain network and at random."""
    chosen = {
        "Fisher score": methods.fisher_score(K),
        "plain network": methods.neural_network(),
        "random selection, seed 0": methods.random_selection(K),
    }
    figure = style.new_figure(2.9)
    for axes, (name, method) in zip(figure.subplots(1, 3), chosen.items(), strict=True):
        result = fsjax.fit(method, digits, num_features=K, num_epochs=30, batch_size=64)
        scores = result.scores[0].reshape(digits.image_shape)
        axes.imshow(scores, cmap=style.COLORS)
        y, x = np.unravel_index(result.selected[0], digits.image_shape)
        axes.scatter(x, y, s=26, facecolors="none", edgecolors="white", linewidths=1.3)
        axes.set_title(name, fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
        figure.suptitle("Scores of the 64 pixels (dark: high); circles: the best ten", fontsize=10)
    return figure


def _networks(digits: fsjax.data.Dataset, names: Sequence[str], epsilon: float) -> Figure:
    """Plot the validation accuracy of sparse networks by epoch."""
    results = {}
    for name in names:
        sizes = {} if name == "dense" else {"epsilon": epsilon}
        method = methods.METHODS[name](hidden=(100, 100, 100), **sizes)
        results[name] = fsjax.fit(
            method, digits, seeds=SEEDS, num_features=K, num_epochs=100, batch_size=64
        )
    figure = style.new_figure(3.2)
    _lines(figure.add_subplot(), results, "valid/accuracy", "validation accuracy (%)")
    share = 100 * next(iter(results.values())).history["train/sparsity"][0, -1]
    figure.suptitle(
        f"digits, hidden layers 100-100-100, {share:.0f} % sparse, five seeds", fontsize=10
    )
    return figure


def _layer_rows(
    name: str, result: fsjax.FitResult, stacked: Mapping[str, Any], shares: Callable[..., Any]
) -> list[dict[str, Any]]:
    """Rows with the sparsity of every layer of every seed."""
    rows = []
    for trial in range(len(result.seeds)):
        values = {path: np.asarray(leaf[trial]) for path, leaf in stacked.items()}
        for number, (path, share) in enumerate(sorted(shares(values).items()), start=1):
            about = {"method": name, "trial": trial, "layer": f"layer {number}"}
            rows.append({**about, "sparsity": share, "size": values[path].size})
    return rows


def _lines(axes: Axes, results: Mapping[str, fsjax.FitResult], recorded: str, label: str) -> None:
    for color, (name, result) in zip(COLORS, results.items(), strict=False):
        values = result.history[recorded]
        _band(axes, np.arange(1, values.shape[1] + 1), values, color, name)
    axes.set_xlabel("epoch", fontsize=9)
    axes.set_ylabel(label, fontsize=9)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _band(axes: Axes, x: np.ndarray, values: np.ndarray, color: str, label: str) -> None:
    """Draw the mean over seeds of ``(S, T)`` values, and a band of one standard deviation."""
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    axes.plot(x, mean, color=color, linewidth=1.4, label=label)
    upper = np.minimum(mean + deviation, np.maximum(values.max(), mean))
    axes.fill_between(x, mean - deviation, upper, color=color, alpha=0.2, linewidth=0)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
