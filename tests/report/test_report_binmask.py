"""The reports of BinMask's experiments, on made-up trials."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from report_figure_checks import assert_readable
from scipy import stats

from fsjax.errors import ConfigError, DataError
from fsjax.report import (
    mean_interval,
    plot_accuracy,
    plot_accuracy_sparsity,
    plot_layer_sparsity,
    plot_path,
    plot_regularization,
    regularization_table,
)
from fsjax.report.accuracy import strength_labels
from fsjax.report.intervals import apart, looks, means_by, shifts, short_number
from fsjax.report.regularization import better_pvalue
from fsjax.report.sparsity import number_text, sparsity_label, sparsity_points, sparsity_ticks

SIX = ("BinMask", "Fisher score", "STG", "LassoNet", "IP-CAE", "random selection")
FOUR_NETWORKS = tuple(f"{net} on {data}" for data in ("C10", "C100") for net in ("RN", "VGG"))


def selection_rows(datasets=("isolet",), methods=("BinMask", "Fisher score"), trials=8, sizes=5):
    """Accuracies of methods by number of features, with BinMask's strengths and all features."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset in datasets:
        most = int(rng.integers(40, 300))
        for trial in range(trials):
            rows.append((dataset, "all features", trial, 617, 96.5 + 0.3 * rng.normal(), np.nan))
            for number, method in enumerate(methods):
                for part in range(sizes):
                    size = most - part * (most // 5)
                    level = 97.0 - 1.3 * number - 12.0 * np.exp(-3.0 * size / most)
                    strength = 1e-3 * (1 + part) ** 1.5 * (1 + 0.1 * rng.normal())
                    found = strength if method == "BinMask" else np.nan
                    rows.append((dataset, method, trial, size, level + 0.6 * rng.normal(), found))
    names = ["dataset", "method", "trial", "num_features", "accuracy", "strength"]
    return pd.DataFrame(rows, columns=names)


def sparsity_rows(networks=("ResNet32 on CIFAR10",), methods=("BinMask", "ProbMask"), trials=4):
    """Accuracies before and after fine-tuning by sparsity, which differs a little by trial."""
    rng = np.random.default_rng(0)
    densities = np.array([0.06, 0.045, 0.03, 0.018, 0.011, 0.006, 0.0035])
    rows = []
    for network in networks:
        for trial in range(trials):
            rows.append((network, "dense", trial, 0.0, *(93.2 + 0.2 * rng.normal(size=2))))
            for number, method in enumerate(methods):
                for density in densities:
                    tuned = 93.5 - 0.35 * number - 0.045 / density + 0.2 * rng.normal()
                    before = tuned - (15 * number + 0.3) - number * abs(rng.normal())
                    density = density * (1 + 0.02 * rng.normal())
                    rows.append((network, method, trial, 1 - density, before, tuned))
    names = ["network", "method", "trial", "sparsity", "accuracy", "finetuned_accuracy"]
    return pd.DataFrame(rows, columns=names)


def layer_rows(layers=17, methods=("BinMask", "ProbMask"), trials=4):
    """Sparsities of the layers of a network like VGG19."""
    rng = np.random.default_rng(0)
    sizes = [int(1728 * 1.5**layer) for layer in range(layers)]
    rows = []
    for layer, size in enumerate(sizes):
        for number, method in enumerate(methods):
            for trial in range(trials):
                level = 1 - 0.6 * np.exp(-0.35 * (layer + number))
                sparsity = float(np.clip(level + 0.01 * rng.normal(), 0, 1))
                rows.append((f"conv{layer + 1}", method, trial, sparsity, size))
    return pd.DataFrame(rows, columns=["layer", "method", "trial", "sparsity", "size"])


def lasso_path(length=120, dense=True):
    """A path with a dense network at its start."""
    strength = 0.05 * 1.06 ** np.arange(length)
    share = np.linspace(0.0, 1.0, length)
    size = np.round(617 * (1 - share) ** 1.6).astype(int)
    accuracy = 96.0 - 90.0 * share**8
    if dense:
        strength[0] = 0.0
    chosen = int(np.abs(size - 50).argmin())
    return {
        "lambda": strength,
        "num_selected": size,
        "valid_accuracy": accuracy + 0.3 * np.sin(np.arange(length)),
        "test_accuracy": accuracy - 1.0 + 0.3 * np.cos(np.arange(length)),
        "chosen": chosen,
    }


STRENGTHS = {
    "BinMask": (1e-5, 2e-5, 3e-5, 4e-5, 5e-5),
    "L1": (1e-5, 5e-5, 1e-4, 2e-4, 3e-4),
    "L2": (0.01, 0.1, 1.0, 10.0, 50.0),
    "Dropout": (0.1, 0.3, 0.5, 0.7, 0.9),
}


def regularization_rows(trials=8, strengths=STRENGTHS):
    """AUCs that are best in the middle of each method's strengths, and logistic regression."""
    rng = np.random.default_rng(0)
    of_split = 0.006 * rng.normal(size=trials)
    rows = []
    for number, (method, values) in enumerate({**strengths, "LR": (np.nan,)}.items()):
        for place, strength in enumerate(values):
            for trial in range(trials):
                test = 0.835 - 0.004 * number - 0.003 * (place - 2) ** 2 + of_split[trial]
                aucs = test + np.array([0.04, 0.01, 0.0]) + 0.002 * rng.normal(size=3)
                norms = np.array([0.5, 0.05, 0.08]) / (1 + place)
                norms = norms * np.nan if method == "LR" else norms
                rows.append((method, strength, trial, *aucs, *norms))
    names = ["method", "strength", "trial", "train_auc", "valid_auc", "test_auc", "l0", "l1", "l2"]
    return pd.DataFrame(rows, columns=names)


def assert_apart(boxes, figure):
    """The boxes lie inside the figure and on no other one."""
    width, height = figure.canvas.get_width_height()
    for box in boxes:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
    for a, b in combinations(boxes, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        assert across <= 1 or min(a.y1, b.y1) - max(a.y0, b.y0) <= 1


def assert_all_readable(figure):
    """Also legends, texts among the marks and top axes, which the shared check leaves out."""
    assert_readable(figure)
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()] + figure.legends
    outside = [legend for legend in legends if legend.axes is None or legend._bbox_to_anchor]
    boxes = [legend.get_window_extent() for legend in outside]
    for axes in figure.axes:
        boxes += [text.get_window_extent() for text in axes.texts]
        boxes += [text.get_window_extent() for text in (axes.title, axes.xaxis.label) if text]
        boxes += [t.get_window_extent() for t in axes.get_xticklabels() if t.get_text()]
        for top in axes.child_axes:
            boxes += [t.get_window_extent() for t in (*top.get_xticklabels(), top.xaxis.label)]
    assert_apart([box for box in boxes if box.width and box.height], figure)


def legend_texts(axes_or_figure):
    legend = getattr(axes_or_figure, "legends", None) or [axes_or_figure.get_legend()]
    return [text.get_text() for text in legend[0].get_texts()]


def bars_of(axes):
    """Half lengths of the bars of each line."""
    collections = [container[2][0] for container in axes.containers if container.has_yerr]
    return [[np.ptp(path[:, 1]) / 2 for path in bars.get_segments()] for bars in collections]


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("trials", [2, 8, 30])
def test_interval_is_that_of_scipy(trials, confidence):
    values = np.random.default_rng(trials).normal(90, 3, trials)
    mean, half = mean_interval(values, confidence)
    low, high = stats.t.interval(confidence, trials - 1, values.mean(), stats.sem(values))
    np.testing.assert_allclose([mean, mean - half, mean + half], [values.mean(), low, high])


def test_interval_of_few_trials():
    np.testing.assert_equal(mean_interval([3.0]), (3.0, np.nan))
    np.testing.assert_equal(mean_interval([np.nan, 3.0, np.inf]), (3.0, np.nan))
    np.testing.assert_equal(mean_interval([]), (np.nan, np.nan))
    assert mean_interval([1.0, np.nan, 3.0]) == mean_interval(iter([1.0, 3.0]))
    assert mean_interval([2.0, 2.0, 2.0]) == (2.0, 0.0)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, np.nan])
