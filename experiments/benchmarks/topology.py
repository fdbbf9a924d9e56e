"""Benchmarks of networks stored as connections, at the sizes of the authors of SET and Nerva."""

from typing import Any

import fsjax
from experiments.benchmarks.timing import Case, case, random_plan, training_seconds


def set_epoch(width: int, num_epochs: int, rewires: bool = True) -> dict[str, float]:
    """CPU seconds of an epoch of SET with three hidden layers, batch 2, 135 rows.

    The sizes are those of Liu et al., "Sparse evolutionary deep learning with over one million
    artificial neurons on commodity hardware", 2021. With ``rewires=False`` connections are fixed.
    """
    options: dict[str, Any] = {
        "hidden": (width,) * 3,
        "epsilon": 20.0,
        "form": "topology",
        "rank_by": "strength",
        "learning_rate": 0.001,
        "l2": 2e-4,
    }
    method = fsjax.methods.static_sparse(**options)
    if rewires:
        method = fsjax.methods.set(**options, drop="per_sign", drop_fraction=0.3)
    return _epoch(method, 135, 3312, 5, 2, num_epochs)


def nerva_epoch(form: str) -> dict[str, float]:
    """CPU seconds of an epoch of 3072-1024-512-10 at density 1 %, batch 100, 50,000 rows."""
    options: dict[str, Any] = {"epsilon": 0, "density": 0.01, "form": form, "rank_by": "strength"}
    method = fsjax.methods.static_sparse(hidden=(1024, 512), **options)
    return _epoch(method, 50_000, 3072, 10, 100, 2)


def _epoch(
    method: fsjax.Method, rows: int, columns: int, classes: int, batch_size: int, num_epochs: int
) -> dict[str, float]:
    planned = random_plan(
        *(method, rows, columns, classes), batch_size=batch_size, num_epochs=num_epochs
    )
    return training_seconds(planned, num_epochs, "epoch")


def cases() -> dict[str, Case]:
    """Returns the cases by name; run those of SET on one core (``taskset -c 0``)."""
    by_name: dict[str, Case] = {}
    for width, num_epochs in ((3000, 20), (30_000, 5), (300_000, 1)):
        name = f"topology/SET, {3312 + 3 * width + 5:,} neurons"
        # There is no change after the last epoch, hence one epoch more.
        by_name[name] = case(set_epoch, width, num_epochs + 1)
        by_name[f"{name}, training alone"] = case(set_epoch, width, num_epochs, False)
    for form in ("dense", "topology"):
        by_name[f"topology/3072-1024-512-10, {form}"] = case(nerva_epoch, form)
    return by_name
