"""The engine: seeds, epochs, the best snapshot, results, and what it refuses."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from engine_helpers import counting_method

import fsjax
from fsjax.engine import loop
from fsjax.engine.seeds import choose_seed_axis, padded_seeds, train_seeds
from fsjax.engine.train import init_states
from fsjax.errors import ConfigError, DataError, NonFiniteLossError
from fsjax.method import Spec

METHOD = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("drop_last", [True, False])
def test_every_row_is_visited_once_an_epoch(shuffle: bool, drop_last: bool) -> None:
    n, epochs, size = 23, 3, 5
    method = counting_method()
    spec = Spec(4, 2, "classification", n, size, epochs, shuffle, drop_last)
    states = init_states(method, spec, [0], np.ones((1, 4), bool))
    x = np.zeros((n, 4), np.float32)
    x[:, 0] = np.arange(n)
    y = np.zeros(n, np.int32)
    rows = (x, y, np.ones(n, np.float32), x[:3], y[:3], x[:0], y[:0])
    arrays = loop.Arrays(*map(jnp.asarray, rows))
    states, _ = train_seeds(method, "map", False, states, arrays, jnp.int32(epochs))
    rows = np.asarray(states.extra["rows"][0])
    steps = n // size if drop_last else -(-n // size)
    assert spec.steps_per_epoch == steps
    assert float(states.extra["steps"][0]) == steps * epochs
    assert int(states.step[0]) == steps * epochs
    if not drop_last:
        assert (rows == epochs).all()
    else:
        assert rows.sum() == steps * size * epochs
        assert rows.max() == epochs
        assert shuffle or (rows[steps * size :] == 0).all()


def test_result(data) -> None:
    result = fsjax.fit(METHOD, data, seeds=(4, 9), num_epochs=6, batch_size=16)
    chex.assert_shape(result.selected, (2, 5))
    chex.assert_shape(result.scores, (2, 11))
    chex.assert_shape(result.history["valid/loss"], (2, 6))
    assert result.seeds == (4, 9)
    for row in result.selected:
        assert len(set(row.tolist())) == 5
    assert result.selection_frequency.sum() == pytest.approx(5)
    assert set(result.metrics) == {"embedded_accuracy", "unique_percentage"}
    # Weights; biases do not count.
    assert result.cost["params"] == 5 * 6 + 6 * 11 + 5 * 8 + 8 * 3
    # The accuracy that is reported is that of predict() on the test rows.
    x, y = data
    rows = result.splits[0].test
    outputs = result.predict(x[rows])
    found = 100 * (outputs.argmax(-1) == y[rows]).mean(axis=1)
    chex.assert_trees_all_close(found, result.metrics["embedded_accuracy"])
    chex.assert_trees_all_equal(result.transform(x, seed=9), x[:, result.selected[1]])
    with pytest.raises(DataError, match="expected \\(N, 11\\)"):
        result.predict(x[:, :4])


def test_best_snapshot_has_the_lowest_validation_loss(data) -> None:
    result = fsjax.fit(METHOD, data, seeds=(0, 1, 2), num_epochs=40, batch_size=16)
    losses = result.history["valid/loss"]
    chex.assert_trees_all_equal(result.best_epoch, losses.argmin(axis=1) + 1)
    # It is the state that is evaluated, not the last one: its loss is found again.
    x, y = data
    rows = result.splits[0].valid
    logits = result.predict(x[rows])
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    found = -log_p[:, np.arange(len(rows)), y[rows]].mean(axis=1)
    chex.assert_trees_all_close(found, losses.min(axis=1), rtol=1e-4)
    assert not np.allclose(found, losses[:, -1], rtol=1e-4)


def test_a_seed_is_the_same_alone_and_among_others(data) -> None:
    options = dict(num_epochs=5, batch_size=16)
    together = fsjax.fit(METHOD, data, seeds=(1, 2, 3), seed_axis="map", **options)
    alone = fsjax.fit(METHOD, data, seeds=(2,), seed_axis="map", **options)
    middle = jax.tree.map(lambda leaf: leaf[1:2], together.states)
    chex.assert_trees_all_equal(middle, alone.states)
    again = fsjax.fit(METHOD, data, seeds=(1, 2, 3), seed_axis="map", **options)
    chex.assert_trees_all_equal(again.states, together.states)
    assert not np.allclose(together.scores[0], together.scores[1])


@pytest.mark.parametrize("axis", ["vmap", "shard"])
def test_seed_axes_agree(data, axis: str) -> None:
    # Equal up to the order of sums, which 25 steps of Adam amplify: 1e-3 here.
    options = dict(seeds=(1, 2, 3), num_epochs=5, batch_size=16)
    expected = fsjax.fit(METHOD, data, seed_axis="map", **options)
    found = fsjax.fit(METHOD, data, seed_axis=axis, **options)
    chex.assert_trees_all_close(found.scores, expected.scores, rtol=1e-3, atol=1e-4)
    chex.assert_trees_all_close(
        found.history["train/loss"], expected.history["train/loss"], rtol=1e-3
    )


@pytest.mark.parametrize("axis", ["vmap", "map", "shard"])
def test_a_split_for_each_seed(data, axis: str) -> None:
    options = dict(num_epochs=4, batch_size=16, split_per_seed=True)
    result = fsjax.fit(METHOD, data, seeds=(1, 2, 3), seed_axis=axis, **options)
    assert not np.array_equal(result.splits[0].train, result.splits[1].train)
    alone = fsjax.fit(METHOD, data, seeds=(2,), seed_axis="map", **options)
    chex.assert_trees_all_equal(alone.splits[0].train, result.splits[1].train)
    chex.assert_trees_all_close(result.scores[1], alone.scores[0], rtol=1e-3, atol=1e-4)


def test_choice_of_the_seed_axis() -> None:
    assert jax.device_count() == 2
    assert choose_seed_axis("auto", 3) == "shard"
    assert choose_seed_axis("auto", 1) == "map"
    assert choose_seed_axis("vmap", 1) == "vmap"
    assert padded_seeds("shard", 3) == 4
    assert padded_seeds("map", 3) == 3


def test_second_fit_does_not_compile(data) -> None:
    options = dict(seeds=(1, 2), num_epochs=3, batch_size=16)
    fsjax.fit(METHOD, data, **options)
    before = train_seeds._cache_size()
    result = fsjax.fit(METHOD, (data[0] + 1.0, data[1]), **options | {"seeds": (5, 6)})
    assert train_seeds._cache_size() == before
    assert result.cost["compile_seconds"] < 0.5


def test_constant_columns_are_scaled_and_never_preferred(data) -> None:
    x = data[0].copy()
    x[:, [0, 3, 9]] = 5.0
    for method in (METHOD, fsjax.methods.random_selection(5, hidden=(8,))):
        result = fsjax.fit(method, (x, data[1]), seeds=(0, 1), num_epochs=3, batch_size=16)
        assert result.constant_columns.tolist() == [3, 3]
        assert not np.isin(result.selected, [0, 3, 9]).any()
        assert np.isfinite(result.history["train/loss"]).all()
    everything = fsjax.methods.cae(11, hidden=(8,))
    result = fsjax.fit(everything, (x, data[1]), num_epochs=2, batch_size=16)
    assert sorted(result.selected[0, -3:].tolist()) == [0, 3, 9]


def test_loss_that_is_not_finite_stops_the_run(data) -> None:
    method = fsjax.methods.cae(3, hidden=(8,), learning_rate=1e30, layer_norm=False)
    with pytest.raises(NonFiniteLossError, match=r"epoch \d+ with seed 7.*learning rate 1e\+30"):
        fsjax.fit(method, data, seeds=(7,), num_epochs=5, batch_size=16)
    plain = fsjax.methods.cae(3, hidden=(8,), layer_norm=False)
    huge = (data[0] * 1e25, None)
    with pytest.raises(NonFiniteLossError, match="scaled inputs reach"):
        fsjax.fit(plain, huge, task="reconstruction", scaling="none", num_epochs=2, batch_size=16)


def test_progress_is_shown_with_metric_and_time_left(data, capsys) -> None:
    fsjax.fit(METHOD, data, num_epochs=3, batch_size=16, progress=True)
    shown = capsys.readouterr().err
    assert "ip_cae" in shown
    assert "valid/accuracy" in shown
    assert "3/3" in shown
    fsjax.fit(METHOD, data, num_epochs=3, batch_size=16)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (dict(num_epochs=0), ConfigError, "num_epochs=0; choose a whole number"),
        (dict(batch_size=0), ConfigError, "batch_size=0"),
        (dict(seeds=()), ConfigError, "seeds is empty"),
        (dict(seeds=(1, 1)), ConfigError, "repeats a seed"),
        (dict(seeds=("a",)), ConfigError, "a seed=.a."),
        (dict(seeds=(-1,)), ConfigError, "a seed=-1; choose a whole number, at least 0"),
        (dict(seed_axis="vmapp"), ConfigError, "did you mean 'vmap'"),
        (dict(scaling="minmaxx"), ConfigError, "did you mean 'minmax'"),
        (dict(split="papers"), ConfigError, "did you mean 'paper'"),
        (dict(task="classify"), ConfigError, "classification"),
        (dict(num_features=7), ConfigError, "num_features=7 but the method was made for 5"),
    ],
)
def test_bad_settings_are_named(data, changes: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        fsjax.fit(METHOD, data, **{"num_epochs": 2, "batch_size": 16, **changes})


def test_bad_data_is_named(data) -> None:
    x, y = data
    broken = x.copy()
    broken[3, 4] = np.nan
    broken[5:8, 6] = np.inf
    with pytest.raises(DataError, match="1 missing .*3 infinite .*in 2 of 11 columns"):
        fsjax.fit(METHOD, (broken, y))
    with pytest.raises(DataError, match="class"):
        fsjax.fit(METHOD, (x, np.zeros(90, int)))
    with pytest.raises(DataError, match="every column .* is constant"):
        fsjax.fit(METHOD, (np.ones_like(x), y))
    with pytest.raises(DataError, match="1 row"):
        fsjax.fit(METHOD, (x, np.where(np.arange(90) == 0, 9, y)))
    with pytest.raises(ConfigError, match="90 rows but y has 3"):
        fsjax.fit(METHOD, (x, y[:3]))
    with pytest.raises((ConfigError, DataError), match="num_features=20 but X has 11 columns"):
        fsjax.fit(fsjax.methods.cae(20), (x, y))


def test_what_is_no_method_or_no_data_is_named(data) -> None:
    x, y = data
    for method in ("ip_cae", fsjax.methods.ip_cae, fsjax.estimators.IPCAE(5), data):
        with pytest.raises(ConfigError, match=r"is no method; fsjax.fit takes a method such as"):
            fsjax.fit(method, data)
    for given in (x, None, (x, y, y)):
        with pytest.raises(ConfigError, match=r"give a pair \(X, y\)"):
            fsjax.fit(METHOD, given)
    with pytest.raises(ConfigError, match=r"give fsjax.data.load\('digits'\)"):
        fsjax.fit(METHOD, "digits")
    with pytest.raises(ConfigError, match="X is a sparse matrix; give X.toarray()"):
        fsjax.fit(METHOD, (scipy.sparse.csr_matrix(x), y))
    with pytest.raises(DataError, match="y has 1 missing values"):
        fsjax.fit(METHOD, (x, np.where(np.arange(90) == 0, np.nan, y)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 3}, "seeds=3; give several whole numbers"),
        ({"split": None}, "split=None; give the name of a protocol"),
        ({"split": (1, 2)}, "split=.* give the name of a protocol"),
        ({"split": "papr"}, "split protocol='papr' is unknown; did you mean 'paper'"),
        ({"valid_fraction": "a"}, "valid_fraction='a'; choose a share"),
        ({"noise_std": None}, "noise_std=None; choose 0"),
        ({"shuffle": "no"}, "shuffle='no'; choose True or False"),
        ({"checkpoint_dir": 3}, "checkpoint_dir=3; give a folder, or None"),
        ({"before_training": 3}, "before_training=3; give a function"),
        ({"sample_weight": "balanced"}, "sample_weight='balanced'; give a number"),
        ({"num_features": "2"}, "num_features='2' but the method was made for 5"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_of_another_type_are_named(data, changes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fsjax.fit(METHOD, data, **changes)


def test_checkpoints_of_another_run_are_refused(data, tmp_path) -> None:
    options = dict(num_epochs=2, batch_size=16, checkpoint_dir=tmp_path)
    fsjax.fit(METHOD, data, seeds=(0,), **options)
    with pytest.raises(ConfigError, match="checkpoints of another run .*seeds"):
        fsjax.fit(METHOD, data, seeds=(1,), **options)
    other = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6, learning_rate=0.1)
    with pytest.raises(ConfigError, match="learning_rate '0.001' there, '0.1' here"):
        fsjax.fit(other, data, seeds=(0,), **options)
    with pytest.raises(ConfigError, match="data_crc32"):
        fsjax.fit(METHOD, (data[0] ** 3, data[1]), seeds=(0,), **options)
    # The finished run is read again without training.
    again = fsjax.fit(METHOD, data, seeds=(0,), **options)
    assert again.cost["trained_epochs"] == 0


def test_text_labels() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    y = np.array(["no", "yes"])[(x[:, 1] > 0).astype(int)]
    result = fsjax.fit(fsjax.methods.ip_cae(1, hidden=(8,)), (x, y), num_epochs=40, batch_size=16)
    assert result.selected.tolist() == [[1]]


def test_a_run_continues_on_another_seed_axis(data, tmp_path, monkeypatch) -> None:
    # Three seeds are four on two devices; the checkpoint must not know.
    options = dict(seeds=(1, 2, 3), num_epochs=4, batch_size=16, checkpoint_every=2)
    whole = fsjax.fit(METHOD, data, seed_axis="map", **options)
    saved = fsjax.engine.checkpoint.Checkpoints.save

    def save_then_die(self, epoch, states, history) -> None:
        saved(self, epoch, states, history)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fsjax.engine.checkpoint.Checkpoints, "save", save_then_die)
        with pytest.raises(KeyboardInterrupt):
            fsjax.fit(METHOD, data, seed_axis="shard", checkpoint_dir=tmp_path, **options)
    resumed = fsjax.fit(METHOD, data, seed_axis="map", checkpoint_dir=tmp_path, **options)
    assert resumed.cost["trained_epochs"] == 2
    chex.assert_trees_all_close(resumed.scores, whole.scores, rtol=1e-3, atol=1e-4)


def test_the_task_is_that_of_the_method(data) -> None:
    for tasks, expected in (
        (("reconstruction",), "reconstruction"),
        (("classification", "reconstruction"), "classification"),
    ):
        method = counting_method()._replace(tasks=tasks, after_step=lambda state, *_: state)
        result = fsjax.fit(method, data, num_epochs=1)
        assert result.task == expected


def test_settings_of_jax_come_too_late() -> None:
    assert fsjax.use_cpu_devices(2) == 2
    with pytest.raises(ConfigError, match="too late"):
        fsjax.use_cpu_devices(3)
