"""Training curves: which panels, what they show, and that no text is cut off.

Covers ``fsjax.report.curves``, ``fsjax.report.wording``.
"""

import numpy as np
import pytest
from figure_checks import assert_readable
from marks import slow_ids
from synthetic_result import make_result

from fsjax.report import plot_curves, save_figure


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


@slow_ids("reconstruction*")
@slow_ids("regression-*")
@pytest.mark.parametrize(
    ("task", "metric"),
    [
        ("classification", "validation accuracy (%)"),
        ("reconstruction", "validation Frobenius error / D"),
        ("regression", "validation mean squared error"),
    ],
)
def test_panels_of_each_task(task, metric, tmp_path):
    figure = plot_curves(make_result(task=task))
    assert titles(figure) == ["loss", metric, "distinct picks (%)"]
    assert figure.get_suptitle() == f"ip_cae on coil20, K = 10, {task}, 3 seeds"
    assert_readable(figure)
    save_figure(figure, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def rewired(num_seeds=3, num_epochs=5, sparsity=0.8, **more):
    """The history of a network that rewires itself, trained without labels."""
    shape = (num_seeds, num_epochs)
    return {
        "train/loss": np.linspace(1.0, 0.4, num_epochs) * np.ones(shape),
        "train/sparsity": np.broadcast_to(np.float32(sparsity), shape),
        "train/topology_change": np.linspace(30.0, 9.0, num_epochs) * np.ones(shape),
        **more,
    }


def test_validation_and_test_metric_share_a_panel():
    result = make_result(name="ctre_seq")
    valid = result.history["valid/accuracy"]
    history = rewired(**{"valid/accuracy": valid, "test/accuracy": valid - 5.0})
    history["train/sparsity"] = np.linspace(0.5, 0.9, 5) * np.ones((3, 5))
    figure = plot_curves(make_result(history=history))
    assert titles(figure) == ["loss", "accuracy (%)", "topology change (%)", "sparsity"]
    axes = figure.axes[1]
    assert [line.get_label() for line in axes.lines] == ["validation", "test"]
    best = valid[np.arange(3), result.best_epoch - 1]
    np.testing.assert_allclose(axes.collections[-1].get_offsets()[:, 1], best)
    assert_readable(figure)


def test_lines_are_means_and_circles_best_epochs():
    result = make_result()
    loss, accuracy, _ = plot_curves(result).axes
    np.testing.assert_allclose(
        accuracy.lines[0].get_ydata(), result.history["valid/accuracy"].mean(axis=0), rtol=1e-5
    )
    points = loss.collections[-1].get_offsets()
    np.testing.assert_array_equal(points[:, 0], result.best_epoch)
    np.testing.assert_allclose(points[:, 1], result.history["valid/loss"].min(axis=1))


def test_scale_of_the_loss():
    history = {"train/loss": np.array([[30.0, 1.01]]), "valid/loss": np.array([[20.0, 2.0]])}
    assert plot_curves(make_result(num_seeds=1, history=history)).axes[0].get_yscale() == "linear"
    history["train/loss"][0, 1] = 0.5
    figure = plot_curves(make_result(num_seeds=1, history=history))
    assert figure.axes[0].get_yscale() == "log"
    assert_readable(figure)


@pytest.mark.filterwarnings("error")
def test_values_that_are_not_finite():
    history = dict(make_result().history)
    history["valid/loss"] = np.full((3, 5), np.nan, np.float32)
    history["valid/accuracy"] = history["valid/accuracy"].copy()
    history["valid/accuracy"][0, 2:] = np.nan
    figure = plot_curves(make_result(history=history, best_epoch=np.array([0, 5, 1])))
    assert_readable(figure)
