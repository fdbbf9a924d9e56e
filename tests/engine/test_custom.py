"""The user's schedules, optimisers and losses, and values that a loss records.

Covers ``fsjax.engine.user_function_checks``.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from bad_calls import bad_calls, refuses
from engine_helpers import linear_method
from marks import slow_ids
from scipy.sparse import csr_array
from sklearn.base import clone

import fsjax
from fsjax import methods
from fsjax.arguments.user_functions import Missing
from fsjax.engine.rows import as_batch
from fsjax.errors import ConfigError
from fsjax.method import Method, Spec, TrainState, for_run
from fsjax.methods import METHODS
from fsjax.registry import MethodStructure
from fsjax.storage.npz import read
from fsjax.tables.scaling import apply

RATE = optax.linear_schedule(0.2, 0.01, 12)

#: Options of runs in which all training rows are one batch.
WHOLE: dict[str, Any] = {"batch_size": None, "num_features": 3, "best_by": "last"}

LINEAR = {"hidden": (), "weight_decay": 0.0}


def relative(spec: Spec) -> optax.GradientTransformation:
    """An optimiser whose rate falls over the whole run."""
    steps = spec.num_epochs * spec.steps_per_epoch
    return optax.adam(optax.cosine_decay_schedule(1e-2, steps))


def squared(outputs: jax.Array, y: jax.Array, weight: jax.Array) -> jax.Array:
    """The squared distance of the logits from 3 at the right class, and 0 elsewhere."""
    errors = jnp.sum(jnp.square(outputs - 3.0 * jax.nn.one_hot(y, outputs.shape[1])), axis=1)
    return fsjax.tasks.weighted_mean(errors, weight)


def trained(method: Method, data: Any, **options: Any) -> TrainState:
    return fsjax.plan(method, data, **WHOLE | options).train().states


def first_step(method: Method, data: Any, **options: Any) -> tuple[Any, Any, Any, jax.Array]:
    """Parameters of a seed before and after the first step, the gradient, and the loss."""
    planned = fsjax.plan(method, data, num_epochs=1, **WHOLE | options)
    state = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], planned.train(idle=[True]).states)
    batch = as_batch(planned.spec.task, planned.prepared.arrays.train)
    of_params = jax.value_and_grad(lambda p: method.loss(p, state, batch, jax.random.key(0))[0])
    loss, gradient = of_params(state.params)
    after = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], planned.train().states.params)
    return state.params, after, gradient, loss


@pytest.mark.slow
def test_a_schedule_trains_as_the_same_optimizer_made_by_hand(data) -> None:
    found = trained(methods.dense(hidden=(4,), learning_rate=RATE), data, num_epochs=4)
    by_hand = methods.dense(hidden=(4,))._replace(optimizer=optax.sgd(RATE, 0.9, nesterov=True))
    chex.assert_trees_all_close(found.params, trained(by_hand, data, num_epochs=4).params)
    constant = trained(methods.dense(hidden=(4,), learning_rate=0.2), data, num_epochs=4)
    first, second = (of.params["layer_0"]["kernel"] for of in (found, constant))
    assert np.abs(np.asarray(first) - np.asarray(second)).max() > 1e-3
    assert "learning_rate" not in found.hyper and "l2" in found.hyper


def test_a_schedule_is_used_from_the_first_step_to_fine_tuning() -> None:
    build = functools.partial(methods.neural_network, momentum=0.0, weight_decay=0.0)
    spec = Spec(5, 2, "classification", 20, 10, 6, 2)
    params = jnp.ones(3)

    def rates(**options: Any) -> list[float]:
        tx, state, found = for_run(build(**options).optimizer, spec), None, []
        state = tx.init(params)
        for _ in range(12):
            updates, state = tx.update(params, state, params)
            found.append(-float(updates[0]))
        return found

    wanted = [float(RATE(step)) for step in range(12)]
    np.testing.assert_allclose(rates(learning_rate=RATE), wanted, rtol=1e-5)
    # The last two epochs, of two steps each, start again, with a number as the rate.
    tuned = rates(learning_rate=RATE, finetune_epochs=2, final_learning_rate=None)
    np.testing.assert_allclose(tuned, [*wanted[:8], 0.01, 0.01, 0.01, 0.01], rtol=1e-5)


@pytest.mark.slow
def test_one_step_of_gradient_descent_is_its_formula(data) -> None:
    half = methods.neural_network(optimizer=lambda spec: optax.sgd(spec.num_epochs / 2), **LINEAR)
    before, after, gradient, _ = first_step(half, data)
    wanted = jax.tree.map(lambda p, g: p - 0.5 * g, before, gradient)
    chex.assert_trees_all_close(after, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_one_step_on_a_loss_of_ones_own_is_its_formula(data) -> None:
    method = methods.neural_network(optimizer=optax.sgd(0.01), **LINEAR)
    before, after, _, usual = first_step(method, data, loss=squared)
    planned = fsjax.plan(method, data, num_epochs=1, loss=squared, **WHOLE)
    x, y, weight = planned.prepared.arrays.train
    (layer,) = jax.tree.leaves(before, is_leaf=lambda node: "kernel" in node)

    def objective(layer: dict[str, jax.Array]) -> jax.Array:
        return squared(x @ layer["kernel"] + layer["bias"], y, weight)

    value, gradient = jax.value_and_grad(objective)(layer)
    (moved,) = jax.tree.leaves(after, is_leaf=lambda node: "kernel" in node)
    wanted = jax.tree.map(lambda p, g: p - 0.01 * g, layer, gradient)
    chex.assert_trees_all_close(moved, wanted, rtol=1e-4, atol=1e-6)

    result = planned.fit()[0]
    np.testing.assert_allclose(result.history["train/loss"][0, 0], value, rtol=1e-5)
    assert abs(float(usual) - float(value)) < 1e-4  # also when the method calls it
    # It is the criterion for the best epoch; the other metrics are those of the task.
    rows = result.splits[0].valid
    outputs = jnp.asarray(result.predict(data[0][rows])[0])
    judged = squared(outputs, jnp.asarray(data[1][rows]), jnp.ones(len(rows)))
    np.testing.assert_allclose(result.history["valid/loss"][0, -1], judged, rtol=1e-4)
    assert "valid/accuracy" in result.history


SCHEDULED = [
    name
    for name, builder in METHODS.items()
    if any(kind.function for kind in builder.registration.kinds.values())
]


@slow_ids("set", "wast")
@slow_ids("aefs", "cae", "ctre_*", "deep_lasso", "dense", "dufs", "entryprune", "gjsd", "neurofs")
@slow_ids("probmask", "quick_selection", "random_selection", "rigl", "sequential_attention")
@slow_ids("snip", "static_sparse", "stg", "auto_nfs", "sand")
@pytest.mark.parametrize("name", SCHEDULED)
def test_every_method_with_a_rate_takes_a_schedule_or_an_optimizer(
    name: str, data, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a method from outside the library, whose steps a plan traces.
    monkeypatch.setattr(MethodStructure, "in_library", False)
    registration = METHODS[name].registration
    small = {k: v for k, v in registration.small.items() if k != "learning_rate"}
    if name == "fisher_score":
        small |= {"num_features": 3, "hidden": (4,)}
    for given in ({"learning_rate": RATE}, {"optimizer": relative}):
        method = METHODS[name](**small | given)
        size = {} if method.about.num_features else {"num_features": 3}
        x, y = data[0], data[1] if "classification" in method.about.tasks else None
        fsjax.plan(method, (x, y), num_epochs=3, **size)
        assert "learning_rate" not in method.about.source.structure.traced or "optimizer" in given


def test_those_are_all_that_train() -> None:
    training = {name for name in METHODS if METHODS[name]().loss is not None}
    assert training - set(SCHEDULED) == {"lassonet"}
    assert {"binmask", "set", "ip_cae", "wast", "dufs", "fisher_score"} <= set(SCHEDULED)


def everywhere(amount: float) -> optax.GradientTransformation:
    """An optimiser that moves every weight, even those without a gradient."""
    return optax.stateless(lambda updates, _: jax.tree.map(lambda u: u * 0 - amount, updates))


@pytest.mark.slow
def test_inactive_weights_stay_0_under_any_optimizer(data) -> None:
    method = methods.set(hidden=(6,), epsilon=2, form="dense", optimizer=everywhere(0.01))
    result = fsjax.fit(method, data, num_epochs=3, **WHOLE)
    for layer, mask in result.states.masks.items():
        mask, kernel = np.asarray(mask["kernel"]), result.states.params[layer]["kernel"]
        assert not kernel[~mask].any() and np.abs(kernel[mask]).min() > 0


@pytest.mark.slow
def test_sparse_networks_rewire_with_the_moments_of_any_optimizer(data) -> None:
    method = methods.rigl(hidden=(6,), epsilon=2, optimizer=relative)
    states = fsjax.plan(method, data, num_epochs=3, **WHOLE | {"best_by": "loss"}).train().states
    moments = jax.tree.leaves(states.opt_state[0].mu)
    shapes = [leaf.shape for leaf in jax.tree.leaves(states.params)]
    assert [leaf.shape for leaf in moments] == shapes


def test_the_masks_of_binmask_keep_their_own_optimizer(data) -> None:
    method = methods.binmask(3, hidden=(4,), warmup=0.0, optimizer=optax.set_to_zero())
    planned = fsjax.plan(method, data, num_epochs=2, batch_size=30)
    assert "strength" in planned.hyper  # is still searched for
    before, after = (planned.train(idle=[idle]).states.params for idle in (True, False))
    chex.assert_trees_all_equal(before.weights, after.weights)
    assert (before.latents["inputs"] != after.latents["inputs"]).all()


@bad_calls(
    (lambda: methods.lassonet(3, learning_rate=RATE), "learning_rate is the function"),
    (lambda: methods.stg(3, strength=abs), "strength is the function ", "needs a number"),
    (
        lambda: methods.cae(3, learning_rate=lambda spec: 1.0 / spec.num_epochs),
        *("learning_rate is the function ", "fails"),
    ),
    (
        lambda: methods.cae(3, learning_rate=lambda step: jnp.ones(2)),
        "does not return a number for a step",
    ),
    (lambda: methods.cae(3, optimizer=optax.adam), "call it, as in optimizer=optax.adam"),
    (lambda: methods.cae(3, optimizer=0.1), "optimizer=0.1; give 'adam', an Optax"),
    (lambda: methods.cae(3, optimizer="adm"), "did you mean 'adam'"),
    (
        lambda: methods.cae(3, optimizer=optax.adam(0.1), learning_rate=0.1),
        *("learning_rate=", " has no effect with an"),
    ),
)
def test_what_is_no_schedule_and_no_optimizer_is_refused(bad: tuple) -> None:
    refuses(*bad)


CAE, SELECTED = methods.cae(3, hidden=()), {"num_features": 3}
STG_OF = methods.stg(3, hidden=(4,), search=False)
DEEP = methods.deep_lasso(hidden=(4,), batch_norm=False)


@bad_calls(
    (methods.cae(3, hidden=(), optimizer=lambda spec: 0.1), {}, "returns a float"),
    (CAE, {"loss": "mse"}, "loss='mse'; give a function"),
    (CAE, {"loss": lambda outputs, y, weight: outputs[:, 0]}, "returns an array of shape (56,)"),
    (methods.dufs(), {"loss": squared} | SELECTED, "dufs never calls state.spec.loss"),
    # By fsjax.tasks.loss.
    (linear_method(), {"loss": squared}, "linear never calls state.spec.loss_of"),
    (methods.fisher_score(3), {"loss": squared}, "fisher_score trains nothing"),
    (linear_method(record=("size",)), {}, "'size' is missing in the aux of linear's"),
    (linear_method(record="size"), {}, "record='size'; give a tuple"),
    (linear_method(record=("loss",)), {}, "linear records 'loss' already"),
    (STG_OF._replace(record=("num_selected",)), {}, "stg records 'num_selected' already"),
    (DEEP._replace(record=("stats",)), SELECTED, "'stats' is not a scalar in the aux"),
)
def test_what_does_not_fit_is_refused_before_training(bad: tuple, data) -> None:
    method, options, message = bad
    refuses(lambda: fsjax.plan(method, data, num_epochs=2, **options), message)


@pytest.mark.slow
def test_a_saved_result_names_its_functions_and_trains_no_more(data, tmp_path: Path) -> None:
    for number, given in enumerate(({"learning_rate": RATE}, {"optimizer": relative})):
        form = {"epsilon": 2, "form": "topology", "rank_by": "strength"}
        method = methods.static_sparse(hidden=(4,), **form, **given)
        result = fsjax.fit(method, data, num_epochs=2, loss=squared, **WHOLE)
        path = tmp_path / f"result{number}.npz"
        fsjax.save(result, path)
        loaded = fsjax.load(path)
        np.testing.assert_array_equal(loaded.predict(data[0]), result.predict(data[0]))
        np.testing.assert_array_equal(loaded.selected, result.selected)
        assert isinstance(loaded.states.spec.loss, Missing)
        assert repr(loaded.method) == repr(method)
        (name,) = given
        message = f" as {name}, and functions are not saved; to train again"
        with pytest.raises(ConfigError, match=message):
            fsjax.fit(loaded.method, data, num_epochs=2, **WHOLE)
        # Saved again, the file has the same content.
        fsjax.save(loaded, tmp_path / "again.npz")
        assert read(tmp_path / "again.npz")[0] == read(path)[0]
        stored = read(path)[0]["method"]["settings"][name]
        assert set(stored) == {"function"}
    assert fsjax.load(path).method is loaded.method


@pytest.mark.slow
def test_estimators_take_them_and_their_results_are_saved(data, tmp_path: Path) -> None:
    given = {"hidden": (), "num_epochs": 1, "optimizer": optax.set_to_zero()}
    estimator = fsjax.estimators.NeuralNetwork(3, **given)
    first = clone(estimator).fit(*data).result_
    assert dict(first.method.about.settings)["optimizer"] == given["optimizer"]
    again = clone(estimator).set_params(num_epochs=2).fit(*data)
    chex.assert_trees_all_equal(first.states.params, again.result_.states.params)
    with pytest.raises(ConfigError, match=r"optimizer=.*fsjax.save\(estimator.result_"):
        again.save(tmp_path / "estimator.npz")
    fsjax.save(again.result_, tmp_path / "result.npz")


def recording(**changes: Any) -> Method:
    """A linear model whose loss records the size of the weights and the mean of the inputs."""
    method = linear_method()

    def loss(params, state, batch, key):
        value, _ = method.loss(params, state, batch, key)
        size = jnp.sum(jnp.square(params["kernel"]))
        return value, {"size": size, "first": batch.x[0, 0], "rows": jnp.sum(batch.weight)}

    return method._replace(loss=loss, record=("size", "rows"), **changes)


@pytest.mark.slow
def test_scalars_of_aux_are_recorded_as_means_over_the_steps(data) -> None:
    method = recording()
    options = WHOLE | {"num_features": 2}
    whole = fsjax.fit(method, data, num_epochs=3, seeds=(0, 1), **options)
    rows = len(whole.splits[0].train)
    assert (whole.history["train/rows"] == rows).all()
    assert "train/first" not in whole.history
    planned = fsjax.plan(method, data, num_epochs=3, seeds=(0, 1), **options)
    first = planned.train(idle=[True, True]).states.params["kernel"]
    of_first = np.square(np.asarray(first)).sum(axis=(1, 2))
    np.testing.assert_allclose(whole.history["train/size"][:, 0], of_first, rtol=1e-5)
    chex.assert_shape(whole.history["train/size"], (2, 3))
    # Batches of 16 rows; the last one is smaller.
    parts = fsjax.fit(method, data, num_epochs=1, **options | {"batch_size": 16})
    steps = -(-rows // 16)
    np.testing.assert_allclose(parts.history["train/rows"][0, 0], rows / steps, rtol=1e-6)
    # Nothing else is recorded.
    usual = fsjax.fit(linear_method(), data, num_epochs=1, **options)
    assert set(whole.history) - set(usual.history) == {"train/size", "train/rows"}


@pytest.mark.slow
def test_a_loss_of_the_inputs_of_a_sparse_table(data) -> None:
    def absolute(outputs, y, weight):
        return fsjax.tasks.weighted_mean(jnp.mean(jnp.abs(outputs - y), axis=1), weight)

    x = np.where(data[0] > 0.5, data[0], 0.0)
    options = {"num_features": 3, "num_epochs": 1, "loss": absolute}
    result = fsjax.fit(methods.wast(hidden=(4,)), (csr_array(x), None), **options)
    rows = result.splits[0].valid
    errors = np.abs(result.predict(x[rows])[0] - apply(result.scalers[0], x[rows]))
    np.testing.assert_allclose(result.history["valid/loss"][0, 0], errors.mean(), rtol=1e-4)