def test_interval_needs_a_share(confidence):
    with pytest.raises(ConfigError, match="confidence="):
        mean_interval([1.0, 2.0], confidence)


def test_methods_look_different():
    found = looks(f"method {number % 40}" for number in range(80))
    assert len(found) == len(set(found.values())) == 40
    assert len({look.color for look in looks(SIX).values()}) == 6


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (50, "50"),
        (250, "250"),
        (0, "0"),
        (0.012, "0.012"),
        (8.23e-4, "8.2e-4"),
        (1e-5, "1e-5"),
        (9.99e-4, "1e-3"),
        (123456, "1.2e5"),
        (np.nan, "-"),
    ],
)
def test_short_numbers(value, text):
    assert short_number(value) == text


def test_ticks_keep_their_distance():
    assert apart([10, 9, 5, 1], 10, 0.2) == [1, 5, 10]
    assert apart([], 1.0, 0.1) == []


@pytest.mark.parametrize("plot", [plot_accuracy, plot_accuracy_sparsity, plot_layer_sparsity])
def test_tables_are_checked(plot):
    with pytest.raises(DataError, match="no rows"):
        plot([])
    with pytest.raises(DataError, match="no column"):
        plot([{"method": "BinMask", "trial": 1}])
    with pytest.raises(DataError, match="no rows|no column"):
        plot(selection_rows().iloc[:0])


