"""The figures of WAST's paper that need trainings: over epochs, densities and noise."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from ml_collections import ConfigDict

import fsjax
from configs.rewiring import num_features
from experiments.launch.experiment import build_method, evaluated, load_data, make_plan
from experiments.papers.cells import Run
from experiments.papers.figures.rows import Job, Point, point, recorded
from experiments.papers.runs import config_of
from fsjax.method import Batch, PyTree, TrainState
from fsjax.methods.wast import strengths

SEEDS = 3

#: The neural methods of the paper.
NEURAL = ("aefs", "cae", "quick_selection", "wast")

#: Epochs that Figure 5 is drawn at, the densities of Figure 7, and the deviations of Figure 11.
FIRST_EPOCHS = (1, 2, 4, 7, 10)
DENSITIES = (0.8, 0.6, 0.4, 0.2, 0.1)
NOISE = (0.0, 0.8)

#: Columns of Madelon that belong together are correlated, by 0.69 or more; noise is not, by 0.10.
CORRELATED = 0.5

#: The side of MNIST's images, of the square in which its digits are, and of a cell of a map.
SIDE, BOX, CELL = 28, 20, 2


def config_for(method: str, dataset: str, epochs: int | None = None, **options: Any) -> ConfigDict:
    """The protocol of the paper's tables for one K, with three seeds."""
    own_k = num_features(dataset) if method == "cae" else None
    fields = tuple(sorted(options.items()))
    config = config_of(Run("wast", method, dataset, "reconstruction", own_k, epochs, fields), SEEDS)
    config.evaluation.update(protocols=("svm",), num_features=())
    return config


def plan_of(config: ConfigDict, change: Callable[[fsjax.Method], fsjax.Method]) -> fsjax.Plan:
    """The plan of a configuration, whose method is changed first."""
    options = {"task": config.task, "num_features": config.num_features, "progress": False}
    return make_plan(config, change(build_method(config)), load_data(config), **options)


def accuracies(config: ConfigDict) -> list[float]:
    """The accuracy of the support vector machine on the columns of each seed, in percent."""
    result = plan_of(config, lambda method: method).fit()[0]
    return list(evaluated(config, result, load_data(config)).metrics["svm_accuracy"])


def after_epochs(method: str, dataset: str) -> list[Point]:
    """Figure 5: accuracy after the first epochs, each from a training of that length."""
    return [
        point(dataset, method, e, "svm_accuracy", accuracies(config_for(method, dataset, e)))
        for e in FIRST_EPOCHS
    ]


def by_density(dataset: str) -> list[Point]:
    """Figure 7: accuracy of WAST at each sparsity, in percent."""
    points = []
    for density in DENSITIES:
        values = accuracies(config_for("wast", dataset, density=density))
        points.append(point(dataset, "wast", round(100 * (1 - density)), "svm_accuracy", values))
    return points


def with_noise(method: str, dataset: str) -> list[Point]:
    """Figure 11: accuracy with noise on the scaled training rows, and the loss by it."""
    points, clean = [], np.zeros(SEEDS)
    for deviation in NOISE:
        config = config_for(method, dataset)
        config.data.noise_std = deviation
        values = np.array(accuracies(config))
        clean = values if deviation == 0.0 else clean
        points.append(point(dataset, method, deviation, "svm_accuracy", values))
        points.append(point(dataset, method, deviation, "loss_of_accuracy", clean - values))
    return points


def terms(dataset: str) -> list[Point]:
    """Figure 8: the two terms of the importance of an input neuron, as means over the neurons.

    The sensitivity is the mean absolute residual, as in the authors' code, over the steps of each
    epoch; the strength is that at its end.
    """

    def recorded(method: fsjax.Method) -> fsjax.Method:
        def loss(
            params: PyTree, state: TrainState, batch: Batch[Array], key: Array
        ) -> tuple[Array, dict[str, Array]]:
            value, aux = method.training_loss(params, state, batch, key)
            return value, {**aux, "sensitivity": jnp.mean(aux["residual"])}

        def monitor(state: TrainState) -> dict[str, Array]:
            return {"strength": jnp.mean(strengths(state.params)["input_importance"])}

        return method._replace(loss=loss, record=("sensitivity",), monitor=monitor)

    history = plan_of(config_for("wast", dataset), recorded).train().history
    return [
        point(dataset, name, epoch, "mean", values)
        for name in ("sensitivity", "strength")
        for epoch, values in enumerate(history[f"train/{name}"].T, start=1)
    ]


