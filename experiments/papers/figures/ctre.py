"""The figures of CTRE's paper: what recorded cells say of its curves, and removal of weights."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import fsjax
from experiments.papers.figures.rows import Job, Point, point
from experiments.papers.figures.training import Training, trained
from experiments.papers.results import read_results
from fsjax.data import load
from fsjax.sparsity.similarity import SIMILARITIES, moments
from fsjax.tables.scaling import apply as scale

#: The sparse methods of Table 2, CTRE's variants, and the words of the metrics.
SPARSE = ("snip", "rigl", "set", "ctre_seq", "ctre_sim")
CTRE = ("ctre_sim", "ctre_seq")
WORDS = {"embedded_accuracy": "accuracy, %", "training_delay_pct": "training delay, %"}

#: The networks of Figure 4, and the shares of the connections that are removed, in percent.
WIDTHS = (200, 200, 200)
NETWORKS = {"dense": (), "set": (("epsilon", 5.0), ("form", "dense"))}
REMOVED = tuple(range(0, 100, 10))

#: Rows that similarities are computed from, and on which the smaller networks are tested.
SAMPLE = 1000


def recorded(
    table: str, datasets: Sequence[str], metric: str = "embedded_accuracy"
) -> dict[tuple[str, str, str], Point]:
    """The cells of a table that were run, as points: by data set, method, and network.

    A network is named by its neurons per layer and epsilon, as ``100, 1``; a method by its options
    as well, as ``ctre_sim hebb``.
    """
    rows = read_results(Path("reproduction/results.csv"))
    chosen = (rows["paper"] == "ctre") & (rows["table"] == table) & (rows["metric"] == metric)
    points = {}
    for row in rows[chosen & rows["dataset"].isin(datasets)].itertuples():
        fields = dict(field.split("=", 1) for field in row.setting.split(";"))
        hidden, epsilon = fields.pop("hidden"), fields.pop("epsilon", "dense")
        options = [value for name, value in fields.items() if name in ("similarity", "grow")]
        name = " ".join([row.method, *options])
        network = f"{hidden.strip('()').split(',')[0]}, {epsilon}"
        value = Point(row.dataset, name, network, WORDS[metric], row.mean, row.std, row.seeds)
        points[value.panel, value.series, network] = value
    # By neurons and then by epsilon.
    return dict(sorted(points.items(), key=lambda item: _size(item[0][2])))


def _size(network: str) -> tuple[int, float]:
    hidden, epsilon = network.split(", ")
    return int(hidden), float(epsilon) if epsilon != "dense" else np.inf


def accuracies(*datasets: str, networks: Sequence[str] = ()) -> list[Point]:
    """Table 2: test accuracies of the sparse methods, in some or all networks."""
    return [
        value
        for value in recorded("2", datasets).values()
        if value.series in SPARSE and (not networks or value.x in networks)
    ]


def with_delays(*datasets: str, networks: Sequence[str] = ()) -> list[Point]:
    """Accuracies, and Table 6: how soon the learning curves reach 0.9 of the best accuracy."""
    delays = recorded("6", datasets, "training_delay_pct").values()
    of_networks = [value for value in delays if not networks or value.x in networks]
    return [*accuracies(*datasets, networks=networks), *of_networks]


def better_variant() -> list[Point]:
    """Table 3: the better variant of CTRE in each cell, and the other methods."""
    cells = recorded("2", ("madelon", "isolet", "mnist"))
    points = []
    for (dataset, name, network), value in cells.items():
        if name == "ctre_sim":
            pair = value, cells[dataset, "ctre_seq", network]
            points.append(max(pair, key=lambda v: v.mean)._replace(series="ctre"))
        elif name in ("snip", "rigl", "set"):
            points.append(value)
    return points


def of_table(table: str, dataset: str, names: Sequence[str]) -> list[Point]:
    """The accuracies of methods with options, on one data set."""
    return [value for value in recorded(table, (dataset,)).values() if value.series in names]


class Layer(NamedTuple):
    """A layer of one seed: weights ``(I, O)``, biases ``(O,)``, and which weights there are."""

    weights: np.ndarray
    bias: np.ndarray
    active: np.ndarray


def layers_of(result: fsjax.FitResult, seed: int) -> list[Layer]:
    """The layers of a seed at its kept epoch, from the input on."""
    layers = []
    for number in range(len(result.states.params)):
        name = f"layer_{number}"
        kernel, bias = (
            np.asarray(result.states.params[name][part][seed]) for part in ("kernel", "bias")
        )
        active = np.ones(kernel.shape, bool)
        if result.states.masks:
            active = np.asarray(result.states.masks[name]["kernel"][seed], bool)
        layers.append(Layer(kernel, bias, active))
    return layers


def values_of(layers: list[Layer], x: np.ndarray) -> list[np.ndarray]:
    """The values of the inputs and of each layer of ReLU neurons; the last ones are logits."""
    values = [x]
    for number, layer in enumerate(layers):
        sums = values[-1] @ (layer.weights * layer.active) + layer.bias
        values.append(sums if number == len(layers) - 1 else np.maximum(sums, 0.0))
    return values


def importance(layers: list[Layer], x: np.ndarray, seed: int) -> Iterator[tuple[str, list]]:
    """The criteria of section 5.2: for each its name and the importance of every weight."""
    yield "magnitude", [np.abs(layer.weights) for layer in layers]
    values = [jnp.asarray(value, jnp.float32) for value in values_of(layers, x)]
    cosine = SIMILARITIES["cosine"]
    yield "cosine", [np.asarray(cosine(moments(*pair))) for pair in itertools.pairwise(values)]
    generator = np.random.default_rng(seed)
    yield "random", [generator.random(layer.weights.shape) for layer in layers]


def without(layers: list[Layer], scores: list[np.ndarray], percent: int) -> list[Layer]:
    """The layers without the given share of the connections of lowest score in each layer."""
    smaller = []
    for layer, score in zip(layers, scores, strict=True):
        order = np.argsort(np.where(layer.active, score, np.inf), axis=None, kind="stable")
        active = layer.active.copy()
        active.flat[order[: round(percent / 100 * layer.active.sum())]] = False
        smaller.append(layer._replace(active=active))
    return smaller


def removal(network: str, epochs: int) -> list[Point]:
    """Figure 4: test accuracy after connections are removed, in both orders."""
    run = Training(f"ctre,{network},isolet", epochs, (("hidden", WIDTHS), *NETWORKS[network]))
    result, dataset = trained(run), load("isolet")
    assert dataset.y is not None
    accuracies: dict[tuple[str, str, int], list[float]] = {}
    for seed, (scaler, split) in enumerate(zip(result.scalers, result.splits, strict=True)):
        x = scale(scaler, dataset.table.block(split.train[:SAMPLE], np.arange(617)))
        rows = scale(scaler, dataset.table.block(split.test, np.arange(617)))
        layers = layers_of(result, seed)
        for name, scores in importance(layers, x, seed):
            for order, sign in (("least first", 1.0), ("most first", -1.0)):
                for percent in REMOVED:
                    smaller = without(layers, [sign * score for score in scores], percent)
                    hits = values_of(smaller, rows)[-1].argmax(axis=1) == dataset.y[split.test]
                    accuracies.setdefault((order, name, percent), []).append(100.0 * hits.mean())
    return [
        point(f"{network}, {epochs} epochs, {order}", name, percent, "accuracy", values)
        for (order, name, percent), values in accuracies.items()
    ]


def _job(
    function: Callable[..., list[Point]], *args: Any, **options: Any
) -> Callable[[], list[Job]]:
    return lambda: [Job("cells", functools.partial(function, *args, **options))]


#: The functions that give the jobs of each figure.
FIGURES: dict[str, Callable[[], list[Job]]] = {
    "ctre/2": _job(with_delays, "madelon", "isolet", networks=("1000, 1",)),
    "ctre/4": lambda: [
        Job(f"{network}{epochs}", functools.partial(removal, network, epochs))
        for network, epochs in (("dense", 10), ("dense", 50), ("set", 50))
    ],
    "ctre/5": _job(of_table, "5", "madelon", [*CTRE, *(f"{name} hebb" for name in CTRE)]),
    "ctre/7": _job(of_table, "4", "isolet", [*CTRE, "ctre_sim similar"]),
    "ctre/8": _job(with_delays, "madelon"),
    "ctre/9": _job(with_delays, "isolet"),
    "ctre/10": _job(with_delays, "mnist"),
    "ctre/table3": _job(better_variant),
}
