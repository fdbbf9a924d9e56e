"""What a method may do around training, evaluation in chunks, and counted connections."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine_helpers import STATIC, counting_method, prepared_by

import fsjax
from fsjax.engine import loop
from fsjax.engine.seeds import train_seeds
from fsjax.engine.train import init_states
from fsjax.method import Batch, Method, Spec, create_state


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
