"""Config files, variants and overrides with mistakes, up to the plan of a run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from experiments.launch import experiment as launch
from experiments.launch.config import load_config, override

from .outcomes import WRONG, Outcome, outcome_of

FILES = (
    "def get_config(variant=None:", "import nothing_here", "1 / 0", "raise SystemExit(0)", "x = 1",
    "", "\0", "get_config = 3", "def get_config(): return {}", "def get_config(v): return 3",
    "def get_config(v): raise KeyError(v)", "def get_config(v): return v.x",
    "import ml_collections as m\ndef get_config(v): return m.ConfigDict()",
    "import ml_collections as m\ndef get_config(v): return m.ConfigDict({'seeds': 3})",
    "assert False", "from configs import nothing",
)  # fmt: skip

OVERRIDES = (
    "num_features=0", "num_features=65", "num_features=x", "num_features=", "seeds=a", "seeds=",
    "seeds=1,1", "seeds=-1", "task=classify", "task=", "data.name=digit", "data.name=",
    "data.name=/", "data.name=a.csv", "data.impute=foo", "data.dir=/no/such/folder",
    "data.target=label",
    "data.split=papers", "data.scaling=standart", "data.valid_fraction=1", "data.noise_std=-1",
    "data.noise_std=nan", "train.num_epochs=0", "train.num_epochs=many", "train.batch_size=0",
    "train.best_by=f1", "train.shuffle=maybe", "train.seed_axis=pmap", "train.epochs=3",
    "train.checkpoint_every=0", "train.min_steps_per_epoch=0", "method.name=ipcae", "method.name=",
    "method.hidden=x", "method.noise=rows", "method.learning_rate=-1", "method.learning_rate=x",
    "evaluation.protocols=embeded", "evaluation.num_features=0", "evaluation.num_features=99",
    "nothing=3", "data=3", "train.num_epochs.deep=3", "=3", "num_features", "data.dense=x",
)  # fmt: skip

VARIANTS = ("coil21", "digits,quik", "reconstruct", ",,x", "digits:quick", "../x")


def attempt(number: int, seed: int) -> Outcome:
    """The outcome of one config file, variant or override."""
    rng = np.random.default_rng([seed, 5, number])
    total = len(FILES) + len(VARIANTS) + len(OVERRIDES)
    index = number % total
    with tempfile.TemporaryDirectory() as folder:
        name, changes = "configs/ip_cae.py:quick", []
        if index < len(FILES):
            path = Path(folder, "mine.py")
            path.write_text(FILES[index])
            name = str(path)
        elif index < len(FILES) + len(VARIANTS):
            name = f"configs/ip_cae.py:{VARIANTS[index - len(FILES)]}"
        else:
            changes = [OVERRIDES[index - len(FILES) - len(VARIANTS)]]
            # In later rounds, together with another override.
            if number >= total:
                changes.insert(rng.integers(2), OVERRIDES[rng.integers(len(OVERRIDES))])
        kind, message = outcome_of(lambda: _planned(name, changes), lambda _: (WRONG, "accepted"))
    return kind, f"{name} {changes}: {message}"


def _planned(name: str, changes: list[str]) -> object:
    config = load_config(name)
    for change in changes:
        override(config, change)
    launch.check_fields(config)
    method, dataset = launch.build_method(config), launch.load_data(config)
    launch.check_evaluation(config, method, dataset)
    about = {"task": config.task, "num_features": config.num_features}
    return launch.make_plan(config, method, dataset, **about)
