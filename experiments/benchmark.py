"""Speed and memory: ``python -m experiments.benchmark``.

Every case runs in a process of its own, so that its CPU time and peak memory are its own. CPU
seconds are those of all threads (user and system). ``--cases`` names the groups to run; ``torch``
needs PyTorch and is left out where that is not installed. Numbers seen are kept in
``BENCHMARKS.md``.
"""

import importlib.util
import json
import subprocess
import sys

import jax
from absl import flags

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

_PARTS = (
    concrete,
    sparse,
    selectors,
    sweep,
    first_fit,
    text,
    topology,
    costs,
    checkpoints,
)

_CASES = flags.DEFINE_list("cases", [], "Groups of cases to run; all by default.")
_WORKER = flags.DEFINE_string("worker", None, "Runs one measurement and prints it as JSON.")
_CPU_DEVICES = flags.DEFINE_integer("cpu_devices", 0, "CPU devices of a worker; 0 keeps one.")


def measure(name: str, devices: int) -> str:
    """Runs one case in a process of its own; its values in a line.

    Raises:
      ConfigError: if the process fails, with the end of what it said.
    """
    command = [sys.executable, "-m", "experiments.benchmark"]
    command += [f"--worker={name}", f"--cpu_devices={devices}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"{name} failed:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return ", ".join(
        f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in found.items()
    )


def main() -> None:
    """Entry point."""
    cases = {name: case for part in _PARTS for name, case in part.cases().items()}
    if _WORKER.value:
        if _CPU_DEVICES.value:
            fsjax.use_cpu_devices(_CPU_DEVICES.value)
        print(json.dumps(cases[_WORKER.value][0]()))
        return
    groups = list(dict.fromkeys(name.split("/")[0] for name in cases))
    for group in _CASES.value:
        if group not in groups:
            raise ConfigError(f"unknown case {group!r}: {nearest(group, groups)}")
    wanted = set(_CASES.value or groups)
    if "torch" in wanted and importlib.util.find_spec("torch") is None:
        print("torch: not installed, left out")
        wanted.remove("torch")
    device = jax.devices()[0]
    print(f"device: {device.platform}, {device.device_kind}; jax {jax.__version__}")
    for name, (_, devices) in cases.items():
        if name.split("/")[0] in wanted:
            print(f"{name}: {measure(name, devices)}", flush=True)


if __name__ == "__main__":
    cli.run(main)