def test_numbers_of_tables_are_checked():
    rows = selection_rows().to_dict("records")
    rows[3]["accuracy"] = "high"
    with pytest.raises(DataError, match="must be numbers"):
        plot_accuracy(rows)


@pytest.mark.parametrize(
    ("datasets", "methods", "trials"),
    [
        (("isolet",), SIX, 8),
        (("a_very_long_name_of_a_data_set_that_goes_on", "b"), SIX, 2),
        (tuple("abc"), SIX[1:3], 1),
        (tuple("abcdef"), SIX[:4], 8),
    ],
)
def test_accuracy_figures_are_readable(datasets, methods, trials):
    figure = plot_accuracy(selection_rows(datasets, methods, trials))
    assert len(figure.axes) == len(datasets)
    assert_all_readable(figure)


def test_accuracy_lines_are_means_and_intervals():
    rows = selection_rows(("isolet", "mnist"))
    figure = plot_accuracy(rows.to_dict("records"))
    for axes, dataset in zip(figure.axes, ("isolet", "mnist"), strict=True):
        here = rows[rows["dataset"] == dataset]
        assert axes.get_title() == dataset
        texts = legend_texts(axes)
        for number, method in enumerate(("BinMask", "Fisher score")):
            own = here[here["method"] == method]
            groups = own.groupby("num_features")["accuracy"]
            halves = [mean_interval(values)[1] for _, values in groups]
            line = axes.containers[number][0]
            np.testing.assert_allclose(line.get_ydata(), groups.mean())
            np.testing.assert_allclose(bars_of(axes)[number], halves)
            # The shift is small against the distance of two sizes.
            np.testing.assert_allclose(line.get_xdata(), list(groups.groups), rtol=0.03)
            assert f"{method} ({own['accuracy'].mean():.1f})" in texts
        band = here.loc[here["method"] == "all features", "accuracy"]
        assert f"all features ({band.mean():.1f})" in texts
        mean, half = mean_interval(band)
        (patch,) = axes.patches
        np.testing.assert_allclose([patch.get_y(), patch.get_height()], [mean - half, 2 * half])


def test_strengths_stand_on_the_top_axis():
    rows = selection_rows(sizes=3)
    (axes,) = plot_accuracy(rows).axes
    (top,) = axes.child_axes
    assert top.get_xlabel() == "BinMask λ"
    own = rows[rows["method"] == "BinMask"].groupby("num_features")["strength"]
    first = own.mean().iloc[0], own.std(ddof=0).iloc[0]
    text = "{}\n({})".format(*(f"{value:.1e}".replace("e-0", "e-") for value in first))
    assert strength_labels(rows)[own.mean().index[0]] == text
    assert [label.get_text() for label in top.get_xticklabels()][0] == text
    for without in (rows.drop(columns="strength"), rows.assign(strength=None)):
        assert not plot_accuracy(without).axes[0].child_axes
    assert strength_labels(rows[rows["method"] == "BinMask"].assign(method="binmask")) == (
        strength_labels(rows)
    )


