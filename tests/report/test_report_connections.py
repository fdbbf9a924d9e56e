"""Pictures of where the connections of the inputs went."""

import numpy as np
import pytest
from figure_checks import assert_readable
from marks import slow_ids
from synthetic_result import make_result

from fsjax.report import plot_selection, save_figure
from fsjax.report.connections import shown_epochs


def rewired(columns, epochs=(0, 1, 5, 10), num_seeds=3, **options):
    """A result whose connections gather on the middle columns, more in each counted epoch."""
    rng = np.random.default_rng(0)
    place = np.abs(np.arange(columns) / columns - 0.5)
    weight = np.exp(-8.0 * np.arange(len(epochs))[:, None] * place)
    counts = rng.poisson(40.0 * weight, (num_seeds, len(epochs), columns))
    return make_result(
        name="wast",
        task="reconstruction",
        columns=columns,
        num_seeds=num_seeds,
        connection_epochs=epochs,
        input_connections=counts,
        **options,
    )


def maps(figure):
    return [axes for axes in figure.axes if axes.get_title()]


@slow_ids("C")
@slow_ids("F")
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_map_for_each_epoch(order, tmp_path):
    result = rewired(64)
    figure = plot_selection(result, (8, 8), order)
    shown = maps(figure)
    moments = ["before training", "after epoch 1", "after epoch 5", "after epoch 10"]
    assert [axes.get_title() for axes in shown] == moments
    means = result.input_connections.mean(axis=0)
    for axes, mean in zip(shown, means, strict=True):
        np.testing.assert_allclose(axes.images[0].get_array(), mean.reshape((8, 8), order=order))
        assert axes.images[0].norm.vmin == 0.0
        assert axes.images[0].norm.vmax == means.max()
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert "connections of each input neuron, mean over seeds" in labels
    assert figure.get_suptitle() == "wast on coil20, K = 10, reconstruction, 3 seeds"
    assert_readable(figure)
    save_figure(figure, tmp_path / "selection.png")
    assert (tmp_path / "selection.png").stat().st_size > 1000


@slow_ids("1-500-log", "5-64-linear", "1-3289-log")
@pytest.mark.parametrize(("columns", "scale"), [(64, "linear"), (500, "log"), (3289, "log")])
@pytest.mark.parametrize("num_seeds", [1, 5])
def test_profiles(columns, scale, num_seeds):
    result = rewired(columns, num_seeds=num_seeds)
    figure = plot_selection(result)
    (axes,) = figure.subfigs[1].axes
    assert axes.get_xscale() == scale
    assert len(axes.lines) == 4
    assert [t.get_text() for t in axes.get_legend().get_texts()][-1] == "after epoch 10"
    for line, moment in zip(axes.lines, range(4), strict=True):
        profile = line.get_ydata()
        assert np.all(np.diff(profile) <= 0)
        counts = result.input_connections[:, moment]
        assert profile[0] == pytest.approx(counts.max(axis=1).mean())
        assert profile.sum() == pytest.approx(counts.sum(axis=1).mean())
    label = "connections, mean over seeds" if num_seeds > 1 else "connections"
    assert axes.get_ylabel() == label
    assert_readable(figure)


def test_epochs_that_are_shown():
    assert shown_epochs((0,)) == [0]
    assert shown_epochs((0, 1, 5, 10)) == [0, 1, 2, 3]
    shown = shown_epochs(tuple(range(101)))
    assert (len(shown), shown[0], shown[-1]) == (5, 0, 100)
