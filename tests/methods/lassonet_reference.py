"""LassoNet in NumPy, and the data and the settings with which the tests run it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from fsjax.engine.rows import Arrays, Rows
from fsjax.method import Spec, TrainState

N, D, H, C, K = 48, 7, 5, 3, 3
#: Paths of about two hundred epochs.
OPTIONS: dict[str, Any] = dict(
    hidden=(H,),
    hierarchy=2.0,
    dense_epochs=40,
    dense_patience=6,
    path_epochs=9,
    path_patience=3,
    learning_rate=0.02,
    path_learning_rate=0.03,
    path_multiplier=1.7,
    tolerance=0.995,
)
TASKS = ("classification", "regression")


def table(task: str) -> Arrays:
    """Rows whose first two columns determine the target; the last column is constant."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, D))
    x[:, -1] = 1.5
    hidden = x[:, 0] + np.abs(x[:, 1])
    y = np.digitize(hidden, np.quantile(hidden, [0.33, 0.66]))
    if task == "regression":
        y = np.stack([hidden, -x[:, 0]], axis=1).astype(np.float32)
    else:
        y = y.astype(np.int32)
    x = x.astype(np.float32)
    train, valid = slice(0, 36), slice(36, N)
    parts = (train, valid, slice(N, N))
    ones = np.ones(N, np.float32)
    return Arrays(*(Rows(*(jnp.asarray(a[part]) for a in (x, y, ones))) for part in parts))


def spec_of(task: str, **changes: Any) -> Spec:
    outputs = C if task == "classification" else 2
    spec = Spec(D, outputs, task, 36, 36, 400, 1, shuffle=False, best_by="last")
    return spec._replace(**changes)


def prox(v: np.ndarray, u: np.ndarray, strength: float, hierarchy: float) -> None:
    """The step for every feature, in place, by the sort of the paper's algorithm 2."""
    for row in range(len(v)):
        norm = np.sqrt((v[row] ** 2).sum())
        if norm == 0:
            u[row] = 0
            continue
        falling = np.append(-np.sort(-np.abs(u[row])), 0)
        for s in range(len(falling)):
            factor = max(1 - (strength - hierarchy * falling[:s].sum()) / norm, 0)
            factor /= 1 + s * hierarchy**2
            if falling[s] <= hierarchy * factor * norm:
                break
        v[row] *= factor
        u[row] = np.clip(u[row], -hierarchy * factor * norm, hierarchy * factor * norm)


class Reference:
    """The method in NumPy and float64, with loops over lambdas and epochs as in the paper."""

    def __init__(self, state: TrainState, task: str, path_start: float) -> None:
        rest = state.params["MLP_0"]["FanInDense_0"]["Dense_0"]
        leaves = [state.params[name] for name in ("skip", "kernel", "bias")]
        self.weights = [np.array(w, np.float64) for w in (*leaves, rest["kernel"], rest["bias"])]
        train, valid, _ = table(task)
        self.x, self.y, self.x_valid, self.y_valid = map(
            np.asarray, (train.x, train.y, valid.x, valid.y)
        )
        self.task, self.path_start, self.allowed = task, path_start, np.arange(D) < D - 1

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        skip, kernel, bias, out, out_bias = self.weights
        hidden = np.maximum(x @ kernel + bias, 0)
        return hidden, x @ skip + hidden @ out + out_bias

    def loss(self, outputs: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean loss and its slope by the outputs."""
        if self.task == "regression":
            return ((outputs - y) ** 2).mean(), 2 * (outputs - y) / y.size
        shares = np.exp(outputs - outputs.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        rows = np.arange(len(y))
        value = -np.log(shares[rows, y]).mean()
        shares[rows, y] -= 1
        return value, shares / len(y)

    def slopes(self) -> list[np.ndarray]:
        hidden, outputs = self.forward(self.x)
        _, slope = self.loss(outputs, self.y)
        back = slope @ self.weights[3].T * (hidden > 0)
        x = self.x
        return [x.T @ slope, x.T @ back, back.sum(0), hidden.T @ slope, slope.sum(0)]

    def norms(self) -> np.ndarray:
        return np.sqrt((self.weights[0] ** 2).sum(1))

    def epochs(self, step, lam: float, rate: float, most: int, patience: int, best: float):
        """One lambda: epochs until the objective has not improved for a while."""
        waited = 0
        for _ in range(most):
            step(self.slopes())
            self.weights[0][~self.allowed] = 0
            prox(self.weights[0], self.weights[1], lam * rate, OPTIONS["hierarchy"])
            yield lam, int((self.norms() > 0).sum())
            value = self.objective(lam)
            waited = 0 if value < OPTIONS["tolerance"] * best else waited + 1
            best = value if waited == 0 else best
            if waited == patience:
                return

    def objective(self, lam: float) -> float:
        value, _ = self.loss(self.forward(self.x_valid)[1], self.y_valid)
        return value + lam * self.norms().sum()

    def run(self, until: int) -> Iterator[tuple[float, int]]:
        """Lambda and number of selected features after every epoch."""
        moments = [(np.zeros_like(w), np.zeros_like(w)) for w in self.weights]
        count = 0

        def adam(slopes: list[np.ndarray]) -> None:
            nonlocal count
            count += 1
            for w, (m, s), g in zip(self.weights, moments, slopes, strict=True):
                m += 0.1 * (g - m)
                s += 0.001 * (g**2 - s)
                away = np.sqrt(s / (1 - 0.999**count)) + 1e-8
                w -= OPTIONS["learning_rate"] * m / (1 - 0.9**count) / away

        buffers = [np.zeros_like(w) for w in self.weights]

        def descend(slopes: list[np.ndarray]) -> None:
            for w, b, g in zip(self.weights, buffers, slopes, strict=True):
                b *= 0.9
                b += g
                w -= OPTIONS["path_learning_rate"] * b

        patience, most = OPTIONS["dense_patience"], OPTIONS["dense_epochs"]
        yield from self.epochs(adam, 0.0, 1.0, most, patience, np.inf)
        lam = self.path_start
        while True:
            rate, best = OPTIONS["path_learning_rate"], self.objective(lam)
            patience, most = OPTIONS["path_patience"], OPTIONS["path_epochs"]
            yield from self.epochs(descend, lam, rate, most, patience, best)
            if (self.norms() > 0).sum() <= until:
                return
            lam *= OPTIONS["path_multiplier"]
