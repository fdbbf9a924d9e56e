"""Benchmarks of the concrete selectors."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax

import fsjax
from experiments.benchmarks import timing
from experiments.benchmarks.timing import Case, case
from fsjax.concrete.sampling import select_per_row
from fsjax.data import Split
from fsjax.engine.kernels.random import key_words
from fsjax.nets import MLP
from fsjax.nets.networks import outputs_of

#: The shape at which the published code is timed: COIL-20 with the paper's settings.
ROWS, BATCH, K, D = 864, 16, 50, 1024


def training(
    noise: Literal["row", "batch"],
    num_seeds: int,
    axis: str = "auto",
    epochs: int = 4,
    *,
    batch: int = BATCH,
    rows: int = ROWS,
    columns: int = D,
    embedding_dim: int | None = None,
) -> dict[str, float]:
    """Trains IP-CAE for reconstruction: time per step and seed after compilation, peak memory."""
    valid = rows // 4
    x = np.random.default_rng(0).uniform(size=(rows + valid, columns))
    planned = fsjax.plan(
        fsjax.methods.ip_cae(K, noise=noise, embedding_dim=embedding_dim),
        (x.astype(np.float32), None),
        seeds=range(num_seeds),
        task="reconstruction",
        split=Split(np.arange(rows), rows + np.arange(valid), np.arange(0)),
        scaling="none",
        batch_size=batch,
        num_epochs=epochs,
        seed_axis=axis,
    )
    values = timing.training(planned, planned.spec.steps_per_epoch * epochs * num_seeds)
    return values | {"steps_per_second_all_seeds": 1e3 / values["wall_ms"]}


def parts() -> dict[str, float]:
    """Measures the parts of a step of IP-CAE with noise per row separately: CPU milliseconds."""
    keys = jax.random.split(jax.random.key(0), 8)
    logits, x = jax.random.normal(keys[0], (K, D)), jax.random.uniform(keys[1], (BATCH, D))
    kernel, psi = 0.03 * jax.random.normal(keys[2], (D, D)), jax.random.normal(keys[3], (K, D))
    net, optimizer = MLP(D), optax.adam(1e-3)
    decoder = net.init(keys[4], jnp.zeros((1, K)))["params"]
    z = jax.random.normal(keys[5], (BATCH, K))
    warm, hot = jnp.float32(2.0), jax.random.key(1)

    def plain(logits: jax.Array, i: jax.Array) -> jax.Array:
        noise = jax.random.gumbel(jax.random.fold_in(hot, i), (BATCH, K, D))
        samples = jax.nn.softmax((logits + noise) / warm)
        return jnp.sum(jnp.square(jnp.einsum("bkd,bd->bk", samples, x)))

    def fused(logits: jax.Array, i: jax.Array) -> jax.Array:
        words = key_words(jax.random.fold_in(hot, i))
        return jnp.sum(jnp.square(select_per_row(words, logits, x, warm)))

    def maps(pair: tuple, i: jax.Array) -> tuple:
        kernel, psi = pair
        grad = psi @ kernel
        return kernel - 1e-6 * (psi.T @ grad), psi - 1e-6 * (grad @ kernel.T)

    def adam_step(pair: tuple, i: jax.Array) -> tuple:
        kernel, state = pair
        updates, state = optimizer.update(1e-3 * kernel, state)
        return kernel + updates, state

    def decode(params: Any, i: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(outputs_of(net, {"params": params}, z) - x))

    bodies = {
        "selector forward": (lambda c, i: c + 1e-9 * fused(c, i), logits),
        "selector forward and backward": (timing.descent(fused, 1e-3), logits),
        "the same through jax.random.gumbel": (timing.descent(plain, 1e-3), logits),
        "psi W and its two gradients": (maps, (kernel, psi)),
        "Adam on W": (adam_step, (kernel, optimizer.init(kernel))),
        "decoder forward and backward": (timing.descent(decode, 1e-4), decoder),
    }
    return {label: timing.looped(body, start, 54) for label, (body, start) in bodies.items()}


def torch_step() -> dict[str, float]:
    """Measures the same step in a direct PyTorch implementation: one noise matrix per row, Adam."""
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
    return timing.timed(lambda: steps(50), 50) | {"threads": torch.get_num_threads()}


def cases() -> dict[str, Case]:
    """Returns the cases by name."""
    by_name = {
        f"step/ip_cae, noise per {noise}, seeds {seeds}": case(
            training, noise, seeds, devices=devices
        )
        for noise in ("row", "batch")
        for seeds, devices in ((1, 0), (10, 2))
    }
    by_name["step/ip_cae, noise per row, seeds 1, bfloat16"] = case(
        timing.rounded, training, "row", 1
    )
    for axis, devices in (("vmap", 0), ("map", 0), ("shard", 2)):
        by_name[f"seed_axis/ip_cae, D 1024, 4 seeds, {axis}"] = case(
            training, "row", 4, axis, devices=devices
        )
        by_name[f"seed_axis/ip_cae, D 64, 4 seeds, {axis}"] = case(
            training, "batch", 4, axis, 32, batch=32, columns=64, devices=devices
        )
    by_name["memory/ip_cae, D 20000, P 1000, noise per row"] = case(
        training, "row", 1, epochs=1, rows=320, columns=20_000, embedding_dim=1000
    )
    by_name["parts/ip_cae, noise per row"] = case(parts)
    by_name["torch/the same step, noise per row"] = case(torch_step)
    return by_name
