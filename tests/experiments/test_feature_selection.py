"""The comparison of selectors on the embedded data, with small settings."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from configs.feature_selection import get_config
from experiments.studies import feature_selection as comparison
from fsjax.errors import ConfigError

METHODS = ("binmask", "fisher_score", "random_selection")


def small(**changes):
    config = get_config("digits,quick")
    config.methods, config.sizes = METHODS, (6,)
    config.train.num_epochs, config.train.min_steps_per_epoch = 8, 1
    config.train.batch_size = 64
    config.network.hidden = (16,)
    config.binmask.strength = 0.02
    for name, value in changes.items():
        config[name] = value
    return config


def places_of(table: pd.DataFrame, name: str) -> list[tuple[int, int]]:
    """The sizes and trials of a method."""
    rows = table[table["method"] == name]
    return sorted(zip(rows["num_features"], rows["trial"], strict=True))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workdir = tmp_path_factory.mktemp("comparison") / "digits"
    comparison.run(small(), workdir, progress=False)
    return workdir


def test_every_method_and_trial_has_a_row(finished: Path) -> None:
    table = pd.read_csv(finished / "accuracy.csv")
    for name in METHODS:
        assert places_of(table, name) == [(6, 0), (6, 1)]
    every = table[table["method"] == comparison.ALL]
    assert every["num_features"].tolist() == [64, 64]
    assert every["accuracy"].min() > 70
    searched = table[table["method"] == "binmask"]
    assert (searched["search_steps"] >= 1).all() and (searched["strength"] > 0).all()
    assert table[table["method"] == "fisher_score"]["strength"].isna().all()
    few = table.groupby("method")["accuracy"].mean()
    assert few["fisher_score"] > few["random_selection"]
    assert (finished / "accuracy.png").stat().st_size > 5000
    assert json.loads((finished / "config.json").read_text())["seeds"] == [0, 1]
    text = comparison.summary(table)
    assert "trainings per search (paper 1.7)" in text


@pytest.mark.slow
def test_every_size_has_a_row(tmp_path: Path) -> None:
    table = comparison.run(small(sizes=(20, 6)), tmp_path / "digits", progress=False)
    for name in METHODS:
        assert places_of(table, name) == [(6, 0), (6, 1), (20, 0), (20, 1)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": (6, 65)}, "num_features=65 but X has 64"),
        ({"train.num_epochs": 0}, "num_epochs=0"),
        ({"stg.strength": -1.0}, "strength=-1.0"),
        ({"methods": ()}, "config.methods is empty; name some of binmask, "),
    ],
)
def test_a_mistake_leaves_nothing_behind(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    config = small(methods=("fisher_score", "stg"))
    config.update_from_flattened_dict(changes)
    with pytest.raises(ConfigError, match=message):
        comparison.run(config, tmp_path / "digits", progress=False)
    assert not (tmp_path / "digits").exists()


def test_only_missing_methods_are_run_again(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args, **kwargs):
        raise AssertionError("trained again")

    with monkeypatch.context() as patch:
        patch.setattr(comparison, "retrain_metrics", fail)
        table = comparison.run(small(), finished, progress=False)
    assert len(table) == 2 + 3 * 2
    with pytest.raises(ConfigError, match="holds another run"):
        comparison.run(small(sizes=(5,)), finished, progress=False)


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="did you mean 'lassonet'"):
        comparison.run(small(methods=("lasonet",)), Path("nowhere"), progress=False)
    with pytest.raises(ConfigError, match="did you mean 'isolet'"):
        get_config("isole")
    assert get_config("mnist,lenet5").network.network == "lenet5"
    assert get_config("mnist").network.hidden == (512, 512)
