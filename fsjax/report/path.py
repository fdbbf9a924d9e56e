"""The path of LassoNet from dense to sparse: accuracy and number of features by penalty."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from fsjax.engine.result import FitResult
from fsjax.errors import DataError
from fsjax.report import style
from fsjax.report.curves import SPLITS
from fsjax.tasks import TABLE

#: Up to this many networks, each network has a marker.
MARKED: Final = 30

#: Below this ratio of the largest to the smallest lambda, ticks are evenly spaced.
SHORT: Final = 8.0

HEIGHT: Final = 4.6


def path_of(result: FitResult, seed: int | None = None) -> dict[str, Any]:
    """The path of one seed of LassoNet: the network after the last epoch of each lambda.

    Args:
      result: what ``fsjax.fit`` returned for ``fsjax.methods.lassonet``.
      seed: one of its seeds; ``None`` takes the first.

    Returns:
      ``lambda``, ``num_selected``, and ``valid_accuracy`` or ``valid_mse``, ``(T,)`` each; if they
      were recorded, the same metric of the test rows. ``chosen`` is the index of the first network
      with at most K features, if the path came that far.

    Raises:
      DataError: for another method, or a training that ended before the path began.

    Examples:
      >>> from fsjax import report
      >>> lassonet = fsjax.methods.lassonet(2, hidden=(8,), dense_epochs=5, path_multiplier=1.5)
      >>> path = report.path_of(fsjax.fit(lassonet, data, num_features=2, num_epochs=200))
      >>> print(path["num_selected"])  # after each lambda
      >>> report.plot_path(path).savefig("path.png")
    """
    row = 0 if seed is None else result.seeds.index(seed)
    history = {name: values[row] for name, values in result.history.items()}
    if "train/lambda" not in history:
        raise DataError(f"{result.method.name} has no path of lambdas; use a result of lassonet")
    penalty = history["train/lambda"]
    ran = np.flatnonzero(penalty > 0)
    if not len(ran):
        raise DataError("the path has not started; train for more epochs")
    last = ran[np.append(np.diff(penalty[ran]) > 0, True)]
    metric = TABLE[result.task].objective.main_metric
    names = {"lambda": "train/lambda", "num_selected": "train/num_selected"}
    names |= {f"{split}_{metric}": f"{split}/{metric}" for split in ("valid", "test")}
    path = {name: history[key][last] for name, key in names.items() if key in history}
    few = np.flatnonzero(path["num_selected"] <= result.num_features)
    return {**path, "chosen": int(few[0])} if len(few) else path


def plot_path(path: Mapping[str, Any] | FitResult, title: str | None = None) -> Figure:
    """Accuracy above, number of selected features below, by the penalty lambda.

    Args:
      path: a result, whose first seed is shown; or ``lambda``, ``num_selected`` and
        ``valid_accuracy`` (percent), ``valid_mse`` or another main metric of a task, ``(T,)`` each,
        and optionally the metric of the test rows, ``(T,)``, and ``chosen``, the index of the
        network that was kept, which is marked. Networks with ``lambda`` 0 are not shown, as the
        axis is logarithmic.
      title: above the figure; by default that of the result, if there is one.

    Returns:
      The figure, 1200 pixels wide.

    Raises:
      DataError: if an array is missing or of another length, no ``lambda`` is positive, or
        ``chosen`` is not between 0 and T - 1.
    """
    if isinstance(path, FitResult):
        if title is None:
            title = style.title_of(dataclasses.replace(path, seeds=path.seeds[:1]))
        path = path_of(path)
    known = {entry.objective.main_metric: entry for entry in TABLE.values()}
    metric = next((m for m in known if path.get(f"valid_{m}") is not None), "accuracy")
    arrays = _checked(path, metric)
    penalty, size = arrays["lambda"], arrays["num_selected"]
    shown = penalty > 0
    figure = style.new_figure(HEIGHT, title=title or "")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for split in ("valid", "test"):
        values = arrays.get(f"{split}_{metric}")
        if values is not None:
            _line(upper, penalty[shown], values[shown], *SPLITS[split])
    _line(lower, penalty[shown], size[shown], "", style.GREEN)
    chosen = path.get("chosen")
    if chosen is not None and shown[chosen]:
        place = penalty[chosen]
        text = f"chosen: {style.count(int(size[chosen]), 'feature')}, λ = {place:.3g}"
        for axes, values, label in ((upper, arrays[f"valid_{metric}"], text), (lower, size, None)):
            axes.axvline(place, color=style.GREY, linewidth=0.9, linestyle="--", zorder=1)
            style.circle(axes, place, values[chosen], 36, 1.1, label)
    style.finish(upper, "", "", known[metric].words.label)
    style.finish(lower, "", "λ", "selected features")
    if known[metric].objective.bounds[1] == 100.0:
        style.cap_percent(upper)
    lower.set_ylim(bottom=-0.03 * size[shown].max())
    lower.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    _logarithmic(lower, float(penalty[shown].min()), float(penalty[shown].max()))
    upper.tick_params(axis="x", labelbottom=False)
    upper.legend(fontsize=8, frameon=False, loc="best")
    return figure


def _checked(path: Mapping[str, Any], metric: str) -> dict[str, np.ndarray]:
    names = ("lambda", "num_selected", f"valid_{metric}")
    present = (name for name in (*names, f"test_{metric}") if path.get(name) is not None)
    arrays = {name: np.asarray(path[name], np.float64) for name in present}
    missing = [name for name in names if name not in arrays]
    if missing:
        raise DataError(f"the path has no {missing[0]!r}; give {', '.join(names)}")
    length = arrays["lambda"].size
    for name, values in arrays.items():
        if values.shape != (length,):
            raise DataError(f"{name} has shape {values.shape}; give ({length},), one per network")
    if not (arrays["lambda"] > 0).any():
        raise DataError(
            "no lambda of the path is positive; give at least one, as the axis is logarithmic"
        )
    chosen = path.get("chosen")
    if chosen is not None and not 0 <= chosen < length:
        raise DataError(f"chosen={chosen!r}; give an index from 0 to {length - 1}")
    return arrays


def _line(axes: Axes, places: np.ndarray, values: np.ndarray, label: str, color: str) -> None:
    marker = "." if len(places) <= MARKED else ""
    axes.plot(places, values, color=color, linewidth=1.1, marker=marker, label=label)


def _logarithmic(axes: Axes, low: float, high: float) -> None:
    axes.set_xscale("log")
    margin = max((high / low) ** 0.02, 1.02)
    axes.set_xlim(low / margin, high * margin)
    # The more decades, the fewer ticks in each.
    decades = np.log10(high / low)
    subs = (1, 2, 5) if decades < 4 else (1, 3) if decades < 6 else (1,)
    short = MaxNLocator(6, steps=[1, 2, 5, 10]) if high < SHORT * low else None
    axes.xaxis.set_major_locator(short or LogLocator(subs=subs, numticks=99))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(style.plain_number)
