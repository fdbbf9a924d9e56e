"""The figures of IP-CAE's paper and poster."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from scipy import stats

import fsjax
from experiments.papers.figures.rows import Job, Point, point
from experiments.papers.figures.training import Training, curve, trained
from experiments.papers.results import read_results
from fsjax.concrete import parametrisation
from fsjax.method import Method, PyTree, TrainState

#: The data set of all curves and sweeps: the one on which a training takes seconds.
DATA = "mice_protein"

#: Its columns and selected columns, and the steps of an epoch (648 rows in batches of 16).
WIDTH, K, STEPS = 77, 10, 41

METHODS = ("cae", "ip_cae")

#: What is validated, and the test metric, by task.
VALIDATED = {"reconstruction": "valid/loss", "classification": "valid/accuracy"}
TESTED = {"reconstruction": "reconstruction_frobenius", "classification": "embedded_accuracy"}

#: Epochs of a warmup, and weight decays, of Figure 9.
WARMUPS, DECAYS = (50, 100), (1e-3, 1e-1)


def training(method: str, task: str, **changes: Any) -> Training:
    """A training on mice protein; ``fields`` and the other changes are those of Training."""
    return Training(f"ip_cae,{method},{DATA},{task}", **changes)


def curves(task: str, runs: dict[str, Training], every: int = 10) -> list[Point]:
    """Validation metric and unique percentage over the epochs, and the test metric of each run."""
    points = []
    for name, run in runs.items():
        result = trained(run)
        what = VALIDATED[task].replace("/", " ")
        points += curve(task, name, what, result.history[VALIDATED[task]], every)
        unique = result.history["train/unique_percentage"]
        points += curve(task, name, "unique percentage", unique, every)
        points += tested(task, name, "test", run)
    return points


def tested(task: str, series: str, x: float | str, run: Training) -> list[Point]:
    """The test metric of a run, and how far its validation loss rose above an earlier value."""
    result = trained(run)
    loss = result.history["valid/loss"]
    rise = (loss - np.minimum.accumulate(loss, axis=1)).max(axis=1)
    of_task = TESTED[task]
    return [
        point(task, series, x, of_task.replace("_", " "), result.metrics[of_task]),
        point(task, series, x, "largest rise of the loss", rise),
    ]


def by_method(task: str, methods: Sequence[str] = METHODS) -> list[Point]:
    """Figures 1 and 5, and those of the poster."""
    return curves(task, {name: training(name, task) for name in methods})


def instability() -> list[Point]:
    """Figure 1: CAE's curves, and how its loss and its unique percentage go together."""
    history = trained(training("cae", "reconstruction")).history
    pairs = zip(history["valid/loss"], history["train/unique_percentage"], strict=True)
    ranks = [stats.spearmanr(*pair).statistic for pair in pairs]
    points = by_method("reconstruction", ("cae",))
    return [*points, point("reconstruction", "cae", "epochs", "correlation", ranks)]


def forms() -> list[Point]:
    """Figure 3: the forms of W."""
    runs = {"cae": training("cae", "classification"), "full": training("ip_cae", "classification")}
    for form in ("diagonal", "scalar"):
        runs[form] = training("ip_cae", "classification", fields=(("weights", form),))
    return curves("classification", runs)


def embeddings() -> dict[str, Training]:
    """Figures 4 and 8: IP-CAE by P, and CAE."""
    runs = {
        f"P = {size}": training("ip_cae", "reconstruction", fields=(("embedding_dim", size),))
        for size in (2, 10, 38)
    }
    default = {f"P = {WIDTH}": training("ip_cae", "reconstruction")}
    return runs | default | {"cae": training("cae", "reconstruction")}


def errors_by_size() -> list[Point]:
    """Figure 4: the test error by P, with CAE's at each P as a level line."""
    runs = embeddings()
    cae = runs.pop("cae")
    return [
        value
        for name, run in runs.items()
        for series, of in (("ip_cae", run), ("cae", cae))
        for value in tested("reconstruction", series, int(name[4:]), of)
    ]


def decoders() -> list[Point]:
    """Figure 6: test errors by the hidden layers of the decoder."""
    layers = {"linear": (), "one hidden layer": (200,), "two hidden layers": (200, 200)}
    return [
        value
        for method in METHODS
        for name, hidden in layers.items()
        for value in tested(
            "reconstruction",
            method,
            name,
            training(
                method, "reconstruction", fields=() if hidden == (200,) else (("hidden", hidden),)
            ),
        )
    ]


def numbers_of_columns() -> list[Point]:
    """Figure 7: test accuracies by K."""
    task = "classification"
    return [
        value
        for method in METHODS
        for k in (5, K, 20)
        for value in tested(task, method, k, training(method, task, k=None if k == K else k))
    ]


def warmed_up(epochs: int, method: Method) -> Method:
    """CAE with a learning rate that rises from 1e-6 to 1e-3 over the first epochs (B.4)."""
    rate = optax.linear_schedule(1e-6, 1e-3, epochs * STEPS)
    return fsjax.methods.cae(K, noise="row", learning_rate=rate)


