"""One-shot pruning after training: SparseGPT, Wanda and RIA compared with magnitude pruning.

    python -m experiments.studies.sparsity.one_shot --out=reproduction/one_shot.csv

trains dense networks and removes half of the connections, unstructured or 2:4, of the layers whose
number of inputs is divisible by 4. It measures loss and accuracy on the test rows before and after.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pandas as pd
from absl import flags

from experiments.launch import cli
from experiments.studies.sparsity.networks import Problem, cross_entropy, problem
from experiments.studies.sparsity.train import train
from fsjax import sparsity
from fsjax.sparsity.structures import Structure
from fsjax.storage.atomic_files import write_text
from fsjax.typing import PyTree

#: Structures by name; each keeps half of the connections.
STRUCTURES: dict[str, Structure | None] = {"unstructured": None, "2:4": sparsity.n_of_m(2, 4)}

#: Methods that look at calibration rows, by name.
CALIBRATED: dict[str, Callable[..., sparsity.PrunedNetwork]] = {
    "SparseGPT": sparsity.brain_surgeon,
    "Wanda": sparsity.wanda,
    "RIA": sparsity.ria,
}


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("out", "reproduction/one_shot.csv", "Table.")
    flags.DEFINE_list("networks", ["mlp", "lenet5"], "Networks to prune.")
    flags.DEFINE_integer("seeds", 3, "Number of seeds.", lower_bound=1)
    flags.DEFINE_integer("steps", 0, "Training steps; 0 for the default of the network.", 0)
    flags.DEFINE_integer("rows", 512, "Calibration rows.", lower_bound=1)


def main() -> None:
    """Trains and prunes the networks, and writes the table."""
    options = flags.FLAGS
    rows = []
    for name in options.networks:
        chosen = problem(name)
        trained = train(chosen, None, range(options.seeds), options.steps or chosen.steps)
        for seed, params in enumerate(trained.params):
            networks = {("dense", "none"): params}
            for label, structure in STRUCTURES.items():
                networks[label, "magnitude"] = by_magnitude(params, structure)
                for method, prune in CALIBRATED.items():
                    networks[label, method] = calibrated(
                        prune, chosen, params, structure, options.rows
                    )
            for (label, method), network in networks.items():
                loss, accuracy = test(chosen, network)
                rows.append((name, label, method, seed, round(loss, 4), round(accuracy, 2)))
                print(*rows[-1], flush=True)
    columns = ["network", "structure", "method", "seed", "loss", "accuracy"]
    write_text(options.out, pd.DataFrame(rows, columns=columns).to_csv(index=False))


def has_groups_of_four(path: tuple[str, ...], leaf: jax.Array) -> bool:
    """Chooses kernels whose number of inputs is divisible by 4; in LeNet-5, the dense layers."""
    return sparsity.is_kernel(path, leaf) and leaf.shape[-2] % 4 == 0


def by_magnitude(params: PyTree, structure: Structure | None) -> PyTree:
    """Keeps the largest half of the weights of each layer, or of each group of four."""
    recipe = sparsity.magnitude_ste(
        None if structure else 0.5, structure=structure, distribution="uniform"
    )
    masks = recipe.initial_masks(jax.random.key(0), params, has_groups_of_four)
    return sparsity.apply_masks(params, masks)


def calibrated(
    prune: Callable[..., sparsity.PrunedNetwork],
    chosen: Problem,
    params: PyTree,
    structure: Structure | None,
    rows: int,
) -> PyTree:
    """Keeps half of the weights according to calibration rows."""
    return prune(
        chosen.model.apply,
        params,
        jnp.asarray(chosen.train[0][:rows]),
        density=None if structure else 0.5,
        structure=structure,
        where=has_groups_of_four,
    ).params


def test(chosen: Problem, params: PyTree) -> tuple[float, float]:
    """Loss and accuracy, in percent, on the test rows."""
    scores = jnp.asarray(jax.jit(chosen.model.apply)(params, chosen.test[0]))
    classes = jnp.asarray(chosen.test[1])
    accuracy = 100 * jnp.mean(scores.argmax(-1) == classes)
    return float(cross_entropy(scores, classes)), float(accuracy)


if __name__ == "__main__":
    cli.run(main, define_flags)
