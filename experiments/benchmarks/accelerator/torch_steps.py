"""The same training steps in PyTorch, written directly, without a compiler, for one seed."""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.benchmarks.accelerator.pieces import Piece, Size

#: Steps before the measurement, and measured steps.
WARMUP, STEPS = 20, 200


def timed(step: Callable[[], object]) -> dict[str, float]:
    """Milliseconds of a step, the median of three measurements."""
    import torch

    def wait() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    for _ in range(WARMUP):
        step()
    repeats = []
    for _ in range(3):
        wait()
        start = time.perf_counter()
        for _ in range(STEPS):
            step()
        wait()
        repeats.append(1e3 * (time.perf_counter() - start) / STEPS)
    return {"ms_per_step": float(np.median(repeats))}


def device() -> str:
    """The device of PyTorch's tensors."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def ip_cae(batch: int, k: int, columns: int) -> dict[str, float]:
    """IP-CAE for reconstruction: one noise matrix per row, a decoder of 200 units, Adam."""
    import torch
    from torch import nn

    psi = nn.Parameter(torch.randn(k, columns, device=device()))
    weight = nn.Linear(columns, columns, device=device())
    decoder = nn.Sequential(
        *(nn.Linear(k, 200), nn.LayerNorm(200), nn.LeakyReLU(0.2), nn.Linear(200, columns))
    ).to(device())
    optimizer = torch.optim.Adam([psi, *weight.parameters(), *decoder.parameters()], 1e-3)
    x = torch.rand(batch, columns, device=device())

    def step() -> None:
        optimizer.zero_grad()
        logits = weight(psi).expand(batch, k, columns)
        samples = nn.functional.gumbel_softmax(logits, tau=2.0)
        outputs = decoder(torch.bmm(samples, x[..., None])[..., 0])
        nn.functional.mse_loss(outputs, x).backward()
        optimizer.step()

    return timed(step)


def wast(batch: int, columns: int, hidden: int, density: float, fraction: float) -> dict:
    """WAST: a sparse autoencoder whose connections change after every step, by ``topk``."""
    import torch

    shapes = ((columns, hidden), (hidden, columns))
    masks = [torch.rand(shape, device=device()) < density for shape in shapes]
    counts = [int(mask.sum()) for mask in masks]
    params = [
        torch.nn.Parameter(0.1 * torch.randn(shape, device=device()) * mask)
        for shape, mask in zip(shapes, masks, strict=True)
    ]
    biases = [
        torch.nn.Parameter(torch.zeros(width, device=device())) for width in (hidden, columns)
    ]
    optimizer = torch.optim.SGD([*params, *biases], 0.1, momentum=0.9, nesterov=True)
    importance = [
        torch.zeros(columns, 1, device=device()),
        torch.zeros(1, columns, device=device()),
    ]
    x = torch.randn(batch, columns, device=device())

    @torch.no_grad()
    def change(residual: Any) -> None:
        for index, (weight, mask, count) in enumerate(zip(params, masks, counts, strict=True)):
            weight *= mask
            strength = weight.abs().sum(1 - index, keepdim=True)
            gain = 0.9 * residual.reshape(importance[index].shape)
            importance[index] += gain + 0.1 * strength
            changed = int(fraction * count)
            score = torch.where(mask, weight.abs() * importance[index], torch.inf).ravel()
            mask.view(-1)[score.topk(changed, largest=False).indices] = False
            score = torch.where(mask, -torch.inf, importance[index].expand_as(weight)).ravel()
            mask.view(-1)[score.topk(changed).indices] = True
            weight *= mask

    def step() -> None:
        optimizer.zero_grad()
        noisy = x + 0.2 * torch.randn_like(x)
        outputs = torch.sigmoid(noisy @ params[0] + biases[0]) @ params[1] + biases[1]
        residual = outputs - x
        residual.square().mean().backward()
        optimizer.step()
        change(residual.detach().abs().mean(0))

    return timed(step)


def masked_network(batch: int, widths: tuple[int, ...], density: float) -> dict[str, float]:
    """A step of a network with masked weights, as SET and CTRE train between their changes."""
    import torch
    from torch import nn

    layers = [
        nn.Linear(width, after, device=device())
        for width, after in zip(widths, widths[1:], strict=False)
    ]
    masks = [torch.rand_like(layer.weight) < density for layer in layers]
    params = [parameter for layer in layers for parameter in layer.parameters()]
    optimizer = torch.optim.SGD(params, 0.01, momentum=0.9)
    x = torch.randn(batch, widths[0], device=device())
    y = torch.randint(widths[-1], (batch,), device=device())

    def step() -> None:
        optimizer.zero_grad()
        values = x
        for layer in layers[:-1]:
            values = torch.relu(layer(values))
        nn.functional.cross_entropy(layers[-1](values), y).backward()
        optimizer.step()
        with torch.no_grad():
            for layer, mask in zip(layers, masks, strict=True):
                layer.weight *= mask

    return timed(step)


def pieces(size: Size) -> dict[str, Piece]:
    """The pieces by name; none if PyTorch is not installed."""
    if size == "tiny" or importlib.util.find_spec("torch") is None:
        return {}
    return {
        "torch/ip_cae, 1 seeds": Piece(functools.partial(ip_cae, 16, 50, 1024)),
        "torch/wast, 1 seeds": Piece(functools.partial(wast, 128, 500, 200, 0.2, 0.3)),
        "torch/set, 1 seeds": Piece(
            functools.partial(masked_network, 128, (617, 1000, 1000, 1000, 26), 0.03)
        ),
        "torch/binmask, 1 seeds": Piece(
            functools.partial(masked_network, 128, (784, 512, 512, 10), 1.0)
        ),
    }
