"""Configs of every method, cut to one epoch."""

from __future__ import annotations

import importlib

from launcher import ROOT

from configs import any as any_method
from configs import ip_cae

#: Shared modules and the configs of comparisons; all other files are configs of a method.
SHARED = (
    "__init__",
    "any",
    "common",
    "papers",
    "rewiring",
    "feature_selection",
    "sparsify",
    "regularize",
)


MODULES = {
    path.stem: importlib.import_module(f"configs.{path.stem}")
    for path in sorted((ROOT / "configs").glob("*.py"))
    if path.stem not in SHARED
}


def quick(module=ip_cae, **train):
    config = module.get_config("digits,quick")
    config.train.num_epochs = 1
    for name, value in train.items():
        config.train[name] = value
    return config


def quick_any(name: str):
    """The same for a method without its own config."""
    config = any_method.get_config(f"{name},digits,quick")
    config.train.num_epochs = 1
    return config
