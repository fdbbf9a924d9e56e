"""What a first user does, as a test of an installed fsjax: run as a script, from an empty folder.

    python -I smoke.py [VERSION]

Nothing of the repository is needed, and no optional library: without Matplotlib the error message
has to name the extra. With a version, fails if that is not the one that is installed.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import fsjax
from fsjax import sparsity
from fsjax.estimators import WAST


def main() -> None:
    start = time.perf_counter()
    for check in (installed, pipeline, saved_files, sparse_training, pictures, command):
        check()
        print(
            f"{time.perf_counter() - start:5.1f} s  {check.__name__.replace('_', ' ')}: passed",
            flush=True,
        )


def installed() -> None:
    if sys.argv[1:]:
        assert Path(fsjax.__file__).is_relative_to(sys.prefix), f"{fsjax.__file__} is imported"
        assert sys.argv[1] == fsjax.__version__, f"fsjax {fsjax.__version__} is installed"


def pipeline() -> None:
    x, y = load_digits(return_X_y=True)
    model = make_pipeline(WAST(20, num_epochs=3, hidden=(8,)), KNeighborsClassifier())
    accuracy = model.fit(x[:1500], y[:1500]).score(x[1500:], y[1500:])
    assert accuracy > 0.5, accuracy


def saved_files() -> None:
    x, _ = load_digits(return_X_y=True)
    selector = WAST(10, num_epochs=1, hidden=(8,)).fit(x)
    selector.save("selector.npz")
    again = fsjax.estimators.load("selector.npz")
    assert (again.get_support() == selector.get_support()).all()
    fsjax.save(selector.result_, "result.npz")
    assert (fsjax.load("result.npz").selected == selector.result_.selected).all()


def sparse_training() -> None:
    x = jnp.asarray(load_digits(return_X_y=True)[0] / 16, jnp.float32)
    model = nn.Sequential([nn.Dense(32), nn.relu, nn.Dense(64)])
    params = model.init(jax.random.key(0), x[:1])
    tx = sparsity.sparse(
        optax.adam(1e-2), sparsity.rigl(0.1, every=1, end_step=3), jax.random.key(1)
    )
    opt_state = tx.init(params)
    params = sparsity.mask_params(params, opt_state)

    def loss(params: dict) -> jax.Array:
        return jnp.mean((model.apply(params, x) - x) ** 2)

    first = loss(params)
    for _ in range(3):
        updates, opt_state = tx.update(jax.grad(loss)(params), opt_state, params)
        params = optax.apply_updates(params, updates)
    assert loss(params) < first
    kernel = params["params"]["layers_0"]["kernel"]
    assert 0 < jnp.count_nonzero(kernel) <= 0.2 * kernel.size


def pictures() -> None:
    selector = fsjax.estimators.load("selector.npz")
    if importlib.util.find_spec("matplotlib"):
        selector.plot().savefig("selection.png")
        return
    try:
        selector.plot()
    except fsjax.ConfigError as error:
        assert "fsjax[plot]" in str(error), error
    else:
        raise AssertionError("plot has no error without Matplotlib")


def command() -> None:
    """``fsjax select`` finds the two columns that make the target, and leaves its report."""
    table = np.random.default_rng(0).normal(size=(200, 6)).round(3)
    label = np.where(table[:, 1] + table[:, 4] > 0, "yes", "no")
    lines = [",".join([*map(str, row), name]) for row, name in zip(table, label, strict=True)]
    Path("table.csv").write_text("\n".join(["a,b,c,d,e,f,label", *lines]) + "\n")
    program = Path(sys.executable).with_name("fsjax")
    arguments = ["select", "table.csv", "--target=label", "--budget=15s", "--quiet"]
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("report.html", "columns.csv", "selection.json"):
        assert Path("table-selection", name).stat().st_size > 0
    first = Path("table-selection", "columns.csv").read_text().splitlines()[1:3]
    assert {line.split(",")[0] for line in first} == {"b", "e"}, first


if __name__ == "__main__":
    main()
