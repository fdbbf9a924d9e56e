"""Training curves by epoch: loss, the metric of the task, and distinct columns or the topology."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from fsjax.engine.result import FitResult
from fsjax.report import style
from fsjax.tasks import TABLE

#: If the largest loss exceeds this multiple of the smallest, the axis is logarithmic.
LOG_FACTOR = 30.0

#: Up to this many epochs, each epoch has a marker.
MARKED_EPOCHS = 12

#: A sparsity that varies by at most this share of the density counts as constant.
CONSTANT_SHARE = 0.02

LABELS = {
    "unique_percentage": "distinct picks (%)",
    "sparsity": "sparsity",
    "topology_change": "topology change (%)",
}

#: Ranges of these values, at which bands are cut off.
BOUNDS = {
    "unique_percentage": (0.0, 100.0),
    "sparsity": (0.0, 1.0),
    "topology_change": (0.0, 100.0),
}

#: Name and colour of the lines of each split.
SPLITS = {
    "train": ("training", style.ORANGE),
    "valid": ("validation", style.BLUE),
    "test": ("test", style.PURPLE),
}


class Curve(NamedTuple):
    """One line of a panel: values ``(S, E)``, its name in the legend or ``""``, its colour."""

    values: np.ndarray
    label: str
    color: str


class Panel(NamedTuple):
    """One panel: title, lines, whether its axis may be logarithmic, and the range of its values."""

    label: str
    curves: tuple[Curve, ...]
    may_be_log: bool
    bounds: tuple[float, float] = (-np.inf, np.inf)


def plot_curves(result: FitResult) -> Figure:
    """Curves of a run by epoch: the mean over the seeds with a band of one standard deviation.

    The panels are the loss, the metric of the task on validation and test rows, and the percentage
    of distinct columns or, if that was not recorded, the topology: the percentage of connections
    that are new since the start of the epoch, and the sparsity, in the title if it is constant and
    in its own panel otherwise. Values that were not recorded have no panel. Circles mark the best
    epoch of each seed. The figure is 1200 pixels wide.

    Examples:
      >>> from fsjax import report
      >>> result = fsjax.fit(method, data, seeds=(0, 1), num_features=2, num_epochs=2)
      >>> report.save_figure(report.plot_curves(result), "curves.png")
      >>> report.save_figure(report.plot_selection(result), "selection.png")
      >>> report.save_figure(report.plot_stability(result), "stability.png")
    """
    panels = panels_of(result.task, result.history)
    figure = style.new_figure(3.1, title=style.title_of(result))
    for number, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), number)
        draw_panel(axes, panel, np.asarray(result.best_epoch))
    return figure


def panels_of(task: str, history: Mapping[str, np.ndarray]) -> list[Panel]:
    """The panels for which a history, ``(S, E)`` by ``split/metric``, has values, left to right."""
    entry = TABLE[task]
    loss, main = (
        tuple(
            Curve(np.asarray(history[f"{split}/{name}"]), *SPLITS[split])
            for split in splits
            if f"{split}/{name}" in history
        )
        for name, splits in (("loss", SPLITS), (entry.objective.main_metric, ("valid", "test")))
    )
    panels = [Panel("loss", loss, True)] if loss else []
    if main and entry.objective.main_metric != "loss":
        label = entry.words.label
        if len(main) == 1:  # the title names the split
            label, main = f"{main[0].label} {label}", (main[0]._replace(label=""),)
        panels.append(
            Panel(label, main, not entry.objective.larger_is_better, entry.objective.bounds)
        )
    return panels + _last_panels(history)


def sparsity_text(values: np.ndarray) -> str | None:
    """The mean sparsity, for example ``0.80`` or ``0.9974``, if it is constant over the epochs.

    Shown to at least two digits of the density. ``None`` if the values ``(S, E)`` in [0, 1] vary or
    are not finite.
    """
    if not values.size or not np.isfinite(values).all():
        return None
    values = values.astype(np.float64)
    density = 1.0 - values.mean()
    if np.ptp(values, axis=1).max() > CONSTANT_SHARE * density:
        return None
    exponent = int(f"{density:.1e}".split("e")[1])
    return f"{values.mean():.{max(1 - exponent, 2)}f}"


def draw_panel(axes: Axes, panel: Panel, best_epoch: np.ndarray) -> None:
    """Draws one panel, with the best epoch ``(S,)`` of each seed, from 1; 0 if there is none."""
    everything = np.concatenate([curve.values.ravel() for curve in panel.curves])
    is_log = panel.may_be_log and spans_far(everything)
    if is_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=9))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(style.plain_number)
    limits = panel.bounds
    if is_log:  # the mean minus the deviation of positive values may be negative
        limits = float(np.min(everything[np.isfinite(everything)])), np.inf
    for curve in panel.curves:
        _draw_curve(axes, curve, limits)
    num_epochs = panel.curves[-1].values.shape[1]
    # Circles are on the line of the validation rows if the panel has one.
    lines = {curve.label: curve for curve in panel.curves}
    values = lines.get(SPLITS["valid"][0], panel.curves[-1]).values
    seeds = np.flatnonzero((best_epoch >= 1) & (best_epoch <= num_epochs))
    if seeds.size:
        best = best_epoch[seeds]
        label = "best epoch" if len(values) == 1 else "kept epoch of a seed"
        style.circle(axes, best, values[seeds, best - 1], 18, 0.8, label)

    beside = max(0.03 * (num_epochs - 1), 0.3)
    axes.set_xlim(1 - beside, num_epochs + beside)
    low, high = axes.get_ylim()
    if not everything.any():  # for example the change of a fixed topology
        low, high = -0.03, 1.0
    margin = 0.03 * (high - low)
    axes.set_ylim(max(low, panel.bounds[0] - margin), min(high, panel.bounds[1] + margin))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    style.finish(axes, xlabel="epoch")
    axes.set_title(panel.label, fontsize=9)
    if any(curve.label for curve in panel.curves):
        axes.legend(fontsize=7, frameon=False)


def spans_far(values: np.ndarray) -> bool:
    """Whether finite values are all positive and span more than :data:`LOG_FACTOR`."""
    values = values[np.isfinite(values)]
    return bool(values.size and values.min() > 0 and values.max() > LOG_FACTOR * values.min())


def mean_and_std(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and population standard deviation ``(E,)`` over the seeds of values ``(S, E)``.

    Only finite values count; NaN in epochs without any.
    """
    finite = np.ma.masked_invalid(values)
    return finite.mean(axis=0).filled(np.nan), finite.std(axis=0).filled(np.nan)