def test_accuracies_that_are_missing():
    rows = selection_rows(("isolet", "mnist"), SIX[:3], trials=2)
    lost = (rows["dataset"] == "isolet") & (rows["method"] == "STG")
    rows.loc[lost, "accuracy"] = np.nan
    rows.loc[(rows["method"] == "BinMask") & (rows["trial"] == 1), "accuracy"] = None
    figure = plot_accuracy(rows[rows["method"] != "all features"])
    first, second = figure.axes
    assert [text.split(" (")[0] for text in legend_texts(first)] == ["BinMask", "Fisher score"]
    assert len(bars_of(first)) == 1  # BinMask has one trial left
    colors = [axes.containers[1][0].get_color() for axes in (first, second)]
    assert colors[0] == colors[1]
    assert_all_readable(figure)


def test_many_numbers_of_features():
    rows = selection_rows(methods=("BinMask",), trials=2)
    crowded = pd.concat([rows.assign(num_features=rows["num_features"] + d) for d in (0, 1, 2)])
    assert_all_readable(plot_accuracy(crowded))
    only_all = rows[rows["method"] == "all features"]
    assert legend_texts(plot_accuracy(only_all).axes[0])[0].startswith("all features")


def test_accuracy_axis_ends_at_100():
    rows = selection_rows(trials=2).assign(accuracy=lambda r: 99 + r["trial"])
    assert plot_accuracy(rows).axes[0].get_ylim()[1] < 102


@pytest.mark.parametrize(
    ("networks", "methods", "trials"),
    [
        (("ResNet32 on CIFAR10",), SIX, 4),
        (FOUR_NETWORKS, ("BinMask", "ProbMask"), 4),
        (("a", "b", "c"), ("BinMask",), 1),
    ],
)
def test_sparsity_figures_are_readable(networks, methods, trials):
    figure = plot_accuracy_sparsity(sparsity_rows(networks, methods, trials))
    assert [axes.get_title() for axes in figure.axes] == list(networks)
    assert legend_texts(figure)[-2:] == ["before fine-tuning", "after fine-tuning"]
    assert_all_readable(figure)


def test_sparsity_lines():
    rows = sparsity_rows()
    (axes,) = plot_accuracy_sparsity(rows).axes
    lines = [container[0] for container in axes.containers]
    assert [line.get_linestyle() for line in lines] == ["-", "-", "--", "--"]
    assert lines[0].get_color() == lines[2].get_color() != lines[1].get_color()
    low, high = axes.get_xlim()
    assert low > high and axes.get_xscale() == "log"
    own = rows[rows["method"] == "ProbMask"].sort_values("sparsity")
    last = own["sparsity"].to_numpy()[-4:]  # the sparsest of each of the four trials
    np.testing.assert_allclose(lines[3].get_xdata().min(), 1 - last.mean(), rtol=0.06)
    tuned = own["finetuned_accuracy"].to_numpy()[-4:]
    np.testing.assert_allclose(lines[3].get_ydata()[0], tuned.mean())
    np.testing.assert_allclose(bars_of(axes)[3][0], mean_interval(tuned)[1])
    bands = [patch for patch in axes.patches if patch.get_height() > 0]
    dense = rows.loc[rows["method"] == "dense", "accuracy"]
    np.testing.assert_allclose(2 * mean_interval(dense)[1], bands[0].get_height())


def test_trials_belong_together_by_strength_or_by_rank():
    rows = sparsity_rows(methods=("BinMask",), trials=2)
    own = rows[rows["method"] == "BinMask"].assign(strength=np.nan)
    by_rank = sparsity_points(own, "accuracy")
    assert len(by_rank.places) == 7
    pair = own.iloc[[0, 7]].assign(sparsity=[0.99, 0.98])
    np.testing.assert_allclose(sparsity_points(pair, "accuracy").places, [0.015])
    split = sparsity_points(pair.assign(strength=[1.0, 2.0]), "accuracy")
    np.testing.assert_allclose(split.places, [0.01, 0.02])
    uneven = rows.drop(index=rows.index[-1])
    with pytest.raises(DataError, match="6 to 7 sparsities"):
        plot_accuracy_sparsity(uneven)
    strengths = uneven["sparsity"].round(2)
    assert plot_accuracy_sparsity(uneven.assign(strength=strengths))