def decayed(decay: float, method: Method) -> Method:
    """CAE with weight decay (B.5), which adds to the gradient as in the authors' framework."""
    optimizer = optax.chain(optax.add_decayed_weights(decay), optax.adam(1e-3))
    return fsjax.methods.cae(K, noise="row", optimizer=optimizer)


def conventional() -> list[Point]:
    """Figure 9: CAE with a warmup or weight decay."""
    runs = {name: training(name, "reconstruction") for name in METHODS}
    changes = {f"warmup {n}": functools.partial(warmed_up, n) for n in WARMUPS}
    changes |= {f"decay {value:g}": functools.partial(decayed, value) for value in DECAYS}
    for name, change in changes.items():
        runs[name] = training("cae", "reconstruction", change=change)
    return curves("reconstruction", runs)


def with_norms(form: str, method: Method) -> Method:
    """The method with norms of its parameters, and of the change of its logits, at each epoch.

    ``logits change`` is the norm of the change of log alpha at the last step of the epoch.
    """
    logits = parametrisation(form)

    def of(state: TrainState) -> Array:
        return logits.apply(state.params["selector"])

    def init(*args: Any) -> TrainState:
        state = method.init(*args)
        return state.replace(log={"logits": of(state), "change": jnp.zeros(())})

    def after_step(state: TrainState, *_: Any) -> TrainState:
        change = jnp.linalg.norm(of(state) - state.log["logits"])
        return state.replace(log={"logits": of(state), "change": change})

    def monitor(state: TrainState) -> dict[str, Array]:
        return {**method.monitor(state), **norms(state.params["selector"]), **log_of(state)}

    def log_of(state: TrainState) -> dict[str, Array]:
        return {"logits change": state.log["change"]}

    return method._replace(init=init, after_step=after_step, monitor=monitor)


def norms(selector: PyTree) -> dict[str, Array]:
    """The mean norm of the rows psi_i, and the Frobenius norm of W W^T; none for CAE."""
    if "psi" not in selector:
        return {}
    kernel = selector["kernel"]
    return {
        "psi": jnp.linalg.norm(selector["psi"], axis=1).mean(),
        "W W^T": jnp.linalg.norm(kernel.T @ kernel),
    }


def updates() -> list[Point]:
    """Figure 10: norms of the parts of an update, for classification."""
    points = []
    for name, form in zip(METHODS, ("direct", "full"), strict=True):
        change = functools.partial(with_norms, form)
        history = trained(training(name, "classification", change=change)).history
        for metric in ("logits change", "psi", "W W^T"):
            values = history.get(f"train/{metric}")
            if values is not None:
                points += curve("classification", name, metric, np.asarray(values))
    return points


def run_times() -> list[Point]:
    """Table 7: recorded CPU minutes per seed of 200 epochs, and IP-CAE's relative to CAE's."""
    table = read_results(Path("reproduction/results.csv"))
    of_paper = (table["paper"] == "ip_cae") & table["table"].isin(["1", "2"])
    table = table[of_paper & table["method"].isin(METHODS)]
    minutes = table["cpu_seconds"] / table["seeds"] / 60
    tasks = table["metric"].map({metric: task for task, metric in TESTED.items()})
    cells = zip(tasks, table["method"], table["dataset"], strict=True)
    times = dict(zip(cells, minutes, strict=True))
    points = [Point(*cell, "minutes", value) for cell, value in times.items()]
    for (task, method, dataset), value in times.items():
        if method == "ip_cae":
            ratio = value / times[task, "cae", dataset]
            points.append(Point(task, "ip_cae / cae", dataset, "ratio", ratio))
    return points


def _both(function: Callable[[str], list[Point]]) -> Callable[[], list[Job]]:
    return lambda: [Job(task, functools.partial(function, task)) for task in VALIDATED]


#: The functions that give the jobs of each figure.
FIGURES: dict[str, Callable[[], list[Job]]] = {
    "ip_cae/5": _both(by_method),
    "ip_cae/1": lambda: [Job("cae", instability)],
    "ip_cae_poster/1": lambda: [Job("cae", instability)],
    "ip_cae_poster/3": lambda: [Job("methods", lambda: by_method("classification"))],
    "ip_cae/3": lambda: [Job("forms", forms)],
    "ip_cae/4": lambda: [Job("embeddings", errors_by_size)],
    "ip_cae/8": lambda: [Job("embeddings", lambda: curves("reconstruction", embeddings()))],
    "ip_cae/9": lambda: [Job("changes", conventional)],
    "ip_cae/6": lambda: [Job("decoders", decoders)],
    "ip_cae/10": lambda: [Job("updates", updates)],
    "ip_cae/table7": lambda: [Job("times", run_times)],
    "ip_cae/7": lambda: [Job("sizes", numbers_of_columns)],
}