def informative(dataset: str) -> np.ndarray:
    """``(D,)``: Madelon's columns that are not noise; the box of MNIST's digits."""
    if dataset == "madelon":
        related = np.corrcoef(np.asarray(fsjax.data.load(dataset).X, float).T) - np.eye(500)
        return np.abs(related).max(axis=1) > CORRELATED
    inside = np.abs(np.arange(SIDE) - (SIDE - 1) / 2) < BOX / 2
    return np.outer(inside, inside).ravel()


def attention(dataset: str, method: str, update: str, epochs: int) -> list[Point]:
    """Figures 6 and 10: where the input's connections are, if they change each step or epoch."""
    columns = jnp.asarray(informative(dataset), jnp.float32)

    def recorded(method: fsjax.Method) -> fsjax.Method:
        def monitor(state: TrainState) -> dict[str, Array]:
            counts = state.masks["layer_0"]["kernel"].sum(axis=1)
            return {"share": 100.0 * (columns @ counts) / counts.sum()}

        return (stepwise(method) if own_steps else method)._replace(monitor=monitor)

    own_steps = method == "quick_selection" and update == "step"
    options = {"update": update} if method == "wast" else {"form": "dense"}
    # What is recorded after an epoch, and kept at the end, does not have its change yet.
    late = int(update == "epoch")
    trained = plan_of(config_for(method, dataset, epochs + late, **options), recorded).train()
    series = f"{method}, each {update}"
    points = [Point(dataset, series, 0, "share", 100.0 * informative(dataset).mean())]
    for epoch, values in enumerate(trained.history["train/share"].T[late:], start=1):
        points.append(point(dataset, series, epoch, "share", values))
    if dataset == "mnist":
        counts = np.asarray(trained.states.masks["layer_0"]["kernel"]).sum(axis=2)
        cells = counts.reshape(-1, SIDE // CELL, CELL, SIDE // CELL, CELL).mean(axis=(2, 4))
        for place, values in enumerate(cells.reshape(len(cells), -1).T):
            points.append(point("", series, place, "connections", values))
    return points


def stepwise(method: fsjax.Method) -> fsjax.Method:
    """QuickSelection whose topology changes after each step; its random rule reads no rows."""

    def after_step(state: TrainState, *arguments: Any) -> TrainState:
        return method.after_epoch(method.after_step(state, *arguments), *arguments[-2:])

    return method._replace(after_step=after_step, after_epoch=lambda state, data, key: state)


def jobs(function: Callable[..., list[Point]], arguments: Iterable[tuple[Any, ...]]) -> list[Job]:
    """A job for each tuple of arguments."""
    return [
        Job("-".join(map(str, values)), functools.partial(function, *values))
        for values in arguments
    ]


#: The functions that give the jobs of each figure.
FIGURES: dict[str, Callable[[], list[Job]]] = {
    "wast/5": lambda: jobs(
        after_epochs, [(m, d) for d in ("madelon", "coil20", "pcmac") for m in NEURAL]
    ),
    "wast/6": lambda: jobs(
        attention,
        [
            (dataset, *how, epochs)
            for dataset, epochs in (("mnist", 2), ("madelon", 10))
            for how in (("wast", "step"), ("quick_selection", "epoch"))
        ],
    ),
    "wast/7": lambda: jobs(by_density, [(d,) for d in ("madelon", "usps", "coil20")]),
    "wast/8": lambda: jobs(terms, [(d,) for d in ("madelon", "usps", "coil20")]),
    "wast/10": lambda: [
        *jobs(attention, [("mnist", "quick_selection", "step", 1), ("mnist", "wast", "epoch", 1)]),
        Job(
            "figure-6", lambda: [p for p in recorded("wast/6") if p.panel == "mnist" and p.x != "2"]
        ),
    ],
    "wast/11": lambda: jobs(with_noise, [(method, "coil20") for method in NEURAL]),
}
