"""Training curves: which panels, what they show, and that no text is cut off.

Covers ``fsjax.report.wording``.
"""

import numpy as np
import pytest
from figure_checks import assert_readable
from synthetic_result import make_result

from fsjax.report import plot_curves, save_figure
from fsjax.report.curves import mean_and_std, spans_far, sparsity_text


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


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


@pytest.mark.parametrize(("num_seeds", "num_epochs"), [(1, 1), (1, 200), (10, 3), (10, 200)])
def test_sizes(num_seeds, num_epochs):
    figure = plot_curves(make_result(num_seeds=num_seeds, num_epochs=num_epochs))
    loss = figure.axes[0]
    assert [len(line.get_xdata()) for line in loss.lines] == [num_epochs] * 2
    bands = [c for c in loss.collections if type(c).__name__ == "FillBetweenPolyCollection"]
    assert len(bands) == (2 if num_seeds > 1 else 0)
    assert_readable(figure)


def test_last_panel_follows_what_was_recorded():
    result = make_result()
    history = {n: v for n, v in result.history.items() if n != "train/unique_percentage"}
    assert len(plot_curves(make_result(history=history)).axes) == 2
    history["train/sparsity"] = np.full((3, 5), 0.9, np.float32)
    assert titles(plot_curves(make_result(history=history)))[-1] == "sparsity"


def rewired(num_seeds=3, num_epochs=5, sparsity=0.8, **more):
    """The history of a network that rewires itself, trained without labels."""
    shape = (num_seeds, num_epochs)
    return {
        "train/loss": np.linspace(1.0, 0.4, num_epochs) * np.ones(shape),
        "train/sparsity": np.broadcast_to(np.float32(sparsity), shape),
        "train/topology_change": np.linspace(30.0, 9.0, num_epochs) * np.ones(shape),
        **more,
    }


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_rewiring_without_labels(num_seeds):
    result = make_result(
        name="wast",
        task="reconstruction",
        num_seeds=num_seeds,
        history=rewired(num_seeds, 10),
        best_epoch=np.full(num_seeds, 10),
    )
    figure = plot_curves(result)
    assert titles(figure) == ["loss", "topology change (%)\nat sparsity 0.80"]
    np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), np.linspace(30.0, 9.0, 10))
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert legend[0] == "training"
    assert_readable(figure)


def test_test_metric_stands_in_for_that_of_validation_rows():
    accuracy = np.linspace(50.0, 79.0, 5) * np.ones((3, 5))
    history = rewired(sparsity=0.9974, **{"test/accuracy": accuracy})
    figure = plot_curves(make_result(history=history))
    changes = "topology change (%)\nat sparsity 0.9974"
    assert titles(figure) == ["loss", "test accuracy (%)", changes]
    assert figure.axes[1].get_legend() is None
    np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), accuracy[0])
    assert_readable(figure)


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


@pytest.mark.parametrize(
    ("task", "metric"), [("reconstruction", "reconstruction_frobenius"), ("regression", "mse")]
)
def test_four_panels_with_long_titles(task, metric):
    history = rewired(**{f"valid/{metric}": np.linspace(9e-3, 2e-3, 5) * np.ones((3, 5))})
    history["train/sparsity"] = np.linspace(0.5, 0.9, 5) * np.ones((3, 5))
    figure = plot_curves(make_result(task=task, history=history))
    assert len(figure.axes) == 4
    assert_readable(figure)


def test_fixed_topology():
    history = rewired(**{"train/topology_change": np.zeros((3, 5))})
    figure = plot_curves(make_result(history=history))
    assert figure.axes[-1].get_ylim()[1] >= 1.0
    assert_readable(figure)


def test_distinct_picks_come_before_the_topology():
    history = rewired(**{"train/unique_percentage": np.full((3, 5), 90.0)})
    assert titles(plot_curves(make_result(history=history))) == ["loss", "distinct picks (%)"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([[0.8, 0.8]], "0.80"),
        ([[0.8, 0.8005], [0.81, 0.81]], "0.81"),
        ([[0.9]], "0.90"),
        ([[0.9974] * 3], "0.9974"),
        ([[0.984] * 3], "0.984"),
        ([[0.0, 0.0]], "0.00"),
        ([[1.0, 1.0]], "1.00"),
        ([[0.8, 0.81]], None),
        ([[0.99, 0.995]], None),
        ([[0.8, np.nan]], None),
        (np.zeros((2, 0)), None),
    ],
)
def test_constant_sparsity(values, text):
    assert sparsity_text(np.array(values, np.float32)) == text


def test_without_validation_rows():
    history = {n: v for n, v in make_result().history.items() if n.startswith("train/")}
    figure = plot_curves(make_result(history=history))
    assert titles(figure) == ["loss", "distinct picks (%)"]
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


def test_log_scale_with_wide_bands_stays_at_the_data():
    history = {"train/loss": np.array([[1e3, 1.0], [1.0, 1.0], [1.0, 1.0]])}
    low, _ = plot_curves(make_result(history=history)).axes[0].get_ylim()
    assert low > 0.1


def test_bands_of_percentages_end_at_one_hundred():
    history = dict(make_result().history)
    history["train/unique_percentage"] = np.array([[90.0] * 5, [100.0] * 5, [100.0] * 5])
    axes = plot_curves(make_result(history=history)).axes[-1]
    assert axes.collections[0].get_paths()[0].vertices[:, 1].max() == 100.0
    history["train/unique_percentage"] = np.full((3, 5), 100.0)
    figure = plot_curves(make_result(history=history))
    assert figure.axes[-1].get_ylim()[1] < 101.0
    assert_readable(figure)


def test_spans_far():
    assert spans_far(np.array([1.0, 31.0, np.nan, np.inf]))
    assert not spans_far(np.array([1.0, 30.0]))
    assert not spans_far(np.array([-1.0, 100.0]))
    assert not spans_far(np.array([np.nan]))


def test_mean_and_std_skip_what_is_not_finite():
    mean, std = mean_and_std(np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.inf]]))
    np.testing.assert_array_equal(mean, [2.0, 5.0, np.nan])
    np.testing.assert_array_equal(std, [1.0, 0.0, np.nan])


@pytest.mark.filterwarnings("error")
def test_values_that_are_not_finite():
    history = dict(make_result().history)
    history["valid/loss"] = np.full((3, 5), np.nan, np.float32)
    history["valid/accuracy"] = history["valid/accuracy"].copy()
    history["valid/accuracy"][0, 2:] = np.nan
    figure = plot_curves(make_result(history=history, best_epoch=np.array([0, 5, 1])))
    assert_readable(figure)
