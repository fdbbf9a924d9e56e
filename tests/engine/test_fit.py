"""The engine: seeds, epochs, the best snapshot, results, and what it refuses."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fsjax
from fsjax.engine import loop
from fsjax.engine.prepare import Prepared, prepare
from fsjax.engine.seeds import choose_seed_axis, padded_seeds, train_seeds
from fsjax.engine.train import init_states
from fsjax.errors import ConfigError, DataError, NonFiniteLossError
from fsjax.method import Batch, Method, Spec, create_state

METHOD = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 11)).astype(np.float32)
    return x, (x[:, 2] > 0).astype(int) + (x[:, 7] > 0)


def counting_method() -> Method:
    """Records what the engine does: params follow a fixed path, no learning."""
    import optax

    def init(key: jax.Array, spec: Spec):
        params = {"bias": jnp.zeros(spec.num_outputs)}
        extra = {"rows": jnp.zeros(spec.num_samples), "steps": jnp.zeros(())}
        return create_state(key, spec, params, optax.sgd(0.0), extra=extra)

    def after_step(state, grads, aux, batch: Batch, key):
        # The first column of X holds the row's number.
        rows = batch.x[:, 0].astype(jnp.int32)
        seen = state.extra["rows"].at[rows].add(batch.weight)
        return state.replace(extra={"rows": seen, "steps": state.extra["steps"] + 1})

    return Method(
        name="counting",
        init=init,
        loss=lambda p, s, b, k: (jnp.sum(p["bias"]) + b.weight.sum() * 0.0, {}),
        optimizer=optax.sgd(0.0),
        predict=lambda s, x: jnp.zeros((x.shape[0], s.spec.num_outputs)),
        score=lambda s: jnp.arange(s.spec.num_features, dtype=jnp.float32),
        after_step=after_step,
        num_features=2,
    )


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


STATIC = fsjax.methods.static_sparse(hidden=(8,), epsilon=2, learning_rate=0.1)


@pytest.mark.parametrize("best_by", ["loss", "accuracy", "last"])
def test_the_kept_epoch_and_the_recorded_test_metrics(data, best_by: str) -> None:
    x, y = data
    options = dict(num_features=3, num_epochs=30, batch_size=16, seed_axis="map")
    result = fsjax.fit(STATIC, data, seeds=(0, 1), best_by=best_by, record_test=True, **options)
    history, seeds = result.history, np.arange(2)
    expected = {
        "loss": history["valid/loss"].argmin(axis=1) + 1,
        # The first of equally good epochs.
        "accuracy": history["valid/accuracy"].argmax(axis=1) + 1,
        "last": np.array([30, 30]),
    }[best_by]
    chex.assert_trees_all_equal(result.best_epoch, expected.astype(np.int32))
    assert best_by == "last" or (expected < 30).any()

    rows = result.splits[0].valid
    found = 100 * (result.predict(x[rows]).argmax(-1) == y[rows]).mean(axis=1)
    kept = history["valid/accuracy"][seeds, expected - 1]
    chex.assert_trees_all_close(found, kept.astype(float), rtol=1e-5)
    chex.assert_shape((history["test/loss"], history["test/accuracy"]), (2, 30))
    recorded = history["test/accuracy"][seeds, expected - 1].astype(float)
    chex.assert_trees_all_close(recorded, result.metrics["embedded_accuracy"], rtol=1e-5)

    # Only where it may not be the last is there a copy of the network.
    best = result.states.best
    copied = len(jax.tree.leaves((best.params, best.masks, best.extra)))
    assert copied == (0 if best_by == "last" else 8)
    # Its connections stay.
    assert not history["train/topology_change"].any()
    active = 2 * (11 + 8) + min(2 * (8 + 3), 24)
    np.testing.assert_allclose(history["train/sparsity"], 1 - active / (88 + 24), rtol=1e-5)
    assert result.cost["params"] == active


def test_test_rows_are_recorded_on_demand_only(data) -> None:
    result = fsjax.fit(STATIC, data, num_features=3, num_epochs=2, batch_size=16)
    assert not any(name.startswith("test") for name in result.history)


def prepared_by(data, protocol: str = "random", **changes) -> Prepared:
    dataset = fsjax.data.as_dataset(*data)
    options = dict(task="classification", num_features=3, seeds=(0,), split=protocol)
    return prepare(dataset, **options | changes)


@pytest.mark.parametrize("protocol", ["stratified", "random", "wast"])
def test_share_of_validation_rows(data, protocol: str) -> None:
    splits = {}
    for share in (0.0, 0.1, 0.5):
        prepared = prepared_by(data, protocol, valid_fraction=share)
        splits[share] = prepared.splits[0]
        train, valid, test = (len(part) for part in splits[share])
        assert (train + valid, test) == (72, 18)
        assert valid == round(72 * share)
        assert len(prepared.arrays.x_valid) == valid and len(prepared.arrays.x_train) == train
    chex.assert_trees_all_equal(*(split.test for split in splits.values()))


def test_without_validation_rows_the_last_epoch_is_kept(data) -> None:
    for best_by in ("loss", "accuracy"):
        result = fsjax.fit(
            STATIC,
            data,
            num_features=3,
            num_epochs=3,
            batch_size=16,
            valid_fraction=0.0,
            best_by=best_by,
        )
        assert result.best_epoch.tolist() == [3]
        assert result.states.spec.best_by == "last"
        assert len(result.splits[0].valid) == 0
        assert not any(name.startswith("valid") for name in result.history)


def test_noise_is_added_to_the_training_rows_once(data) -> None:
    clean, noisy, again, other = (
        prepared_by(data, noise_std=std, split_per_seed=per_seed, seeds=seeds)
        for std, per_seed, seeds in (
            (0.0, False, (0,)),
            (0.5, False, (0,)),
            (0.5, False, (5,)),
            (0.5, True, (5, 6)),
        )
    )
    noise = noisy.arrays.x_train - clean.arrays.x_train
    assert noise.dtype == np.float32
    assert noise.std() == pytest.approx(0.5, rel=0.1) and abs(noise.mean()) < 0.1
    chex.assert_trees_all_equal(again.arrays, noisy.arrays)
    same = ("y_train", "weight", "x_valid", "y_valid")
    for name in same:
        chex.assert_trees_all_equal(getattr(noisy.arrays, name), getattr(clean.arrays, name))
    chex.assert_trees_all_equal(noisy.x_test, clean.x_test)
    chex.assert_trees_all_equal(noisy.scalers[0]._asdict(), clean.scalers[0]._asdict())
    first, second = other.arrays.x_train
    assert not np.array_equal(np.sort(first, axis=None), np.sort(second, axis=None))

    options = dict(num_features=3, num_epochs=2, batch_size=16)
    losses = [
        fsjax.fit(STATIC, data, noise_std=std, **options).history["train/loss"]
        for std in (0.0, 2.0, 2.0)
    ]
    assert not np.allclose(losses[0], losses[1])
    chex.assert_trees_all_equal(losses[1], losses[2])


def test_noise_does_not_hide_constant_columns(data) -> None:
    x = data[0].copy()
    x[:, 4] = 1.0
    mask = prepared_by((x, data[1]), noise_std=1.0).feature_mask
    assert mask.sum() == 10 and not mask[0, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(best_by="lost"), "best_by='lost': did you mean 'loss'"),
        (dict(best_by="accuracy", task="reconstruction"), "needs classes, but the task is recons"),
        (dict(valid_fraction=1.0), "valid_fraction=1.0 is outside 0 to below 1"),
        (dict(valid_fraction=-0.1), "valid_fraction=-0.1"),
        (dict(noise_std=-1.0), "noise_std=-1.0; choose 0 for no noise"),
        (dict(noise_std=float("inf")), "noise_std=inf"),
        (dict(noise_std=float("nan")), "noise_std=nan"),
        (dict(num_features=None), "static_sparse selects any number; give"),
    ],
)
def test_bad_settings_of_validation_and_noise_are_named(data, changes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fsjax.fit(STATIC, data, **{"num_features": 3, "num_epochs": 2, **changes})


def test_the_task_is_that_of_the_method(data) -> None:
    for tasks, expected in (
        (("reconstruction",), "reconstruction"),
        (("classification", "reconstruction"), "classification"),
    ):
        method = counting_method()._replace(tasks=tasks, after_step=lambda state, *_: state)
        result = fsjax.fit(method, data, num_epochs=1)
        assert result.task == expected


def test_evaluation_in_chunks_is_that_of_all_rows(data, monkeypatch) -> None:
    spec = Spec(11, 3, "classification", 72, 16, 3)
    state = jax.tree.map(
        lambda leaf: leaf[0], init_states(STATIC, spec, [0], np.ones((1, 11), bool))
    )
    for rows in (5, 21, 23):
        x, y = (jnp.asarray(part[:rows]) for part in data)
        whole = jax.jit(lambda s, x, y: loop.evaluate(STATIC, s, x, y))(state, x, y)
        with monkeypatch.context() as patch:
            patch.setattr(loop, "EVALUATION_ROWS", 7)
            cut = jax.jit(lambda s, x, y: loop.evaluate(STATIC, s, x, y))(state, x, y)
        assert set(whole) == {"loss", "accuracy"}
        chex.assert_trees_all_close(cut, whole, rtol=1e-5)


def test_connections_of_the_inputs_are_counted(data) -> None:
    method = fsjax.methods.set(hidden=(8,), epsilon=2)
    options = dict(num_features=3, batch_size=16, seed_axis="map")
    result = fsjax.fit(method, data, seeds=(0, 1), num_epochs=5, **options)
    assert result.connection_epochs == (0, 1, 5)
    chex.assert_shape(result.input_connections, (2, 3, 11))
    assert (result.input_connections.sum(axis=2) == 2 * (11 + 8)).all()

    # The same training, stopped to look at the masks.
    prepared = prepared_by(data, "paper")
    states = init_states(method, result.states.spec, [0, 1], np.ones((2, 11), bool))
    arrays = jax.tree.map(jnp.asarray, prepared.arrays)
    for row, epochs in enumerate((0, 1, 4)):
        states, _ = train_seeds(method, "map", False, states, arrays, jnp.int32(epochs))
        counts = np.asarray(states.masks["layer_0"]["kernel"]).sum(axis=2)
        chex.assert_trees_all_equal(result.input_connections[:, row], counts.astype(np.float32))
    assert not np.array_equal(result.input_connections[:, 0], result.input_connections[:, 1])

    changes = result.history["train/topology_change"]
    assert (changes[:, :-1] > 5).all() and (changes[:, :-1] <= 20).all()
    assert not changes[:, -1].any()
    plain = fsjax.fit(counting_method()._replace(after_step=lambda s, *_: s), data, num_epochs=1)
    assert plain.connection_epochs == () and plain.input_connections is None


def hooked_method() -> tuple[Method, dict[str, set[bool]]]:
    """Counts its starts, and tells which functions saw the state in its other form."""
    import optax

    seen: dict[str, set[bool]] = {}

    def note(name: str, state) -> None:
        seen.setdefault(name, set()).add("packed" in state.extra)

    def init(key: jax.Array, spec: Spec):
        extra = {"starts": jnp.zeros(()), "rows": jnp.zeros(()), "epochs": jnp.zeros(())}
        return create_state(key, spec, {"bias": jnp.zeros(3)}, optax.sgd(0.1), extra=extra)

    def start(state, everything: Batch, key):
        note("start", state)
        rows = state.extra["rows"] + jnp.sum(everything.weight) + jax.random.uniform(key)
        return state.replace(
            extra=state.extra | {"starts": state.extra["starts"] + 1, "rows": rows}
        )

    def compress(state):
        return state.replace(extra=state.extra | {"packed": jnp.zeros(2)})

    def expand(state):
        return state.replace(extra={n: v for n, v in state.extra.items() if n != "packed"})

    def loss(params, state, batch: Batch, key):
        note("loss", state)
        return jnp.sum(jnp.square(params["bias"] - 1)), {}

    def predict(state, x):
        note("predict", state)
        return jnp.broadcast_to(state.params["bias"], (x.shape[0], 3))

    def after_epoch(state, everything: Batch, key):
        note("after_epoch", state)
        return state.replace(extra=state.extra | {"epochs": state.extra["epochs"] + 1})

    method = Method(
        name="hooked",
        init=init,
        loss=loss,
        optimizer=optax.sgd(0.1),
        predict=predict,
        score=lambda s: jnp.arange(s.spec.num_features, dtype=jnp.float32),
        start=start,
        compress=compress,
        expand=expand,
        after_epoch=after_epoch,
        num_features=2,
    )
    return method, seen


def test_one_start_and_the_other_form_for_steps_and_validation(data, tmp_path, monkeypatch) -> None:
    method, seen = hooked_method()
    options = dict(seeds=(0, 1), num_epochs=4, batch_size=16, checkpoint_every=1, best_by="last")
    whole = fsjax.fit(method, data, **options)
    assert seen == {
        "start": {False},
        "loss": {True},
        "predict": {True, False},
        "after_epoch": {False},
    }
    assert whole.states.extra["starts"].tolist() == [1, 1]
    assert whole.states.extra["epochs"].tolist() == [4, 4]
    # All training rows, and a key of its own for each seed.
    rows = np.asarray(whole.states.extra["rows"])
    assert (rows.astype(int) == len(whole.splits[0].train)).all() and rows[0] != rows[1]

    saved = fsjax.engine.checkpoint.Checkpoints.save

    def save_then_die(self, epoch, states, history) -> None:
        saved(self, epoch, states, history)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fsjax.engine.checkpoint.Checkpoints, "save", save_then_die)
        with pytest.raises(KeyboardInterrupt):
            fsjax.fit(method, data, checkpoint_dir=tmp_path, **options)
    resumed = fsjax.fit(method, data, checkpoint_dir=tmp_path, **options)
    assert resumed.cost["trained_epochs"] == 3
    chex.assert_trees_all_equal(resumed.states, whole.states)


def test_settings_of_jax_come_too_late() -> None:
    assert fsjax.use_cpu_devices(2) == 2
    with pytest.raises(ConfigError, match="too late"):
        fsjax.use_cpu_devices(3)