def test_sparsity_without_fine_tuning_or_dense_network():
    rows = sparsity_rows(trials=1).assign(finetuned_accuracy=None)
    figure = plot_accuracy_sparsity(rows[rows["method"] != "dense"])
    assert legend_texts(figure) == ["BinMask", "ProbMask"]
    assert len(figure.axes[0].containers) == 2 and not bars_of(figure.axes[0])
    assert_all_readable(figure)
    only_dense = plot_accuracy_sparsity(rows[rows["method"] == "dense"])
    assert legend_texts(only_dense) == ["dense"]


def test_a_network_without_weights_has_no_place():
    rows = [
        {"method": "a", "trial": t, "sparsity": s, "accuracy": 50.0, "strength": np.nan}
        for t in (0, 1)
        for s in (0.9, 1.0)
    ]
    points = sparsity_points(pd.DataFrame(rows), "accuracy")
    np.testing.assert_allclose(points, [[0.1], [50.0], [0.0]], atol=1e-9)


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((0.004, 0.11), {"90", "95", "97", "98", "99", "99.5"}),
        ((0.0009, 1.0), {"0", "70", "90", "97", "99", "99.7", "99.9"}),
        ((0.0101, 0.0109), {"98.91", "98.99"}),  # nothing round is between
    ],
)
def test_ticks_have_round_sparsities(ends, labels):
    ticks = sparsity_ticks(*ends)
    assert {sparsity_label(tick, 3) for tick in ticks} == labels
    assert len(ticks) == len(labels) and ticks == sorted(ticks)


@pytest.mark.parametrize(
    ("density", "text"),
    [(0.1, "90"), (0.03, "97"), (0.005, "99.5"), (0.0005, "99.95"), (1.0, "0"), (0.0, "100")],
)
def test_sparsity_labels(density, text):
    assert sparsity_label(density) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(432.4, "432"), (9999.7, "10.0k"), (36864, "36.9k"), (999_960, "1.00M"), (2359296, "2.36M")],
)
def test_numbers_of_weights(number, text):
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("layers", "methods", "trials"),
    [(17, ("BinMask", "ProbMask"), 4), (33, ("BinMask",), 1), (1, SIX, 2)],
)
def test_layers_are_readable(layers, methods, trials):
    figure = plot_layer_sparsity(layer_rows(layers, methods, trials))
    (axes,) = figure.axes
    assert len(axes.texts) == layers * len(methods)
    assert legend_texts(figure) == list(methods)
    assert_all_readable(figure)


def test_layer_bars():
    rows = layer_rows(3, trials=2)
    (axes,) = plot_layer_sparsity(rows.rename(columns={"method": "setting"})).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["conv1 (1728)", "conv2 (2592)", "conv3 (3888)"]
    own = rows[(rows["layer"] == "conv1") & (rows["method"] == "BinMask")]
    np.testing.assert_allclose(axes.patches[0].get_width(), 100 * own["sparsity"].mean())
    left = round(((1 - own["sparsity"]) * 1728).mean())
    assert axes.texts[0].get_text().endswith(f" %, {left}")
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first layer is at the top


def test_layers_without_a_sparsity_have_no_bar():
    rows = layer_rows(3, ("BinMask",), trials=1)
    rows.loc[1, "sparsity"] = np.nan
    assert len(plot_layer_sparsity(rows).axes[0].texts) == 2


@pytest.mark.parametrize("length", [1, 2, 20, 400])
@pytest.mark.parametrize("dense", [False, True])
def test_path(length, dense):
    path = lasso_path(length, dense and length > 1)
    figure = plot_path(path, "LassoNet on isolet")
    upper, lower = figure.axes
    shown = path["lambda"] > 0
    np.testing.assert_array_equal(lower.lines[0].get_ydata(), path["num_selected"][shown])
    np.testing.assert_allclose(upper.lines[1].get_ydata(), path["test_accuracy"][shown])
    assert lower.get_xscale() == "log" and upper.get_xlim() == lower.get_xlim()
    if length > 2:
        assert legend_texts(upper)[2].startswith("chosen: ")
        place = lower.collections[0].get_offsets()[0]
        chosen = path["chosen"]
        np.testing.assert_allclose(place, [path["lambda"][chosen], path["num_selected"][chosen]])
    assert_readable(figure)


