"""WAST against a NumPy version of its equations, and what it finds on data with known truth."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_ids

import fsjax
from fsjax.data import Dataset, load
from fsjax.engine.loop import init_state, train_step
from fsjax.evaluation import svm_accuracy
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.sparsity import count_active

N, B, D, H = 40, 10, 13, 6
SPEC = Spec(D, D, "reconstruction", N, B, num_epochs=3, steps_per_epoch=4)


def make(**options) -> Method:
    return fsjax.methods.wast(**{"hidden": (H,), "density": 0.4, "input_noise": 0.0, **options})


def init(method: Method, spec: Spec = SPEC) -> TrainState:
    columns = jnp.ones(spec.num_columns, bool)
    initialise = jax.jit(lambda seed: init_state(method, spec, seed, batch(0), columns))
    return initialise(np.uint32(0))


def batch(number: int) -> Batch:
    """A batch of rows; the last three rows of batch 2 are padding."""
    x = np.random.default_rng(number).normal(size=(B, D)) * np.linspace(0.5, 2, D)
    weight = np.where((np.arange(B) >= B - 3) & (number == 2), 0.0, 1.0)
    return Batch(*(jnp.asarray(a, jnp.float32) for a in (x, x, weight)))


class Reference:
    """WAST in NumPy and float64, from section 3 of the paper; one neuron's weights are a column."""

    def __init__(self, state: TrainState) -> None:
        def layers(tree) -> list[np.ndarray]:
            return [np.array(tree[name]["kernel"]) for name in ("layer_0", "layer_1")]

        self.weights = [w.astype(np.float64) for w in layers(state.params)]
        self.biases = [np.array(state.params[f"layer_{i}"]["bias"], np.float64) for i in (0, 1)]
        self.masks = layers(state.masks)
        self.velocity = [np.zeros_like(a) for a in self.weights + self.biases]
        self.importance = [np.zeros(D), np.zeros(D)]

    def step(
        self,
        x: np.ndarray,
        row_weight: np.ndarray,
        *,
        lam: float = 0.9,
        alpha: float = 0.3,
        factor: float = 1.0,
        accumulate: bool = True,
        drop: str = "importance",
        rewires: bool = True,
    ) -> float:
        w1, w2 = self.weights
        share = (row_weight / row_weight.sum())[:, None]
        hidden = 1 / (1 + np.exp(-(x @ w1 + self.biases[0])))
        residual = hidden @ w2 + self.biases[1] - x
        loss = float((share * residual**2).sum() / D)
        # Gradients of the dense network: inactive weights have theirs too.
        to_out = 2 * share * residual / D
        to_hidden = to_out @ w2.T * hidden * (1 - hidden)
        slopes = [x.T @ to_hidden, hidden.T @ to_out, to_hidden.sum(0), to_out.sum(0)]
        for number, (value, slope) in enumerate(
            zip(self.weights + self.biases, slopes, strict=True)
        ):
            self.velocity[number] = 0.9 * self.velocity[number] + slope
            value -= 0.1 * (slope + 0.9 * self.velocity[number])
        for weight, mask in zip(self.weights, self.masks, strict=True):
            weight[~mask] = 0
        sensitivity = lam * factor * (share * np.abs(residual)).sum(0)
        strengths = [np.abs(w1).sum(1), np.abs(w2).sum(0)]
        for side, strength in enumerate(strengths):
            before = self.importance[side] if accumulate else 0.0
            self.importance[side] = before + sensitivity + (1 - lam) * strength
        if rewires:
            self.rewire(alpha, drop)
        return loss

    def rewire(self, alpha: float, drop: str) -> None:
        for side in (0, 1):
            weight, mask = self.weights[side], self.masks[side]
            of_neuron = self.importance[side][:, None] if side == 0 else self.importance[side]
            score = np.abs(weight) if drop == "magnitude" else np.abs(weight) * of_neuron
            groups = [mask]
            if drop == "per_sign":
                groups = [mask & (weight > 0), mask & (weight < 0)]
            dropped = np.zeros_like(mask)
            for group in groups:
                places = np.argwhere(group)
                lowest = np.argsort([score[tuple(p)] for p in places])
                for p in places[lowest[: int(np.floor(alpha * len(places)))]]:
                    dropped[tuple(p)] = True
            mask &= ~dropped
            # Neurons in order of importance; within one, the lowest positions first.
            wanted, lines = int(dropped.sum()), mask if side == 0 else mask.T
            for neuron in np.argsort(-self.importance[side]):
                free = np.flatnonzero(~lines[neuron])[:wanted]
                lines[neuron, free] = True
                wanted -= len(free)
            weight[~mask] = 0


