"""Speed and memory of the concrete selectors: ``python -m experiments.benchmark``.

Every case runs in a process of its own, so that its CPU time and peak memory are its own. CPU
seconds are those of all threads (user and system). ``--cases`` names the cases to run; the case
``torch`` needs PyTorch and is left out where that is not installed. Numbers seen are kept in
``BENCHMARKS.md``.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

import fsjax
from experiments import cli
from fsjax.engine.loop import Arrays
from fsjax.engine.seeds import choose_seed_axis, padded_seeds, place_seeds, train_seeds
from fsjax.engine.train import init_states
from fsjax.errors import ConfigError, nearest
from fsjax.method import Spec

_CASES = flags.DEFINE_list("cases", [], "Cases to run; all by default.")
_WORKER = flags.DEFINE_string("worker", None, "Runs one measurement and prints it as JSON.")
_CPU_DEVICES = flags.DEFINE_integer("cpu_devices", 0, "CPU devices of a worker; 0 keeps one.")

#: The shape at which the published code is timed: COIL-20 with the paper's settings.
ROWS, BATCH, K, D = 864, 16, 50, 1024

#: Measurements of which the median is reported.
REPEATS = 3


def cpu_seconds() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_gib() -> float:
    """Largest resident memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(run: Callable[[], Any], units: int) -> dict[str, float]:
    """Wall and CPU milliseconds of ``run`` per unit of work; its result is waited for."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    jax.block_until_ready(run())
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return {"wall_ms": 1e3 * wall / units, "cpu_ms": 1e3 * cpu / units}


def training(
    name: str,
    noise: str,
    num_seeds: int,
    axis: str,
    epochs: int,
    *,
    batch: int = BATCH,
    rows: int = ROWS,
    columns: int = D,
    embedding_dim: int | None = None,
) -> dict[str, float]:
    """Reconstruction of random data: time per step and seed after compilation, peak memory."""
    options = {"embedding_dim": embedding_dim} if name == "ip_cae" else {}
    method = getattr(fsjax.methods, name)(K, noise=noise, **options)
    spec = Spec(columns, columns, "reconstruction", rows, batch, 200, False, True)
    axis = choose_seed_axis(axis, num_seeds)
    padded = padded_seeds(axis, num_seeds)
    masks = np.ones((padded, columns), bool)
    states = place_seeds(axis, init_states(method, spec, list(range(padded)), masks))
    x = jnp.asarray(np.random.default_rng(0).uniform(size=(rows, columns)), jnp.float32)
    y = jnp.zeros(rows, jnp.int32)
    arrays = Arrays(x, y, jnp.ones(rows), x[: rows // 4], y[: rows // 4], x[:0], y[:0])

    def run(epochs: int) -> None:
        nonlocal states
        states, _ = train_seeds(method, axis, False, states, arrays, jnp.int32(epochs))
        jax.block_until_ready(states)

    started = time.perf_counter()
    run(0)
    compile_seconds = time.perf_counter() - started
    run(1)
    steps = spec.steps_per_epoch * epochs * num_seeds
    found = median([timed(lambda: run(epochs), steps) for _ in range(REPEATS)])
    return {
        "axis": axis,
        **found,
        "steps_per_second_all_seeds": 1e3 / found["wall_ms"],
        "compile_seconds": compile_seconds,
        "peak_gib": peak_gib(),
    }


def median(found: list[dict[str, float]]) -> dict[str, float]:
    """The median of each value over repeated measurements."""
    return {name: float(np.median([one[name] for one in found])) for name in found[0]}


def parts() -> dict[str, float]:
    """CPU milliseconds of the parts of one step of IP-CAE with noise per row, each by itself."""
    from fsjax.concrete.random import key_words
    from fsjax.concrete.sampling import select_per_row
    from fsjax.nets import MLP
    from fsjax.optimizers import adam

    keys = jax.random.split(jax.random.key(0), 8)
    logits, x = jax.random.normal(keys[0], (K, D)), jax.random.uniform(keys[1], (BATCH, D))
    kernel, psi = 0.03 * jax.random.normal(keys[2], (D, D)), jax.random.normal(keys[3], (K, D))
    net, optimizer = MLP(D), adam(1e-3)
    decoder = net.init(keys[4], jnp.zeros((1, K)))["params"]
    z = jax.random.normal(keys[5], (BATCH, K))
    warm, hot = jnp.float32(2.0), jax.random.key(1)

    def words(i: jax.Array) -> jax.Array:
        return key_words(jax.random.fold_in(hot, i))

    def plain(logits: jax.Array, i: jax.Array) -> jax.Array:
        noise = jax.random.gumbel(jax.random.fold_in(hot, i), (BATCH, K, D))
        samples = jax.nn.softmax((logits + noise) / warm)
        return jnp.sum(jnp.square(jnp.einsum("bkd,bd->bk", samples, x)))

    def fused(logits: jax.Array, i: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(select_per_row(words(i), logits, x, warm)))

    def descend(function: Callable) -> Callable:
        return lambda logits, i: logits - 1e-3 * jax.grad(function)(logits, i)

    def maps(pair: tuple, i: jax.Array) -> tuple:
        kernel, psi = pair
        grad = psi @ kernel
        return kernel - 1e-6 * (psi.T @ grad), psi - 1e-6 * (grad @ kernel.T)

    def adam_step(pair: tuple, i: jax.Array) -> tuple:
        kernel, state = pair
        updates, state = optimizer.update(1e-3 * kernel, state)
        return kernel + updates, state

    def decode(params: Any, i: jax.Array) -> Any:
        loss = lambda p: jnp.mean(jnp.square(net.apply({"params": p}, z) - x))  # noqa: E731
        return jax.tree.map(lambda p, g: p - 1e-4 * g, params, jax.grad(loss)(params))

    bodies = {
        "selector forward": (lambda c, i: c + 1e-9 * fused(c, i), logits),
        "selector forward and backward": (descend(fused), logits),
        "the same through jax.random.gumbel": (descend(plain), logits),
        "psi W and its two gradients": (maps, (kernel, psi)),
        "Adam on W": (adam_step, (kernel, optimizer.init(kernel))),
        "decoder forward and backward": (decode, decoder),
    }
    found = {}
    for label, (body, start) in bodies.items():
        run = jax.jit(lambda c, body=body: jax.lax.fori_loop(0, 54, lambda i, c: body(c, i), c))
        carry = jax.block_until_ready(run(start))
        times = [timed(lambda run=run, carry=carry: run(carry), 54) for _ in range(REPEATS)]
        found[label] = median(times)["cpu_ms"]
    return found


def torch_step() -> dict[str, float]:
    """The same step in PyTorch, written plainly: one noise matrix per row, Adam."""
    import torch
    from torch import nn

    class Selector(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.psi = nn.Parameter(torch.randn(K, D))
            self.map = nn.Linear(D, D)
            layers = nn.Linear(K, 200), nn.LayerNorm(200), nn.LeakyReLU(0.2), nn.Linear(200, D)
            self.decoder = nn.Sequential(*layers)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            logits = self.map(self.psi).expand(len(x), K, D)
            samples = nn.functional.gumbel_softmax(logits, tau=2.0)
            return self.decoder(torch.bmm(samples, x[..., None])[..., 0])

    model, x = Selector(), torch.rand(BATCH, D)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), x).backward()
            optimizer.step()

    steps(10)
    found = median([timed(lambda: steps(50), 50) for _ in range(REPEATS)])
    return found | {"threads": torch.get_num_threads()}


def _training_cases() -> dict[str, tuple[Callable[[], dict], int]]:
    """Measurements by name, each with the number of CPU devices that it needs (0: one)."""
    cases = {}
    for noise in ("row", "batch"):
        for seeds in (1, 10):
            run = lambda n=noise, s=seeds: training("ip_cae", n, s, "auto", 4)  # noqa: E731
            cases[f"step/ip_cae, noise per {noise}, seeds {seeds}"] = (run, 2 * (seeds > 1))
    for axis, devices in (("vmap", 0), ("map", 0), ("shard", 2)):
        run = lambda a=axis: training("ip_cae", "row", 4, a, 4)  # noqa: E731
        cases[f"seed_axis/ip_cae, D 1024, 4 seeds, {axis}"] = (run, devices)
        small = lambda a=axis: training(  # noqa: E731
            "ip_cae", "batch", 4, a, 32, batch=32, columns=64
        )
        cases[f"seed_axis/ip_cae, D 64, 4 seeds, {axis}"] = (small, devices)
    wide = lambda: training(  # noqa: E731
        "ip_cae", "row", 1, "auto", 1, rows=320, columns=20_000, embedding_dim=1000
    )
    cases["memory/ip_cae, D 20000, P 1000, noise per row"] = (wide, 0)
    cases["parts/ip_cae, noise per row"] = (parts, 0)
    cases["torch/the same step, noise per row"] = (torch_step, 0)
    return cases


def main() -> None:
    """Entry point."""
    cases = _training_cases()
    if _WORKER.value:
        if _CPU_DEVICES.value:
            fsjax.use_cpu_devices(_CPU_DEVICES.value)
        print(json.dumps(cases[_WORKER.value][0]()))
        return
    groups = list(dict.fromkeys(name.split("/")[0] for name in cases))
    wanted = _CASES.value or groups
    for group in wanted:
        if group not in groups:
            raise ConfigError(f"unknown case {group!r}: {nearest(group, groups)}")
    if "torch" in wanted and importlib.util.find_spec("torch") is None:
        print("torch: not installed, left out")
        wanted = [group for group in wanted if group != "torch"]
    device = jax.devices()[0]
    print(f"device: {device.platform}, {device.device_kind}; jax {jax.__version__}")
    for name, (_, devices) in cases.items():
        if name.split("/")[0] not in wanted:
            continue
        command = [sys.executable, "-m", "experiments.benchmark", f"--worker={name}"]
        if devices:
            command.append(f"--cpu_devices={devices}")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ConfigError(f"{name} failed:\n{done.stderr[-2000:]}")
        found = json.loads(done.stdout.strip().splitlines()[-1])
        shown = ", ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in found.items()
        )
        print(f"{name}: {shown}", flush=True)


if __name__ == "__main__":
    cli.run(main)
