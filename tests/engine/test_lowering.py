"""The programs of all methods lowered for GPUs and TPUs: steps have no slow operations.

Slow operations are callbacks to the host, which cannot be lowered here at all, sorts, and scatters.
A loop is slower than a sort (``BENCHMARKS.md``), so the k-th value is found by one.
The exceptions are in ``KNOWN`` with their reasons; an epoch may sort, to shuffle its rows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lowered import Op, operations
from marks import slow_ids, some_long

import fsjax
from fsjax.engine import mesh, seeds
from fsjax.method import Method
from fsjax.methods import METHODS

PLATFORMS = ("cuda", "tpu")

#: Training options for the tested methods: two seeds, six steps per epoch.
SEEDS, ROWS, COLUMNS, BATCH = (0, 1), 60, 13, 8

#: The methods that are lowered without ``-m slow``.
USUAL = ("ip_cae", "stg", "wast")

#: Filters whose scores NumPy computes once.
ON_HOST = {"cife", "icap", "l1_l21", "laplacian_score", "mcfs", "rfs"}

#: Operations that call the host on any device.
HOST = re.compile(r"callback|stablehlo\.(send|recv|infeed|outfeed)")

#: Slow operations in a step, and why they are there.
KNOWN = {
    ("stablehlo.scatter", "fsjax/tasks/losses.py"): "the gradient at the class of each of B rows",
    ("stablehlo.sort", "fsjax/sparsity/topology.py"): "the k-th weight, faster than by bisection",
    ("stablehlo.sort", "fsjax/sparsity/grow.py"): "WAST orders D neurons, not D x H connections",
    ("stablehlo.scatter", "fsjax/sparsity/grow.py"): "what each of the D neurons gets, as ordered",
    (
        "stablehlo.sort",
        "fsjax/engine/kernels/distinct_columns.py",
    ): "random selection finds its K columns in each step",
    ("stablehlo.sort", "fsjax/methods/dufs.py"): "the median distance of B rows, differentiated",
    ("stablehlo.scatter", "fsjax/methods/dufs.py"): "the gradient of that median",
    ("stablehlo.sort", "fsjax/methods/entryprune.py"): "the places of the columns of the network",
    ("stablehlo.scatter", "fsjax/methods/entryprune.py"): "the gradient of the lines it has taken",
    ("stablehlo.sort", "fsjax/methods/sequential_attention.py"): "the rank of D columns",
}


@pytest.fixture(autouse=True, scope="module")
def _operations_tell_their_file() -> Iterator[None]:
    """``make test`` lowers programs without the lines that they come from, which is faster."""
    before = jax.config.jax_traceback_in_locations_limit
    jax.config.update("jax_traceback_in_locations_limit", 10)
    yield
    jax.config.update("jax_traceback_in_locations_limit", before)


def plan_of(method: Method) -> fsjax.Plan:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((ROWS, COLUMNS), np.float32), np.arange(ROWS) % 3
    k = {} if method.about.num_features else {"num_features": 4}
    shape = {"batch_size": BATCH, "num_epochs": 2, "valid_fraction": 0.2}
    return fsjax.plan(method, (X, y), seeds=SEEDS, scaling="none", **shape, **k)


def programs(planned: fsjax.Plan) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The engine's programs by name: functions and arguments as for an accelerator."""
    arrays, structure = planned.prepared.arrays, planned.structure
    hyper = {name: np.full(len(SEEDS), v, np.float32) for name, v in planned.hyper.items()}

    init = functools.partial(seeds.init_seeds.function, structure=structure, spec=planned.spec)
    arguments = (np.asarray(SEEDS, np.uint32), hyper, planned.usable, arrays)
    by_name = {"init": (init, arguments)}
    if planned.method.name in ON_HOST:
        return by_name
    states = jax.eval_shape(init, *arguments)
    if planned.method.loss is not None:
        axis = mesh.choose_seed_axis("auto", len(SEEDS))
        by_name["train"] = (
            functools.partial(
                seeds.train_seeds.function, structure=structure, axis=axis, batch_devices=1
            ),
            (states, arrays, np.ones(len(SEEDS), np.int32)),
        )
    x_test = planned.prepared.x_test[0] if planned.method.predict is not None else None
    by_name["finish"] = (
        functools.partial(seeds.finish_seeds.function, structure=structure),
        (states, arrays, x_test, None),
    )
    return by_name


