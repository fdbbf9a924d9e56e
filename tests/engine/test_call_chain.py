"""How far ``fit`` is from the user's functions: frames of fsjax in between, and how often it calls.

Whoever raises a number here makes tracebacks longer, or first fits slower.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
import pytest

import fsjax
from fsjax.arguments import Positive
from fsjax.methods import METHODS

#: Frames of fsjax between the call of ``fit`` and the loss.
MAX_FRAMES = 12

#: Each program builds the method with its own traced arguments: initialisation, epochs, selection;
#: and so do the checks.
MAX_BUILDS = 4

#: The checks, which trace one step, and the epochs.
MAX_TRACES = 2

#: The number of calls of the builder, and the frames of fsjax around each call of the loss.
Calls = tuple[list[int], list[list[str]]]


def frames() -> list[str]:
    folder = str(Path(fsjax.__file__).parent)
    return [frame.name for frame in traceback.extract_stack() if frame.filename.startswith(folder)]


@pytest.fixture
def calls() -> Iterator[Calls]:
    builds, losses = [0], []

    def measured(*, learning_rate: Positive = 0.1) -> fsjax.Method:
        builds[0] += 1

        def init(key, spec, data):
            kernel = 0.01 * jax.random.normal(key, (spec.num_columns, spec.num_outputs))
            return fsjax.create_state(spec, {"kernel": kernel})

        def loss(params, state, batch, key):
            losses.append(frames())
            return state.spec.loss_of(batch.x @ params["kernel"], batch.y, batch.weight), {}

        return fsjax.Method(
            fsjax.About(tasks=fsjax.tasks.SUPERVISED),
            init=init,
            loss=loss,
            optimizer=optax.sgd(learning_rate),
            predict=lambda state, x: x @ state.params["kernel"],
            select=lambda state: fsjax.Selection(jnp.abs(state.params["kernel"]).sum(axis=1)),
        )

    fsjax.register(estimator="Measured")(measured)
    yield builds, losses
    del METHODS["measured"]


def test_a_fit_calls_the_loss_through_few_frames_and_seldom(data, calls: Calls) -> None:
    builds, losses = calls
    method = METHODS["measured"]()
    builds[0] = 0
    options = {"num_features": 2, "num_epochs": 2, "batch_size": 16}
    fsjax.fit(method, data, **options)
    assert 0 < builds[0] <= MAX_BUILDS
    assert 0 < len(losses) <= MAX_TRACES
    for names in losses:
        assert names[0] == "fit" and len(names) <= MAX_FRAMES, names
    # The same programs serve other values of the traced arguments, other seeds and other rows.
    builds[0], traces = 0, len(losses)
    changed = METHODS["measured"](learning_rate=0.3)
    fsjax.fit(changed, (data[0] + 1.0, data[1]), seeds=(4,), **options)
    assert builds[0] <= 2 and len(losses) <= traces + 1