def check(state: TrainState, reference: Reference) -> None:
    """Equal connections, and equal numbers within 1e-4: single precision over ten steps."""
    for side, name in enumerate(("layer_0", "layer_1")):
        chex.assert_trees_all_equal(np.asarray(state.masks[name]["kernel"]), reference.masks[side])
        for value, expected in (
            (state.params[name]["kernel"], reference.weights[side]),
            (state.params[name]["bias"], reference.biases[side]),
        ):
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-6)
    for side, name in enumerate(("input_importance", "output_importance")):
        np.testing.assert_allclose(state.extra[name], reference.importance[side], rtol=1e-4)


def run(method: Method, steps: int = 10, **options) -> tuple[TrainState, Reference]:
    """Trains both and compares them after every step."""
    state = init(method)
    reference = Reference(state)
    step = jax.jit(lambda s, b, k: train_step(method, s, b, k))
    changed = 0
    for number in range(steps):
        before = np.asarray(state.masks["layer_0"]["kernel"])
        rows = batch(number)
        state, recorded = step(state, rows, jax.random.key(number))
        x, _, weight = (np.asarray(leaf, np.float64) for leaf in rows)
        assert float(recorded["loss"]) == pytest.approx(
            reference.step(x, weight, **options), rel=1e-5
        )
        check(state, reference)
        after = np.asarray(state.masks["layer_0"]["kernel"])
        changed += int((after != before).sum())
    assert (changed > 0) == options.get("rewires", True)
    return state, reference


@slow_ids("*per_sign*")
@slow_ids("{}-{}", "*magnitude*")
@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({}, {}),
        (
            {"drop_fraction": 0.5, "accumulate": False, "sensitivity": "gradient"},
            {"alpha": 0.5, "accumulate": False, "factor": 2.0},
        ),
        ({"sensitivity_weight": 0.0, "drop": "magnitude"}, {"lam": 0.0, "drop": "magnitude"}),
        ({"sensitivity_weight": 1.0, "drop": "per_sign"}, {"lam": 1.0, "drop": "per_sign"}),
    ],
    ids=str,
)
def test_steps_equal_the_equations(options: dict, settings: dict) -> None:
    method = make(**options)
    state, _ = run(method, **settings)
    assert [int(n) for n in count_active(state.masks)] == [H, 31, D, 31]
    chex.assert_trees_all_equal(method.select(state).scores, state.extra["input_importance"])


def test_change_once_an_epoch() -> None:
    method = make(update="epoch")
    state, reference = run(method, rewires=False)
    state = jax.jit(method.after_epoch)(state, batch(0), jax.random.key(1))
    before = reference.masks[0].copy()
    reference.rewire(0.3, "importance")
    assert (before != reference.masks[0]).any()
    check(state, reference)


def test_noise_is_on_the_inputs_and_not_on_the_targets() -> None:
    method = make(input_noise=0.5)
    state, rows, key = init(method), batch(0), jax.random.key(3)
    loss, aux = jax.jit(method.loss)(state.params, state, rows, key)
    x = np.asarray(rows.x + 0.5 * jax.random.normal(jax.random.clone(key), rows.x.shape))
    residual = np.asarray(method.predict(state, jnp.asarray(x))) - np.asarray(rows.x)
    assert float(loss) == pytest.approx(np.mean(residual**2), rel=1e-5)
    np.testing.assert_allclose(aux["residual"], np.abs(residual).mean(0), rtol=1e-5)


