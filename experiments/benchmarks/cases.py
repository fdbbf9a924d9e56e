"""The launcher of the benchmarks, which runs each case in its own process."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import jax
from absl import flags
from absl.flags import FLAGS

import fsjax
from experiments.benchmarks import (
    checkpoints,
    concrete,
    costs,
    first_fit,
    selectors,
    sparse,
    sweep,
    text,
    topology,
)
from experiments.launch import cli
from fsjax.errors import ConfigError, nearest

_MODULES = (concrete, sparse, selectors, sweep, first_fit, text, topology, costs, checkpoints)


def measure(name: str, devices: int) -> str:
    """Runs a case in its own process; returns its measurements as a line of text.

    Raises:
      ConfigError: if the process fails, with the end of its output.
    """
    command = [sys.executable, "-m", "experiments.benchmark"]
    command += [f"--worker={name}", f"--cpu_devices={devices}"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise ConfigError(f"{name} failed:\n{process.stderr[-2000:]}")
    values = json.loads(process.stdout.strip().splitlines()[-1])
    return ", ".join(
        f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in values.items()
    )


def main() -> None:
    """Measures the chosen groups of cases, or one case in this process (``--worker``)."""
    cases = {name: case for module in _MODULES for name, case in module.cases().items()}
    if FLAGS.worker:
        if FLAGS.worker not in cases:
            raise ConfigError(f"unknown case {FLAGS.worker!r}: {nearest(FLAGS.worker, cases)}")
        if FLAGS.cpu_devices:
            fsjax.use_cpu_devices(FLAGS.cpu_devices)
        print(json.dumps(cases[FLAGS.worker].run()))
        return
    groups = list(dict.fromkeys(name.split("/")[0] for name in cases))
    for group in FLAGS.cases:
        if group not in groups:
            raise ConfigError(f"unknown group of cases {group!r}: {nearest(group, groups)}")
    chosen = set(FLAGS.cases or groups)
    if "torch" in chosen and importlib.util.find_spec("torch") is None:
        print("torch: skipped, as PyTorch is not installed")
        chosen.remove("torch")
    device = jax.devices()[0]
    print(f"device: {device.platform}, {device.device_kind}; jax {jax.__version__}")
    for name, case in cases.items():
        if name.split("/")[0] in chosen:
            print(f"{name}: {measure(name, case.devices)}", flush=True)


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_list(
        "cases", [], "Groups of cases, the first parts of their names; all by default."
    )
    flags.DEFINE_string("worker", None, "Internal: measure this case here and print JSON.")
    flags.DEFINE_integer("cpu_devices", 0, "Internal: CPU devices of --worker; 0 means one.", 0)


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags)
