"""The figures of CTRE's paper: learning curves, tests between methods, and removal of weights."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy import stats

import fsjax
from experiments.papers.figures.rows import Job, Point, point
from experiments.papers.figures.training import Training, curve, trained
from fsjax.data import load
from fsjax.sparsity.similarity import SIMILARITIES, moments
from fsjax.tables.scaling import apply as scale

#: The smallest network of Table 2, which trains in seconds, and its sparsest setting.
SMALL = (("hidden", (100, 100, 100)), ("epsilon", 1.0))

#: The methods of Table 2 that are sparse.
SPARSE = ("snip", "rigl", "set", "ctre_seq", "ctre_sim")

#: Seeds on Madelon: with four on both sides a Kolmogorov-Smirnov test can have a p-value of 0.03.
SEEDS = 4

#: Epochs on Madelon and ISOLET, of the paper's 500.
MADELON_EPOCHS, ISOLET_EPOCHS = 200, 150

#: The networks of Figure 4, and the shares of the connections that are removed, in percent.
WIDTHS = (200, 200, 200)
NETWORKS = {"dense": (), "set": (("epsilon", 5.0), ("form", "dense"))}
REMOVED = tuple(range(0, 100, 10))

#: Rows that similarities are computed from, and on which the smaller networks are tested.
SAMPLE = 1000


def madelon(method: str, **fields: str) -> Training:
    """A training of the small network on Madelon."""
    return Training(f"ctre,{method},madelon", MADELON_EPOCHS, SMALL + tuple(fields.items()), SEEDS)


def isolet(method: str, **fields: str) -> Training:
    """A training of the small network on ISOLET."""
    return Training(f"ctre,{method},isolet", ISOLET_EPOCHS, SMALL + tuple(fields.items()))


def curves(dataset: str, runs: dict[str, Training], metric: str, every: int = 10) -> list[Point]:
    """A metric on the test rows over the epochs, and its test value at the epoch that is kept."""
    points = []
    for name, run in runs.items():
        result = trained(run)
        values = result.history[f"test/{metric}"]
        points += curve(dataset, name, f"test {metric}", values, every)
        accuracy = result.metrics["embedded_accuracy"]
        points.append(point(dataset, name, "kept", "accuracy of the kept epoch", accuracy))
    return points


def by_method() -> list[Point]:
    """Figure 8: learning curves of the sparse methods on Madelon."""
    return curves("madelon", {method: madelon(method) for method in SPARSE}, "accuracy")


def hebbian() -> list[Point]:
    """Figure 5: similarity with and without norms, on Madelon."""
    runs = {}
    for method in ("ctre_seq", "ctre_sim"):
        runs[method] = madelon(method)
        runs[f"{method}, Hebb"] = madelon(method, similarity="hebb")
    return curves("madelon", runs, "accuracy")


def without_random() -> list[Point]:
    """Figure 7: the test loss with and without random growth, on ISOLET."""
    runs = {method: isolet(method) for method in ("ctre_seq", "ctre_sim")}
    runs["without random"] = isolet("ctre_sim", grow="similar")
    return curves("isolet", runs, "loss")


def ks_tests() -> list[Point]:
    """Table 3: p-values between CTRE, the better of its two variants, and the other methods."""
    samples = {method: trained(madelon(method)).metrics["embedded_accuracy"] for method in SPARSE}
    best = max(("ctre_seq", "ctre_sim"), key=lambda method: samples[method].mean())
    others = [method for method in SPARSE if not method.startswith("ctre")]
    return [
        Point("madelon", "ctre", method, "p-value", stats.ks_2samp(samples[best], values).pvalue)
        for method, values in samples.items()
        if method in others
    ] + [
        point("madelon", name, "", "accuracy of the kept epoch", values)
        for name, values in [("ctre", samples[best]), *((m, samples[m]) for m in others)]
    ]


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
    kept = []
    for layer, score in zip(layers, scores, strict=True):
        order = np.argsort(np.where(layer.active, score, np.inf), axis=None, kind="stable")
        active = layer.active.copy()
        active.flat[order[: round(percent / 100 * layer.active.sum())]] = False
        kept.append(layer._replace(active=active))
    return kept


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


def _jobs(name: str, function: Callable[[], list[Point]]) -> Callable[[], list[Job]]:
    return lambda: [Job(name, function)]


#: The functions that give the jobs of each figure.
FIGURES: dict[str, Callable[[], list[Job]]] = {
    "ctre/8": _jobs("curves", by_method),
    "ctre/table3": _jobs("tests", ks_tests),
    "ctre/5": _jobs("hebb", hebbian),
    "ctre/4": lambda: [
        Job(f"{network}{epochs}", functools.partial(removal, network, epochs))
        for network, epochs in (("dense", 10), ("dense", 50), ("set", 50))
    ],
    "ctre/7": _jobs("loss", without_random),
}
