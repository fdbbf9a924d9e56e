"""A path of networks from dense to sparse (LassoNet): accuracy and size by strength."""

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

#: At most this many networks are drawn with a marker each.
MARKED: Final = 30

#: Paths shorter than this ratio of strengths have ticks at even distances.
SHORT: Final = 8.0

HEIGHT: Final = 4.6


def path_of(result: FitResult, seed: int | None = None) -> dict[str, Any]:
    """The path of one seed of LassoNet, a network for each lambda: the last of its epochs.

    Args:
      result: what ``fsjax.fit`` returned for ``fsjax.methods.lassonet``.
      seed: one of its seeds; ``None`` takes the first.

    Returns:
      ``lambda``, ``num_selected`` and, of the validation rows and where it was recorded the test
      rows, ``valid_accuracy`` or ``valid_mse``, ``(T,)`` each. ``chosen`` is the first network
      that has at most K features, if the path came that far.

    Raises:
      DataError: for another method, or a training that ended before the path began.
    """
    row = 0 if seed is None else result.seeds.index(seed)
    history = {name: values[row] for name, values in result.history.items()}
    if "train/lambda" not in history:
        raise DataError(f"{result.method.name} has no path of lambdas; lassonet has")
    strength = history["train/lambda"]
    ran = np.flatnonzero(strength > 0)
    if not len(ran):
        raise DataError("the path has not begun; train for more epochs, its end ends the training")
    last = ran[np.append(np.diff(strength[ran]) > 0, True)]
    metric = TABLE[result.task].main_metric
    names = {"lambda": "train/lambda", "num_selected": "train/num_selected"}
    names |= {f"{split}_{metric}": f"{split}/{metric}" for split in ("valid", "test")}
    path = {name: history[own][last] for name, own in names.items() if own in history}
    few = np.flatnonzero(path["num_selected"] <= result.num_features)
    return {**path, "chosen": int(few[0])} if len(few) else path


def plot_path(path: Mapping[str, Any] | FitResult, title: str | None = None) -> Figure:
    """Accuracy above, number of selected features beneath, against the strength of the penalty.

    Args:
      path: ``lambda``, ``num_selected`` and ``valid_accuracy`` (percent), ``valid_mse`` or another
        main metric of a task, ``(T,)`` each, and where there are, ``test_accuracy`` and so on
        ``(T,)`` and ``chosen``, the index of the network that was kept, which is marked. Networks
        with ``lambda`` 0 have no place on the logarithmic axis. Or a result, for :func:`path_of`
        its first seed.
      title: above the figure; by default what ran, for a result.

    Returns:
      The figure, 1200 pixels wide.

    Raises:
      DataError: if an array is missing or of another length, no ``lambda`` is positive, or
        ``chosen`` is not between 0 and T - 1.
    """
    if isinstance(path, FitResult):
        if title is None:
            title = style.title(dataclasses.replace(path, seeds=path.seeds[:1]))
        path = path_of(path)
    known = {entry.main_metric: entry for entry in TABLE.values()}
    metric = next((m for m in known if path.get(f"valid_{m}") is not None), "accuracy")
    arrays = _checked(path, metric)
    strength, size = arrays["lambda"], arrays["num_selected"]
    shown = strength > 0
    figure = style.new_figure(HEIGHT, title=title or "")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for split in ("valid", "test"):
        values = arrays.get(f"{split}_{metric}")
        if values is not None:
            _line(upper, strength[shown], values[shown], *SPLITS[split])
    _line(lower, strength[shown], size[shown], "", style.GREEN)
    chosen = path.get("chosen")
    if chosen is not None and shown[chosen]:
        place = strength[chosen]
        text = f"chosen: {style.count(int(size[chosen]), 'feature')}, λ = {place:.3g}"
        for axes, values, label in ((upper, arrays[f"valid_{metric}"], text), (lower, size, None)):
            axes.axvline(place, color=style.GREY, linewidth=0.9, linestyle="--", zorder=1)
            style.circle(axes, place, values[chosen], 36, 1.1, label)
    style.finish(upper, "", "", known[metric].label)
    style.finish(lower, "", "λ", "selected features")
    if known[metric].bounds[1] == 100.0:
        style.cap_percent(upper)
    lower.set_ylim(bottom=-0.03 * size[shown].max())
    lower.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    _logarithmic(lower, float(strength[shown].min()), float(strength[shown].max()))
    upper.tick_params(axis="x", labelbottom=False)
    upper.legend(fontsize=8, frameon=False, loc="best")
    return figure


def _checked(path: Mapping[str, Any], metric: str) -> dict[str, np.ndarray]:
    names = ("lambda", "num_selected", f"valid_{metric}")
    given = {name: path[name] for name in (*names, f"test_{metric}") if path.get(name) is not None}
    missing = [name for name in names if name not in given]
    if missing:
        raise DataError(f"the path has no {missing[0]!r}; give {', '.join(names)}")
    arrays = {name: np.asarray(values, np.float64) for name, values in given.items()}
    length = arrays["lambda"].size
    for name, values in arrays.items():
        if values.shape != (length,):
            raise DataError(f"{name} has shape {values.shape}; give ({length},), one per network")
    if not (arrays["lambda"] > 0).any():
        raise DataError("no lambda of the path is positive; the axis is logarithmic")
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
    # Few ticks in each power of ten where there are many powers.
    decades = np.log10(high / low)
    subs = (1, 2, 5) if decades < 4 else (1, 3) if decades < 6 else (1,)
    short = MaxNLocator(6, steps=[1, 2, 5, 10]) if high < SHORT * low else None
    axes.xaxis.set_major_locator(short or LogLocator(subs=subs, numticks=99))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(style.plain_number)
