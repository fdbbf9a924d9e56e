"""The comparison of regularizers: artifacts, resuming, mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import ml_collections
import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses

import fsjax
from configs import regularize as configs
from experiments.launch.csv_rows import read_rows
from experiments.studies import regularize
from fsjax.data import load, make_split

STRENGTHS = {"BinMask": 2e-4, "L1": 3e-3, "L2": 30.0, "Dropout": 0.4}
#: The methods that are trained here; the others differ only in an option.
TRAINED = ("BinMask", "L2", "LR")


def tiny() -> ml_collections.ConfigDict:
    """One strength of some methods, two trials, two epochs, 600 rows of 40 columns."""
    config = configs.get_config("quick")
    config.data.options.update(num_samples=600, num_features=40, prevalence=0.2)
    config.strengths = {
        name: (STRENGTHS[label],) if label in TRAINED else ()
        for name, label in regularize.LABELS.items()
    }
    config.network.hidden = (8,)
    config.train.update(num_epochs=2, batch_size=64, seed_axis="map")
    return config


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a finished comparison."""
    workdir = tmp_path_factory.mktemp("regularize") / "tiny"
    regularize.run(tiny(), workdir, progress=False)
    return workdir


def test_artifacts(finished: Path) -> None:
    table = read_rows(finished / "regularization.csv")
    assert tuple(table.columns) == regularize.COLUMNS
    assert table["method"].tolist() == [label for label in TRAINED for _ in range(2)]
    assert table["trial"].tolist() == [0, 1] * 3
    for label in TRAINED[:-1]:
        assert (table.loc[table["method"] == label, "strength"] == STRENGTHS[label]).all()
    assert table.loc[table["method"] == "LR", "strength"].isna().all()
    for name in ("train_auc", "valid_auc", "test_auc", "l0"):
        assert table[name].between(0, 1).all()
    assert table["best_epoch"].isin([1, 2]).all()
    assert (table["l1"] <= table["l2"]).all()

    config = json.loads((finished / "config.json").read_text())
    assert config["data"]["fractions"] == [0.75, 0.1, 0.15]
    assert config["train"]["best_by"] == "auc"
    text = (finished / "table.txt").read_text()
    assert all(f"\n{label} " in text for label in TRAINED)
    assert (finished / "regularization.png").stat().st_size > 5000


def test_rows_are_those_of_a_fit(finished: Path) -> None:
    config = tiny()
    dataset = load("ehr_like", **config.data.options)
    splits = [
        make_split(dataset, "stratified", seed=trial, fractions=configs.FRACTIONS)
        for trial in (0, 1)
    ]
    assert [tuple(map(len, split)) for split in splits] == [(450, 60, 90)] * 2
    assert not np.array_equal(splits[0].test, splits[1].test)
    method = regularize.build("l2", 30.0, config.network)
    result = fsjax.fit(
        method,
        dataset,
        seeds=(0, 1),
        split=splits,
        scaling=config.data.scaling,
        num_features=40,
        num_epochs=2,
        batch_size=64,
        best_by="auc",
        seed_axis="map",
    )
    table = read_rows(finished / "regularization.csv")
    rows = table[table["method"] == "L2"]
    np.testing.assert_allclose(rows["test_auc"], result.metrics["auc"], atol=1e-3)
    np.testing.assert_allclose(rows["valid_auc"], result.history["valid/auc"].max(axis=1))
    np.testing.assert_array_equal(rows["best_epoch"], result.best_epoch)
    outputs = result.predict(dataset.X[splits[1].train])[1]
    margin, y = outputs[:, 1] - outputs[:, 0], dataset.y[splits[1].train]
    above = margin[y == 1][:, None] - margin[y == 0]
    assert rows["train_auc"].iloc[1] == pytest.approx(np.mean(above > 0) + np.mean(above == 0) / 2)


def test_every_method_has_its_own_regularizer() -> None:
    network = dict(tiny().network)
    for name, label in regularize.LABELS.items():
        settings = dict(regularize.build(name, STRENGTHS[label], network).about.settings)
        decay = STRENGTHS["L2"] if name == "l2" else 0.01
        assert (settings["weight_decay"], settings["optimizer"]) == (decay, "adamw")
        assert settings.get("l1", 0.0) == (STRENGTHS["L1"] if name == "l1" else 0.0)
        assert settings.get("dropout", 0.0) == (STRENGTHS["Dropout"] if name == "dropout" else 0.0)
        assert settings.get("masked") == ("weights" if name == "binmask" else None)
    linear = regularize.sweep(tiny())[-1]
    assert linear.label == "LR" and dict(linear.method.about.settings)["hidden"] == ()


@pytest.mark.slow
def test_finished_settings_are_not_trained_again(finished: Path, monkeypatch) -> None:
    path = finished / "regularization.csv"
    before, picture = path.read_text(), finished / "regularization.png"
    monkeypatch.setattr(fsjax.Plan, "train", lambda *_, **__: pytest.fail("trains again"))
    regularize.run(tiny(), finished, progress=False)
    assert path.read_text() == before

    # Only the missing settings are trained.
    table = read_rows(path)
    trained = []

    def rows_of(setting, *_, **__):
        trained.append(setting.label)
        return table[table["method"] == setting.label].to_dict("records")

    monkeypatch.setattr(regularize, "rows_of", rows_of)
    path.write_text(table[~table["method"].isin(["BinMask", "LR"])].to_csv(index=False))
    picture.unlink()
    # In a finished folder, a changed table counts as damaged.
    (finished / "checksums.json").unlink()
    regularize.run(tiny(), finished, progress=False)
    assert trained == ["BinMask", "LR"]
    assert picture.exists()
    again = read_rows(path).sort_values(["method", "trial"], ignore_index=True)
    pd.testing.assert_frame_equal(again, table.sort_values(["method", "trial"], ignore_index=True))
    path.write_text(before)


def test_a_folder_of_another_configuration_is_refused(finished: Path, tmp_path: Path) -> None:
    config = tiny()
    config.network.weight_decay = 0.02
    refuses(lambda: regularize.run(config, finished, False), "network.weight_decay was 0.01")
    (tmp_path / "regularization.csv").write_text("method\n")
    refuses(lambda: regularize.run(tiny(), tmp_path, False), "has no config.json, but files")


@bad_calls(
    ({"data.name": "digits", "data.options": {}}, "digits has 10 classes"),
    ({"strengths.dropout": (1.0,)}, "dropout=1.0"),
    ({"strengths.l1": (-1.0,)}, "l1=-1.0"),
    ({"strengths.binmask": (-1.0,)}, "strength=-1.0"),
    ({"train.best_by": "acuracy"}, "did you mean 'accuracy'"),
)
def test_mistakes_train_nothing_and_leave_nothing(bad: tuple, tmp_path: Path) -> None:
    config = tiny()
    for name, value in bad[0].items():
        if name == "data.options":
            config.data.options = value
        else:
            config.update_from_flattened_dict({name: value})
    refuses(lambda: regularize.run(config, tmp_path / "run", False), bad[1])
    assert not (tmp_path / "run").exists()
