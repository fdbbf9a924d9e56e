"""The comparison of sparse networks: artifacts, numbers, resuming, mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import ml_collections
import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses

import fsjax
from configs.sparsify import get_config
from experiments.studies import sparsify
from fsjax.errors import ConfigError

#: Weights of the layers of the network below.
SIZES = {"Dense_0": 64 * 16, "Dense_1": 16 * 10}


def tiny() -> ml_collections.ConfigDict:
    config = get_config("digits,mlp,quick")
    config.update_from_flattened_dict(
        {
            "network.hidden": (16,),
            "network.batch_norm": False,
            "train.seed_axis": "map",
            "train.num_epochs": 4,
            "network.finetune_epochs": 1,
            "strengths": (1e-3, 1e-5),
            "binmask.initial": 0.1,
        }
    )
    return config


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, dict]:
    """The workdir of a finished comparison, and its result."""
    workdir = tmp_path_factory.mktemp("sparsify") / "run"
    return workdir, sparsify.run(tiny(), workdir, progress=False)


def refuse_training(*_, **__) -> None:
    raise AssertionError("trained again")


def test_artifacts(finished: tuple[Path, dict]) -> None:
    workdir, result = finished
    points, layers = (pd.read_csv(workdir / name) for name in ("sparsity.csv", "layers.csv"))
    assert tuple(points.columns) == sparsify.POINTS
    assert tuple(layers.columns) == sparsify.LAYERS
    assert list(points["method"]) == ["dense"] * 2 + ["binmask"] * 4 + ["probmask"] * 4
    assert list(points["trial"]) == [0, 1] * 5
    assert set(points["network"]) == {"mlp on digits"}
    for picture in ("accuracy_sparsity.png", "layer_sparsity.png"):
        assert (workdir / picture).stat().st_size > 5000
    assert json.loads((workdir / "config.json").read_text())["strengths"] == [1e-3, 1e-5]
    written = json.loads((workdir / "result.json").read_text())
    # Another test trains one setting again, in other seconds.
    settings = [
        [{**setting, "seconds_per_epoch": 0} for setting in side["settings"]]
        for side in (written, result)
    ]
    assert settings[0] == settings[1] and written | {"settings": 0} == result | {"settings": 0}
    assert not (workdir / "checkpoints").exists()


def test_numbers_agree(finished: tuple[Path, dict]) -> None:
    workdir, result = finished
    points, layers = (pd.read_csv(workdir / name) for name in ("sparsity.csv", "layers.csv"))
    accuracies = points[["accuracy", "finetuned_accuracy"]]
    assert accuracies.ge(0).all(axis=None) and accuracies.le(100).all(axis=None)
    assert (points["accuracy"] != points["finetuned_accuracy"]).any()
    assert (points[points["method"] == "dense"]["accuracy"] > 80).all()
    assert not (layers["method"] == "dense").any()
    assert layers["sparsity"].between(0, 1).all()

    keys = ["method", "strength", "trial"]
    layers["closed"] = layers["sparsity"] * layers["size"]
    sums = layers.groupby(keys)[["closed", "size"]].sum()
    assert (sums["size"] == sum(SIZES.values())).all()
    assert layers.groupby("layer")["size"].first().to_dict() == SIZES
    sparse = points[points["method"] != "dense"].set_index(keys)["sparsity"]
    assert sparse.between(0, 1, inclusive="neither").all()
    np.testing.assert_allclose(sums["closed"] / sums["size"], sparse.loc[sums.index], atol=1e-9)

    means = sparse.groupby(["method", "strength"]).mean()
    assert means["binmask", 1e-3] > means["binmask", 1e-5] + 0.1
    # A drawn mask has its sparsity in expectation.
    np.testing.assert_allclose(means["probmask"], means["binmask"], atol=0.05)

    dense, *others = result["settings"]
    assert (dense["method"], dense["strength"], dense["loss"][0]) == ("dense", None, 0.0)
    for setting in others:
        lost = dense["finetuned_accuracy"][0] - setting["finetuned_accuracy"][0]
        assert setting["loss"][0] == pytest.approx(lost)
        mean = means[setting["method"], setting["strength"]]
        assert setting["sparsity"][0] == pytest.approx(mean, rel=1e-12)
    text = sparsify.table_text(result)
    assert len(text.splitlines()) == 7
    assert f"{100 * means['binmask', 1e-3]:.3f} +- " in text


def test_a_finished_comparison_is_read_again_and_another_one_refused(
    finished: tuple[Path, dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    workdir, result = finished
    monkeypatch.setattr(fsjax.Plan, "train", refuse_training)
    assert sparsify.run(tiny(), workdir, progress=False) == result
    config = tiny()
    config.binmask.initial = 0.2
    with pytest.raises(ConfigError, match="holds another run .*binmask.initial was 0.1"):
        sparsify.run(config, workdir, progress=False)


def test_what_is_missing_is_trained_and_nothing_else(
    finished: tuple[Path, dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    workdir, result = finished
    names = ("sparsity.csv", "layers.csv")
    before = [pd.read_csv(workdir / name) for name in names]
    # As if killed between the two files of the last setting.
    before[0][:-2].to_csv(workdir / "sparsity.csv", index=False)
    (workdir / "result.json").unlink()
    (workdir / "checksums.json").unlink()
    trained = []

    def count(plan, train=fsjax.Plan.train, **options):
        trained.append((plan.method.name, options["hyper"]))
        return train(plan, **options)

    monkeypatch.setattr(fsjax.Plan, "train", count)
    again = sparsify.run(tiny(), workdir, progress=False)
    density = 1 - before[0][before[0]["strength"] == 1e-5]["sparsity"][:2].mean()
    assert trained == [("probmask", {"density": [pytest.approx(density)] * 2})]
    for old, name in zip(before, names, strict=True):
        new = pd.read_csv(workdir / name)
        pd.testing.assert_frame_equal(
            new.drop(columns="seconds_per_epoch", errors="ignore"),
            old.drop(columns="seconds_per_epoch", errors="ignore"),
        )
    for setting, former in zip(again["settings"], result["settings"], strict=True):
        assert setting["finetuned_accuracy"] == former["finetuned_accuracy"]


def test_layers_come_in_the_order_of_the_network() -> None:
    paths = {"Conv_10": 4, "Conv_2": 4, "FanInDense_0/Dense_0": 2, "Block_0/Conv_1": 4}
    leaves = {f"{path}/kernel": np.full((1,) + (1,) * ndim, -0.1) for path, ndim in paths.items()}
    layers = sparsify.layers_of("binmask", SimpleNamespace(latents=leaves), 0)
    assert [name for name, *_ in layers] == ["Block_0/Conv_1", "Conv_2", "Conv_10", "Dense_0"]
    assert layers[0][1:] == (1.0, 1)
    chances = SimpleNamespace(probabilities={"Conv_0/kernel": np.array([[1.0, 0.0, 0.0, 0.0]])})
    assert sparsify.layers_of("probmask", chances, 0) == [("Conv_0", 0.75, 4)]


@bad_calls(
    ({"strengths": (1e-5, 1e-5)}, "all of them different"),
    ({"strengths": (-1e-5,)}, "at least 0"),
    ({"network.finetune_epochs": 4}, "choose more epochs"),
    ({"network.network": "vgg19"}, "at least 32x32 pixels"),
    ({"probmask_options.evaluation": "samples"}, "did you mean 'sample'"),
    ({"data.name": "digit"}, "did you mean 'digits'"),
)
def test_mistakes_train_nothing_and_leave_nothing(bad: tuple, tmp_path: Path) -> None:
    config = tiny()
    config.update_from_flattened_dict(bad[0])
    refuses(lambda: sparsify.run(config, tmp_path / "run", False), bad[1])
    assert not (tmp_path / "run").exists()
