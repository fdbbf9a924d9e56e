"""Published figures of the concrete family on real data; slow, and skipped without the files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fsjax
from configs import cae, ip_cae
from experiments.launch.experiment import build_method, load_data

SEEDS = (11, 22)

needs_data = pytest.mark.skipif(
    not any(
        (Path(folder) / "coil20.npz").exists()
        for folder in (os.environ.get("FSJAX_DATA", ""), Path.home() / ".cache" / "fsjax")
    ),
    reason="coil20.npz is not here; set FSJAX_DATA to a folder with it",
)


def run(module, variant: str, noise: str = "row") -> fsjax.FitResult:
    config = module.get_config(variant)
    config.method.noise = noise
    return fsjax.fit(
        build_method(config), load_data(config), seeds=SEEDS, task=config.task, **config.train
    )


@pytest.mark.long
@needs_data
@pytest.mark.parametrize("noise", ["row", "batch"])
def test_coil20_classification_ip_cae(noise: str) -> None:
    # Paper: 97.92 +- 0.57.
    result = run(ip_cae, "coil20", noise)
    assert result.metrics["embedded_accuracy"].mean() >= 97.0
    assert result.metrics["unique_percentage"].mean() >= 98


@pytest.mark.long
@needs_data
def test_coil20_classification_cae() -> None:
    # Paper: 80.70 +- 2.93.
    assert abs(run(cae, "coil20").metrics["embedded_accuracy"].mean() - 80.7) <= 5


@pytest.mark.long
@needs_data
def test_coil20_reconstruction() -> None:
    # Paper: IP-CAE 2.48e-3, CAE 4.21e-3.
    indirect = run(ip_cae, "coil20,reconstruction").metrics["reconstruction_frobenius"].mean()
    assert indirect <= 2.6e-3
    direct = run(cae, "coil20,reconstruction").metrics["reconstruction_frobenius"].mean()
    assert direct == pytest.approx(4.21e-3, rel=0.1)
