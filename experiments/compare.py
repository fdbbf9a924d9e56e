"""Runs several configs on the same data and prints one table.

``python -m experiments.compare --configs=configs/ip_cae.py,configs/cae.py --workdir=runs/compare``

Every config may carry its variant, as for ``experiments.run``; ``--set=train.num_epochs=50``
(repeatable) overrides a field in all of them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import ml_collections
from absl import flags

import fsjax
from experiments import cli
from experiments.launch import run_experiment
from fsjax import report
from fsjax.errors import ConfigError

_CONFIGS = flags.DEFINE_list("configs", [], "Config files, each with its variant after a colon.")
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder; each config runs in a subfolder.")
_SET = flags.DEFINE_multi_string("set", [], "field=value, for all configs.")
_PROGRESS = flags.DEFINE_bool("progress", True, "Show progress bars and notes.")


def load_config(name: str) -> tuple[str, ml_collections.ConfigDict]:
    """A label and the configuration of ``file.py`` or ``file.py:variant``."""
    path, _, variant = name.partition(":")
    cli.check_config_file(path)
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    label = Path(path).stem + (f"-{variant.replace(',', '-')}" if variant else "")
    return label, module.get_config(variant or None)


def override(config: ml_collections.ConfigDict, assignment: str) -> None:
    """Sets one field from ``field=value``; tuples are written ``1,2,3``.

    Raises:
      ConfigError: for an unknown field or a value of another type.
    """
    field, equals, text = assignment.partition("=")
    if not equals:
        raise ConfigError(f"--set={assignment}: write field=value")
    *parents, last = field.split(".")
    try:
        holder = config
        for parent in parents:
            holder = holder[parent]
        kind = type(holder[last])
        if kind is tuple:
            value = tuple(type(holder[last][0])(item) for item in text.split(",") if item)
        elif kind is bool:
            value = {"true": True, "false": False}[text.lower()]
        else:
            value = text if kind is type(None) else kind(text)
        holder[last] = value
    except (KeyError, AttributeError):
        raise ConfigError(f"--set={assignment}: the config has no such field or value") from None
    except (TypeError, ValueError) as error:
        raise ConfigError(f"--set={assignment}: {error}") from None


def main() -> None:
    """Entry point."""
    cli.require(_CONFIGS.value, "configs", "--configs=configs/ip_cae.py,configs/cae.py")
    cli.require(_WORKDIR.value, "workdir", "--workdir=runs/compare")
    fsjax.use_compilation_cache()
    fsjax.use_cpu_devices()
    results = []
    for name in _CONFIGS.value:
        label, config = load_config(name)
        for assignment in _SET.value:
            override(config, assignment)
        results.append(
            run_experiment(config, Path(_WORKDIR.value) / label, progress=_PROGRESS.value)
        )
    table = report.summary_table(results)
    (Path(_WORKDIR.value) / "table.txt").write_text(table + "\n")
    print(table)


if __name__ == "__main__":
    cli.run(main)
