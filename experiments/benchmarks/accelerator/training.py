"""The time of a training step with 1, 10 and 100 seeds in one program, and what bounds it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import fsjax
from experiments.benchmarks import costs, timing
from experiments.benchmarks.accelerator.pieces import Piece, Size
from fsjax import methods

#: Seeds that are trained in one program.
SEEDS: dict[Size, tuple[int, ...]] = {"full": (1, 10, 100), "tiny": (1, 2)}


class Training(NamedTuple):
    """A method and the random table on which it is timed.

    Attributes:
      method: the method.
      rows, columns, classes: of the table; ``classes=0`` is a reconstruction.
      batch_size: rows of a step.
      epochs: of the training.
    """

    method: fsjax.Method
    rows: int
    columns: int
    classes: int
    batch_size: int
    epochs: int


def trainings(size: Size) -> dict[str, Training]:
    """The trainings by name, at the sizes of the papers' tables."""
    if size == "tiny":
        hidden: dict[str, Any] = {"hidden": (4,)}
        return {
            "ip_cae": Training(methods.ip_cae(2, noise="row", hidden=(4,)), 16, 6, 0, 8, 1),
            "binmask": Training(methods.binmask(search=False, **hidden), 16, 6, 2, 8, 1),
        }
    sparse: dict[str, Any] = {"hidden": (1000, 1000, 1000), "epsilon": 10.0}
    return {
        # COIL-20 (IP-CAE, table 1) and Madelon (WAST); ISOLET (CTRE); MNIST (BinMask).
        "ip_cae": Training(methods.ip_cae(50, noise="row"), 864, 1024, 0, 16, 4),
        "wast": Training(methods.wast(), 2000, 500, 0, 128, 10),
        "set": Training(methods.set(**sparse), 6144, 617, 26, 128, 4),
        "ctre_sim": Training(methods.ctre_sim(**sparse), 6144, 617, 26, 128, 4),
        "binmask": Training(
            methods.binmask(search=False, hidden=(512, 512)), 6144, 784, 10, 128, 4
        ),
        "lassonet": Training(methods.lassonet(hidden=(200,)), 864, 1024, 20, 864, 100),
    }


def images(size: Size) -> dict[str, Training]:
    """BinMask on the convolutional networks of its figure 2, at the shape of CIFAR-10."""
    if size == "tiny":
        return {}
    rows = 5120
    return {
        f"binmask, {network}": Training(
            methods.binmask(masked="weights", network=network, batch_norm=True),
            *(rows, 3072, 10, 256, 2),
        )
        for network in ("resnet32", "vgg19")
    }


@functools.cache
def planned(training: Training, num_seeds: int) -> fsjax.Plan:
    """Plans a training with some seeds."""
    return timing.random_plan(
        *(training.method, training.rows, training.columns, training.classes),
        seeds=range(num_seeds),
        batch_size=training.batch_size,
        num_epochs=training.epochs,
        task="classification" if training.classes else "reconstruction",
        best_by="last",
        image_shape=(32, 32, 3) if training.columns == 3072 else None,
    )


def time_steps(training: Training, num_seeds: int) -> dict[str, float]:
    """Milliseconds of a step of all seeds together, with what happens once per epoch."""
    plan = planned(training, num_seeds)
    steps = plan.spec.steps_per_epoch * training.epochs
    values = timing.training(plan, steps)
    return {"ms_per_step": values["wall_ms"], "compile_seconds": values["compile_seconds"]}


def compile_steps(training: Training, num_seeds: int) -> None:
    """Compiles the program of :func:`time_steps` and trains nothing."""
    planned(training, num_seeds).train(idle=[True] * num_seeds)


def time_images(training: Training) -> dict[str, float]:
    """Seconds of an epoch of the 50,000 training images of CIFAR-10, and hours of 300 epochs."""
    milliseconds = time_steps(training, 1)["ms_per_step"]
    seconds = milliseconds / 1e3 * math.ceil(50_000 / training.batch_size)
    return {
        "ms_per_step": milliseconds,
        "seconds_per_epoch": seconds,
        "hours_of_300_epochs": seconds * 300 / 3600,
    }


def count(training: Training) -> dict[str, float]:
    """Operations and bytes of one step of one seed, by XLA's analysis of the compiled program."""
    cost = costs.analysis(training.method, planned(training, 1), training.batch_size)
    return {"mflop": cost["flops"] / 1e6, "mib": cost["bytes accessed"] / 2**20}


def pieces(size: Size) -> dict[str, Piece]:
    """The pieces by name."""
    by_name = {}

    def add(name: str, run: Callable[..., Mapping[str, float]], *args: Any) -> None:
        preparation = None if run is count else functools.partial(compile_steps, *args)
        by_name[name] = Piece(functools.partial(run, *args), preparation)

    for name, training in trainings(size).items():
        for num_seeds in SEEDS[size]:
            add(f"step/{name}, {num_seeds} seeds", time_steps, training, num_seeds)
        add(f"count/{name}", count, training)
    for name, training in images(size).items():
        by_name[f"images/{name}"] = Piece(
            functools.partial(time_images, training), functools.partial(compile_steps, training, 1)
        )
    return by_name