def test_path_with_the_least():
    path = {
        n: list(v) for n, v in lasso_path(30, False).items() if n not in ("chosen", "test_accuracy")
    }
    figure = plot_path(path)
    assert legend_texts(figure.axes[0]) == ["validation"]
    assert not figure.axes[0].collections
    narrow = plot_path({**path, "lambda": np.linspace(1.0, 1.6, 30)})
    assert len([t for t in narrow.axes[1].get_xticks() if 1.0 <= t <= 1.6]) >= 3
    assert_readable(narrow)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_selected": None}, "no 'num_selected'"),
        ({"valid_accuracy": [1.0, 2.0]}, "has shape"),
        ({"lambda": np.zeros(20)}, "no lambda"),
        ({"chosen": 20}, "from 0 to 19"),
        ({"chosen": -1}, "from 0 to 19"),
    ],
)
def test_paths_are_checked(change, message):
    with pytest.raises(DataError, match=message):
        plot_path({**lasso_path(20), **change})


def parts_of(table):
    """The cells of each line below the rule, and the notes."""
    lines = table.split("\n")
    body = [line for line in lines[2:] if not line.startswith(("+-", "*"))]
    return [line.replace(" +- ", "+-").split() for line in body], lines[2 + len(body) :]


def test_regularization_table():
    rows = regularization_rows()
    cells, notes = parts_of(regularization_table(rows.to_dict("records")))
    assert [line[0] for line in cells] == [m for m in STRENGTHS for _ in range(5)] + ["LR"]
    for method in STRENGTHS:
        aucs = [float(line[4].split("+-")[0]) for line in cells if line[0] == method]
        assert aucs == sorted(aucs, reverse=True)
    assert cells[0][:2] == ["BinMask", "3e-5"] and cells[0][5] == "*"
    assert cells[-1][1] == "-" and cells[-1][-3:] == ["-"] * 3
    own = rows[(rows["method"] == "BinMask") & (rows["strength"] == 3e-5)]
    mean, half = mean_interval(own["test_auc"])
    assert cells[0][4] == f"{mean:.3f}+-{half:.3f}"
    assert cells[0][6] == f"{own['l0'].mean():.3f}"
    assert notes == ["+- 95 % confidence interval of the mean over trials; * best test AUC"]


def test_marks_of_what_is_not_worse():
    rows = regularization_rows(strengths={"L1": (1.0, 2.0), "L2": (1.0,)})
    noise = np.random.default_rng(1).normal(0, 0.01, 8)
    best = rows["method"].eq("L1") & rows["strength"].eq(1.0)
    rows.loc[best, "test_auc"] = 0.9 + noise
    rows.loc[rows["method"].eq("L2"), "test_auc"] = 0.8995 + noise[::-1]
    text = regularization_table(rows)
    cells, notes = parts_of(text)
    assert {tuple(line[:2]): line[5] for line in cells if line[5] in "*~"} == {
        ("L1", "1"): "*",
        ("L2", "1"): "~",
    }
    assert notes[0].endswith("~ not significantly worse (one-sided t test, p > 0.3)")
    assert all(line == line.rstrip() for line in text.split("\n"))


def test_table_of_single_trials():
    text = regularization_table(regularization_rows(1))
    assert "+-" not in text and "~" not in text
    assert text.endswith("\n* best test AUC")
    nothing = regularization_rows(1).assign(test_auc=None)
    assert "*" not in regularization_table(nothing)


def trials(values, first=0):
    return pd.DataFrame({"trial": range(first, first + len(values)), "test_auc": values})