def _last_panels(history: Mapping[str, np.ndarray]) -> list[Panel]:
    """Panels of the distinct columns, or else of the topology."""
    names: tuple[str, ...] = ("unique_percentage",)
    if "train/unique_percentage" not in history:
        names = ("topology_change", "sparsity")
    recorded = {
        name: np.asarray(history[f"train/{name}"]) for name in names if f"train/{name}" in history
    }
    labels = dict(LABELS)
    if len(recorded) == 2 and (constant := sparsity_text(recorded["sparsity"])) is not None:
        labels["topology_change"] += f"\nat sparsity {constant}"
        del recorded["sparsity"]
    return [
        Panel(labels[name], (Curve(values, "", style.GREEN),), False, BOUNDS[name])
        for name, values in recorded.items()
    ]


def _draw_curve(axes: Axes, curve: Curve, limits: tuple[float, float]) -> None:
    values = curve.values.astype(np.float64)
    mean, std = mean_and_std(values)
    epochs = np.arange(1, values.shape[1] + 1)
    marker = "." if len(epochs) <= MARKED_EPOCHS else ""
    axes.plot(epochs, mean, color=curve.color, linewidth=1, marker=marker, label=curve.label)
    if len(values) > 1:
        low, high = np.clip([mean - std, mean + std], *limits)
        axes.fill_between(epochs, low, high, color=curve.color, alpha=0.2, linewidth=0)
