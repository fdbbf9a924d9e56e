"""Accuracy against density of the recipes of sparse training, on several networks.

    python -m experiments.studies.sparsity.accuracy --network=lenet5 --out=reproduction/recipes.csv

trains every recipe at every density with all seeds, appends each result to the table as soon as it
is available, and saves a plot of the table next to it. If the table exists, only what is missing is
trained.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from absl import flags
from matplotlib.figure import Figure

from experiments.launch import cli
from experiments.studies.sparsity.networks import problem
from experiments.studies.sparsity.train import recipes, train
from fsjax.sparsity import Recipe

NETWORKS = ("mlp", "lenet5", "resnet8", "transformer")

TITLES = {
    "mlp": "784-300-100-10, MNIST",
    "lenet5": "LeNet-5, CIFAR-10 subset",
    "resnet8": "ResNet-8, CIFAR-10 subset",
    "transformer": "transformer, characters",
}

#: Columns that identify a row; the other columns are results.
KEY = ["network", "recipe", "target", "seeds", "steps"]


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_enum("network", None, NETWORKS, "Network to train.")
    flags.DEFINE_string("out", "reproduction/recipes.csv", "Table; the plot is saved next to it.")
    flags.DEFINE_list("densities", ["0.5", "0.2", "0.1", "0.05", "0.02"], "Shares of connections.")
    flags.DEFINE_list("recipes", [], "Recipes to train; all by default.")
    flags.DEFINE_integer("seeds", 3, "Number of seeds.", lower_bound=1)
    flags.DEFINE_integer("steps", 0, "Training steps; 0 for the default of the network.", 0)


def main() -> None:
    """Trains what is missing in the table."""
    options = flags.FLAGS
    path = Path(options.out)
    chosen = problem(options.network)
    steps = options.steps or chosen.steps
    settings: list[tuple[str, float, Recipe | None]] = [("dense", 1.0, None)]
    for density in map(float, options.densities):
        for name, recipe in recipes(density, steps, chosen.every).items():
            if not options.recipes or name in options.recipes:
                settings.append((name, density, recipe))
    for name, density, setting in settings:
        table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=KEY)
        key = [options.network, name, density, options.seeds, steps]
        if (table[KEY] == key).all(axis=1).any():
            continue
        trained = train(chosen, setting, range(options.seeds), steps)
        row = dict(zip(KEY, key, strict=True)) | {
            "density": round(trained.density, 6),
            "accuracy": round(trained.accuracy.mean(), 3),
            "std": round(trained.accuracy.std(ddof=1), 3) if options.seeds > 1 else float("nan"),
            "cpu_ms": round(trained.cpu_ms, 3),
        }
        print(*row.values(), flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame([row]).to_csv(path, mode="a", header=not path.exists(), index=False)
    picture(pd.read_csv(path)).savefig(path.with_suffix(".png"), dpi=150)


def picture(table: pd.DataFrame) -> Figure:
    """Plots accuracy against density, one panel per network; a line marks the dense network."""
    networks = [name for name in NETWORKS if (table["network"] == name).any()]
    figure = Figure(figsize=(4.6 * len(networks), 4.4), layout="constrained")
    names = [name for name in dict.fromkeys(table["recipe"]) if name != "dense"]
    panels = figure.subplots(1, len(networks), squeeze=False)[0]
    for axes, network in zip(panels, networks, strict=True):
        rows = table[table["network"] == network]
        for number, name in enumerate(names):
            curve = rows[rows["recipe"] == name].sort_values("density")
            axes.errorbar(
                curve["density"],
                curve["accuracy"],
                curve["std"],
                label=name,
                color=f"C{number % 10}",
                marker="osD^v<>pXP*"[number % 11],
                linestyle="-" if number < 6 else "--",
                markersize=4,
                linewidth=1,
                capsize=2,
            )
        for accuracy in rows.loc[rows["recipe"] == "dense", "accuracy"]:
            axes.axhline(accuracy, color="0.4", linewidth=1, label="dense")
        axes.set_xscale("log")
        axes.set_xticks(sorted(rows["target"].unique()), minor=False)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_title(TITLES[network])
        axes.set_xlabel("share of active connections")
        axes.set_ylabel("test accuracy, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8)
    return figure


if __name__ == "__main__":
    cli.run(main, define_flags, network="lenet5")