def test_pvalue_is_paired_where_trials_are_shared():
    a, b = np.random.default_rng(0).normal(0.8, 0.01, (2, 8))
    found = better_pvalue(trials(a), trials(b))
    assert found == pytest.approx(stats.ttest_rel(a, b, alternative="greater").pvalue)
    shuffled = trials(b).sample(frac=1, random_state=0)
    assert better_pvalue(trials(a), shuffled) == pytest.approx(found)
    welch = stats.ttest_ind(a, b, equal_var=False, alternative="greater").pvalue
    assert better_pvalue(trials(a), trials(b, first=8)) == pytest.approx(welch)
    with_nan = trials(np.append(b, np.nan), first=8)
    assert better_pvalue(trials(a), with_nan) == pytest.approx(welch)


def test_pvalue_of_few_or_equal_values():
    assert np.isnan(better_pvalue(trials([0.8]), trials([0.7])))
    same = trials([0.8, 0.9])
    assert better_pvalue(same, same) == 1.0
    assert better_pvalue(same, same.assign(test_auc=same["test_auc"] - 0.1)) == 0.0
    assert better_pvalue(trials([0.8, 0.8]), trials([0.7, 0.7], first=5)) == 0.0


def test_the_marks_of_table_1_follow_from_its_numbers():
    # L1 is the best of the published means, BinMask the only other one in bold: Welch's test on
    # trials with exactly these means and intervals.
    def with_interval(mean, half, first):
        shape = np.array([-1.0, 1.0] * 4)
        return trials(mean + shape * half / mean_interval(shape)[1], first)

    best = with_interval(0.836, 0.007, 0)
    assert better_pvalue(best, with_interval(0.834, 0.006, 10)) > 0.3
    assert better_pvalue(best, with_interval(0.832, 0.007, 20)) < 0.3


@pytest.mark.parametrize("number", [1, 2, 4, 5])
@pytest.mark.parametrize("repeats", [1, 8])
def test_regularization_figures_are_readable(number, repeats):
    strengths = {f"method {i}": (1e-5, 3e-5, 1e-4, 3e-4, 0.5) for i in range(number)}
    figure = plot_regularization(regularization_rows(repeats, strengths))
    assert [axes.get_title() for axes in figure.axes] == list(strengths)
    assert legend_texts(figure) == ["logistic regression"]
    assert_all_readable(figure)


def test_regularization_lines():
    rows = regularization_rows()
    figure = plot_regularization(rows)
    groups = rows[rows["method"] == "L2"].groupby("strength")["test_auc"]
    axes = figure.axes[2]
    np.testing.assert_allclose(axes.containers[0][0].get_ydata(), groups.mean())
    np.testing.assert_allclose(bars_of(axes)[0], [mean_interval(v)[1] for _, v in groups])
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["0.01", "0.1", "1", "10", "50"]
    (band,) = axes.patches
    expected = mean_interval(rows.loc[rows["method"] == "LR", "test_auc"])[1]
    np.testing.assert_allclose(band.get_height(), 2 * expected)
    without = plot_regularization(rows[rows["method"] != "LR"].drop(columns=["l0", "train_auc"]))
    assert not without.legends and not without.axes[0].patches


def test_many_strengths_and_none():
    many = {"BinMask": tuple(np.geomspace(1e-6, 1, 30)), "L1": (1.0,)}
    assert_all_readable(plot_regularization(regularization_rows(1, many)))
    only = plot_regularization(regularization_rows(3, {}))
    assert legend_texts(only) == ["logistic regression"]


def test_means_leave_out_places_that_are_missing():
    rows = pd.DataFrame({"at": [2.0, 1.0, np.nan, 1.0], "value": [5.0, 1.0, 9.0, 3.0]})
    points = means_by(rows, "at", "value")
    np.testing.assert_array_equal(points.places, [1.0, 2.0])
    np.testing.assert_array_equal(points.means, [2.0, 5.0])
    assert np.isnan(points.halves[1]) and points.halves[0] > 0


def test_lines_move_little():
    for number in (1, 2, 6, 12):
        found = shifts(number)
        assert found.shape == (number,) and np.ptp(found) <= 0.03 + 1e-12
        np.testing.assert_allclose(found.sum(), 0.0, atol=1e-12)
    assert shifts(0).size == 0
    np.testing.assert_allclose(np.diff(shifts(3)), 0.007)