def in_steps(ops: list[Op]) -> set[tuple[str, str]]:
    """Sorts and scatters in loops inside the loop over epochs, with their files."""
    found = set()
    for op in ops:
        if op.depth >= 2 and op.name in ("stablehlo.sort", "stablehlo.scatter", "chlo.top_k"):
            ours = re.findall(r'"[^"]*/(fsjax/[\w/]+\.py)":', op.where)
            found.add((op.name, ours[0] if ours else op.where))
    return found


@pytest.fixture(autouse=True)
def accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the engine choose as on a GPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


@slow_ids("stg")
@slow_ids("ip_cae", "wast")
@pytest.mark.parametrize("name", some_long(METHODS, set(METHODS) - {*USUAL, *ON_HOST}))
def test_steps_are_fit_for_accelerators(name: str) -> None:
    build = METHODS[name]
    small = dict(build.registration.small)
    if "form" in small:
        small["form"] = "auto"
    planned = plan_of(build(**small))
    lowered = programs(planned)
    if name in ON_HOST:
        assert planned.method.loss is None
        with pytest.raises(ValueError, match="different from the lowering platform"):
            operations(*lowered["init"], PLATFORMS)
        return
    for program, (function, args) in lowered.items():
        for platform, ops in operations(function, args, PLATFORMS).items():
            assert not [op for op in ops if HOST.search(op.name)], (program, platform)
            if program != "train":
                continue
            # The sort that shuffles the rows shows that this is the program of the epochs.
            at = {op.depth for op in ops if op.name == "stablehlo.sort"}
            assert 1 in at and any(op.name == "stablehlo.dot_general" for op in ops)
            unknown = in_steps(ops) - set(KNOWN)
            assert not unknown, f"{platform}: {unknown}"


def slower(change: Callable[[jax.Array], jax.Array]) -> Method:
    """A method with an additional operation in its loss."""
    method = METHODS["aefs"](**METHODS["aefs"].registration.small)

    def loss(params: Any, state: Any, batch: Any, key: Any) -> Any:
        value, aux = method.loss(params, state, batch, key)
        return value + jnp.sum(change(batch.x)), aux

    return method._replace(loss=loss)


@slow_ids("*scatter")
@slow_ids("*top_k")
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda x: jnp.sort(x, axis=0)[0], "stablehlo.sort"),
        (lambda x: jnp.zeros(9).at[x[:, 0].astype(int)].add(1.0), "stablehlo.scatter"),
        (lambda x: jax.lax.top_k(x[:, 0], 2)[0], "chlo.top_k"),
    ],
)
def test_what_is_slow_is_seen(change: Callable[[jax.Array], jax.Array], name: str) -> None:
    function, args = programs(plan_of(slower(change)))["train"]
    for ops in operations(function, args, PLATFORMS).values():
        assert [found for found, where in in_steps(ops) if (found, where) not in KNOWN] == [name]


@pytest.mark.slow
def test_a_call_of_the_host_is_seen() -> None:
    def call(x: jax.Array) -> jax.Array:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(np.sin, shape, jax.lax.stop_gradient(x), vmap_method="sequential")

    function, args = programs(plan_of(slower(call)))["train"]
    with pytest.raises(ValueError, match="different from the lowering platform"):
        operations(function, args, PLATFORMS)
    # On a present device it is a single operation.
    assert any(HOST.search(op.name) for op in operations(function, args, ("cpu",))["cpu"])
