"""Measures how the cost of training grows: ``python -m experiments.benchmarks.growth``.

Varies D (columns), N (rows), K (selected columns), the width of the hidden layer and the number of
seeds one at a time, and measures the CPU time of an epoch of all seeds on one core, the minimum of
three, and the memory that its program needs. A size whose states need more than
:data:`MAX_BYTES`, or that follows one whose epoch takes more than :data:`MAX_SECONDS`, is left out.
Rows that ``--table`` already has are not measured again; the picture shows all rows.
``BENCHMARKS.md`` lists the exponents.
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from absl import flags
from matplotlib.figure import Figure

import fsjax
from experiments.artifacts.markdown import continue_table
from experiments.benchmarks.timing import random_plan
from experiments.launch import cli
from fsjax.engine import seeds
from fsjax.report import save_figure, style

#: The base sizes, and for each size the values that it takes while the others stay.
BASE = {"D": 512, "N": 512, "K": 16, "hidden": 128, "seeds": 1}
SIZES: dict[str, tuple[int, ...]] = {
    "D": (256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576),
    "N": (256, 1024, 4096, 16_384, 65_536),
    "K": (8, 16, 32, 64, 128),
    "hidden": (64, 128, 256, 512, 1024),
    "seeds": (1, 10, 100),
}

#: The sizes in words.
NAMES = {
    "D": "columns D",
    "N": "rows N",
    "K": "selected columns K",
    "hidden": "width of the hidden layer",
    "seeds": "seeds",
}

#: Methods with their non-default arguments. Without a search there is exactly one training.
METHODS: dict[str, dict[str, Any]] = {
    "wast": {},
    "ip_cae": {},
    "stg": {"search": False, "hidden": (400, 200)},
    "set": {},
    "binmask": {"search": False},
}

#: Batch size and number of classes.
BATCH, CLASSES = 64, 4

#: The work (:mod:`fsjax.engine.programs`) for which programs of all sizes are compiled.
WORK = 1e9

#: The shortest measurement in seconds; short epochs are repeated.
MIN_SECONDS = 0.1

#: The most bytes of the states of all seeds; training needs about four times as many.
MAX_BYTES = 3 * 2**30

#: The longest epoch in seconds; larger sizes are left out.
MAX_SECONDS = 3.0

#: The exponent is fitted to the largest sizes, where constant costs hardly count.
LARGEST = 3


def plan_of(method: str, size: Mapping[str, int]) -> fsjax.Plan:
    """Plans a training on random rows, without validation."""
    options = {**METHODS[method], "hidden": (size["hidden"],)}
    build = fsjax.methods.METHODS[method]
    if build.registration.takes_number:
        options["num_features"] = size["K"]
    return random_plan(
        build(**options),
        *(size["N"], size["D"], CLASSES),
        seeds=range(size["seeds"]),
        num_features=size["K"],
        batch_size=BATCH,
        num_epochs=100,
        seed_axis="map",
    )


class Cost(NamedTuple):
    """The cost of an epoch of all seeds after compilation.

    Attributes:
      ms: CPU milliseconds, the minimum of three.
      mib: MiB of the arguments, results and temporary arrays of its program.
    """

    ms: float
    mib: float


def cost(method: str, size: Mapping[str, int]) -> Cost | None:
    """Measures an epoch; ``None`` if its states need more than :data:`MAX_BYTES`."""
    planned = plan_of(method, size)
    hyper = {name: np.full(size["seeds"], v, np.float32) for name, v in planned.hyper.items()}
    arrays = jax.device_put(planned.prepared.arrays)
    numbers, structure = np.arange(size["seeds"], dtype=np.uint32), planned.structure
    init = functools.partial(seeds.init_seeds.function, structure=structure, spec=planned.spec)
    shapes = jax.tree.leaves(jax.eval_shape(init, numbers, hyper, planned.usable, arrays))
    if sum(math.prod(shape.shape) * shape.dtype.itemsize for shape in shapes) > MAX_BYTES:
        return None
    states = seeds.init_seeds(
        numbers, hyper, planned.usable, arrays, structure=structure, spec=planned.spec
    )
    states, epoch = jax.device_put(states), np.ones(size["seeds"], np.int32)
    layout: dict[str, Any] = {"axis": "map", "batch_devices": 1}
    epochs = seeds.train_seeds.compiled(
        states, arrays, epoch, work=WORK, structure=structure, **layout
    )

    def seconds(states: Any, count: int) -> tuple[float, Any]:
        started = time.process_time()
        states, *_ = jax.block_until_ready(epochs(states, arrays, count * epoch))
        return time.process_time() - started, states

    _, states = seconds(states, 1)
    first, states = seconds(states, 1)
    count = max(1, min(64, math.ceil(MIN_SECONDS / max(first, 1e-4))))
    fastest = math.inf
    for _ in range(3):
        elapsed, states = seconds(states, count)
        fastest = min(fastest, elapsed / count)
    needed: Any = epochs.memory_analysis()
    parts = (
        needed.argument_size_in_bytes,
        needed.output_size_in_bytes,
        needed.temp_size_in_bytes,
        -needed.alias_size_in_bytes,
    )
    return Cost(1e3 * fastest, sum(parts) / 2**20)


def measure(method: str, axis: str) -> dict[str, str]:
    """Measures a row of the table: the costs of a method at all values of a size, the exponent."""
    costs: dict[int, Cost] = {}
    for size in SIZES[axis]:
        value = cost(method, {**BASE, axis: size})
        if value is None:
            break
        costs[size] = value
        if value.ms > 1e3 * MAX_SECONDS:
            break
    sizes = list(costs)
    return {
        "method and what grows": f"{method}, {axis}",
        "sizes": ", ".join(map(str, sizes)),
        "CPU ms of an epoch": ", ".join(f"{value.ms:.4g}" for value in costs.values()),
        "exponent": f"{exponent(sizes, [value.ms for value in costs.values()]):.2f}",
        "MiB": ", ".join(f"{value.mib:.4g}" for value in costs.values()),
        "exponent of MiB": f"{exponent(sizes, [value.mib for value in costs.values()]):.2f}",
    }


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The slope over the largest sizes on log-log axes, by least squares, to 0.01."""
    logs = np.log(sizes[-LARGEST:]), np.log(costs[-LARGEST:])
    return round(float(np.polyfit(*logs, 1)[0]), 2) + 0.0  # Without a sign of zero.