def test_starting_connections_and_weights() -> None:
    method = fsjax.methods.wast()
    state = init(method, Spec(500, 500, "reconstruction", N, B, 3, 4))
    assert [int(n) for n in count_active(state.masks)] == [200, 20_000, 500, 20_000]
    for layer, fan_in in (("layer_0", 500), ("layer_1", 200)):
        kernel = np.asarray(state.params[layer]["kernel"])
        assert (kernel[~np.asarray(state.masks[layer]["kernel"])] == 0).all()
        # The fan-in of the dense layer, as the authors' code has it.
        assert np.abs(kernel).max() == pytest.approx(1 / np.sqrt(fan_in), rel=0.01)
    assert not np.any(method.select(state).scores)


SEEDS = (0, 1, 2)


def shuffled(x: np.ndarray) -> np.ndarray:
    """The table with every column shuffled separately, so that columns are independent."""
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(column) for column in x.T], axis=1)


def fit(method: Method, x: np.ndarray, num_epochs: int) -> fsjax.FitResult:
    return fsjax.fit(
        method,
        (x, None),
        seeds=SEEDS,
        num_features=20,
        num_epochs=num_epochs,
        batch_size=64,
        scaling="scalar",
        valid_fraction=0.0,
    )


@pytest.mark.slow
def test_selection_beats_a_random_one_and_passes_over_constant_columns() -> None:
    data = load("madelon_like", num_samples=1000, num_features=120)
    truth, x = np.array(data.informative), data.X.copy()
    constant = np.setdiff1d(np.arange(120), truth)[:5]
    # Far from the mean of the matrix, so that they have the largest residuals.
    x[:, constant] = 9.0
    method = fsjax.methods.wast(hidden=(50,))
    result = fit(method, x, 10)
    assert result.constant_columns.tolist() == [5, 5, 5]
    assert not np.isin(result.selected, constant).any()
    assert np.isin(result.select(25)[:, -5:], constant).sum() == 0
    assert np.isin(result.selected, truth).mean(axis=1).min() >= 0.9

    dataset, split = Dataset("table", x, data.y), result.splits[0]
    rng = np.random.default_rng(0)
    accuracies = [svm_accuracy(dataset, split, columns) for columns in result.selected]
    at_random = [svm_accuracy(dataset, split, rng.permutation(120)[:20]) for _ in SEEDS]
    assert min(accuracies) > max(at_random) + 5

    # With one scale for the whole table the columns of large variance are selected, even if they
    # are independent of each other. The next test is about dependent columns.
    alone = fit(method, shuffled(x), 10)
    assert np.isin(alone.selected, truth).mean(axis=1).min() >= 0.9


@pytest.mark.slow
def test_finds_columns_that_belong_together_among_columns_of_equal_variance() -> None:
    rng = np.random.default_rng(0)
    factors, mixture = rng.normal(size=(1000, 2)), rng.normal(size=(2, 20))
    x = rng.normal(size=(1000, 120))
    order = rng.permutation(120)
    truth = order[:20]
    x[:, truth] = factors @ mixture / np.linalg.norm(mixture, axis=0) + 0.3 * x[:, truth]
    x = (x / x.std(axis=0)).astype(np.float32)
    method = fsjax.methods.wast(hidden=(100,), sensitivity_weight=0.4, drop_fraction=0.1)
    recovered, control = (
        np.isin(fit(method, rows, 30).selected, truth).mean(axis=1) for rows in (x, shuffled(x))
    )
    # By chance it is a sixth.
    assert recovered.min() >= 0.45
    assert control.max() <= 0.35
