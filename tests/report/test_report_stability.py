"""Bars of the columns that the seeds selected most often."""

import numpy as np
import pytest
from figure_checks import assert_readable, legend_texts
from marks import slow_ids
from matplotlib.colors import to_hex
from synthetic_result import make_result

from fsjax.errors import ConfigError, DataError
from fsjax.report import save_figure
from fsjax.report.stability import CONSENSUS_COLOR, plot_stability, stability_text


@slow_ids("1000-50-3")
@slow_ids("1000-20-20")
@pytest.mark.parametrize(
    ("columns", "num_features", "num_seeds"),
    [(10, 3, 5), (1000, 20, 20), (1000, 50, 3), (20, 4, 1), (6, 6, 3), (8, 1, 2)],
)
def test_bars(columns, num_features, num_seeds, tmp_path):
    names = [f"a_very_long_name_of_a_measured_thing_$_with_number_{i:05d}" for i in range(columns)]
    result = make_result(columns=columns, num_features=num_features, num_seeds=num_seeds)
    figure = plot_stability(result, names)
    (axes,) = figure.axes
    frequency = result.selection_frequency
    selected = np.count_nonzero(frequency)
    widths = [patch.get_width() for patch in axes.patches]
    assert widths == sorted(frequency.tolist(), reverse=True)[: min(30, selected)]
    colored = [to_hex(patch.get_facecolor()) == CONSENSUS_COLOR.lower() for patch in axes.patches]
    others = len(widths) - min(num_features, len(widths))
    assert colored == [True] * (len(widths) - others) + [False] * others
    assert legend_texts(axes) == [f"consensus ({num_features})", "others"][: 2 if others else 1]
    assert ("the first 30 are shown" in figure.get_supxlabel()) == (selected > 30)
    assert_readable(figure)
    save_figure(figure, tmp_path / "stability.png")
    assert (tmp_path / "stability.png").stat().st_size > 1000


def metrics(stability, interval, num_seeds=5):
    return {"num_seeds": num_seeds, "stability": stability, "interval": interval, "level": 0.95}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (metrics(0.618, [0.511, 0.729]), "stability 0.62 (95 % interval 0.51 to 0.73)"),
        (metrics(0.97, [0.93, 1.01]), "stability 0.97 (95 % interval 0.93 to 1.00)"),
        (metrics(-0.001, [-0.104, 0.1]), "stability 0.00 (95 % interval -0.10 to 0.10)"),
        (metrics(0.5, None, 2), "stability 0.50 (two seeds: no interval)"),
        (metrics(None, None), "stability not defined: every column is selected"),
        (metrics(None, None, 1), "only one seed: stability needs two or more"),
    ],
)
def test_stability_in_words(given, text):
    assert stability_text(given) == text


def test_what_does_not_fit():
    with pytest.raises(DataError, match="feature_names has 1 entries; give 64"):
        plot_stability(make_result(columns=64), ["a"])
    with pytest.raises(ConfigError, match="top=0"):
        plot_stability(make_result(), top=0)