def draw(table: pd.DataFrame) -> Figure:
    """Draws a panel for each size, with a line for each method."""
    figure = style.new_figure(5.6)
    panels = figure.subplots(2, 3, sharey=True).ravel()
    palette = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.GREY)
    colors = dict(zip(METHODS, palette, strict=True))
    for row in table.itertuples(index=False):
        method, axis = row[0].split(", ")
        sizes, costs = ([float(number) for number in text.split(", ")] for text in row[1:3])
        axes = panels[list(SIZES).index(axis)]
        axes.loglog(sizes, costs, "o-", color=colors[method], markersize=3, label=method)
    for number, (axes, axis) in enumerate(zip(panels, SIZES, strict=False)):
        label = "CPU ms of an epoch" if number in (0, 3) else ""
        style.finish(axes, xlabel=NAMES[axis], ylabel=label, which="both")
        ticks = SIZES[axis] if len(SIZES[axis]) < 6 else SIZES[axis][::2]
        axes.set_xticks(ticks, [f"{size // 1024}k" if size > 9999 else str(size) for size in ticks])
        axes.minorticks_off()
    panels[-1].axis("off")
    panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center", frameon=False)
    return figure


def main() -> None:
    """Measures the missing rows and draws all of them."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = {
        f"{method}, {axis}": functools.partial(measure, method, axis)
        for method in METHODS
        for axis in SIZES
    }
    table = continue_table(Path(flags.FLAGS.table), rows)
    save_figure(draw(table), flags.FLAGS.picture)
    print(table.to_string(index=False))


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("table", "docs/tables/growth.md", "Markdown table; measured rows are kept.")
    flags.DEFINE_string("picture", "docs/pictures/growth.png", "File of the picture.")


if __name__ == "__main__":
    cli.run(main, define_flags)
