"""CPU time of a training step by recipe, beside that of the dense network.

    python -m experiments.studies.sparsity.step_cost

trains all recipes in turns, a block of steps each, so that other load on the machine affects all of
them, and prints the medians of the blocks and of their ratios to the dense block of the same turn.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np
from absl import flags

from experiments.launch import cli
from experiments.studies.sparsity.networks import problem
from experiments.studies.sparsity.train import programs, recipes


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("network", "mlp", "Network to train.")
    flags.DEFINE_float("density", 0.1, "Share of connections.", lower_bound=0.0)
    flags.DEFINE_list("recipes", ["magnitude", "SET", "RigL"], "Recipes beside the dense network.")
    flags.DEFINE_integer("turns", 30, "Blocks of each recipe.", lower_bound=1)
    flags.DEFINE_integer("every", 100, "Steps of a block, with one change.", lower_bound=1)


def main() -> None:
    """Measures all recipes and prints a table."""
    options = flags.FLAGS
    chosen = problem(options.network)
    # Pruning begins after an eighth of the steps and ends after three quarters: these are measured.
    steps = 8 * options.every * options.turns // 5
    unmeasured = max(1, steps // 8)
    settings = {"dense": None} | {
        name: recipe
        for name, recipe in recipes(options.density, steps, options.every).items()
        if name in options.recipes
    }
    runs = {}
    for name, recipe in settings.items():
        start, step = programs(chosen, recipe, steps)
        runs[name] = (step, list(start(0)))
        block(*runs[name], 0, unmeasured)
    blocks: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(options.turns):
        for name, run in runs.items():
            blocks[name].append(block(*run, unmeasured + turn * options.every, options.every))
    dense = np.array(blocks["dense"])
    print("recipe, CPU ms a step, ratio to dense")
    for name, times in blocks.items():
        print(f"{name}, {np.median(times):.2f}, {np.median(np.array(times) / dense):.2f}")


def block(step: Any, state: list[Any], first: int, count: int) -> float:
    """CPU milliseconds per step of some steps, which change ``state``."""
    before = time.process_time()
    for number in range(first, first + count):
        state[:2] = step(*state, 0, number)
    jax.block_until_ready(state[0])
    return 1000 * (time.process_time() - before) / count


if __name__ == "__main__":
    cli.run(main, define_flags)
