"""The cache of programs: what is compiled, found again, and discarded."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from engine_helpers import STATIC, linear_method

import fsjax
from fsjax.data import Split
from fsjax.engine import programs

#: A method whose programs compile in a short time.
LINEAR = linear_method()


@contextlib.contextmanager
def nothing_compiled(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A context in which neither the engine nor JAX may compile a program."""
    before = len(programs._kept)
    caplog.clear()
    with caplog.at_level(logging.WARNING), jax.log_compiles():
        yield
    compiled = [text for text in caplog.messages if text.startswith("Compiling")]
    assert compiled == []
    assert len(programs._kept) == before


#: Arguments of methods, and other values of the same arguments.
VALUES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "ip_cae": (
        fsjax.methods.ip_cae,
        dict(num_features=3, hidden=(4,), embedding_dim=4, gjsd_weight=0.1),
        dict(learning_rate=0.5, temperature_start=3.0, temperature_end=0.2, gjsd_weight=0.7),
    ),
    "set": (
        fsjax.methods.set,
        dict(hidden=(6,), epsilon=1.5),
        dict(learning_rate=0.2, drop_fraction=0.6, momentum=0.1, l2=0.01),
    ),
    "wast": (
        fsjax.methods.wast,
        dict(hidden=(6,), density=0.4),
        dict(drop_fraction=0.1, sensitivity_weight=0.2, input_noise=0.0, learning_rate=0.3),
    ),
    "stg": (
        fsjax.methods.stg,
        dict(num_features=3, hidden=(4,), search=False, l1=0.1),
        dict(strength=2.0, sigma=0.2, learning_rate=0.5, weight_decay=0.0, l1=0.3),
    ),
    "lassonet": (
        fsjax.methods.lassonet,
        dict(num_features=3, hidden=(4,), path_start=0.1),
        dict(path_start=2.0, hierarchy=1.0, learning_rate=0.1, momentum=0.2, tolerance=0.5),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
def test_other_values_compile_nothing(name: str, data, caplog) -> None:
    build, given, changes = VALUES[name]
    options = dict(num_features=3, seeds=(1, 2), num_epochs=2, batch_size=16)
    first = fsjax.fit(build(**given), data, **options)
    before = first.predict(data[0])
    changed = (np.asarray(data[0]) + 1.0, data[1])
    with nothing_compiled(caplog):
        second = fsjax.fit(build(**{**given, **changes}), changed, **options | {"seeds": (5, 6)})
        outputs = second.predict(changed[0])
    assert second.cost["compile_seconds"] < 0.5
    assert not np.allclose(before, outputs)
    for argument, value in changes.items():
        np.testing.assert_array_equal(second.states.hyper[argument], np.float32([value, value]))


@pytest.mark.slow
def test_a_value_is_the_same_traced_as_by_itself(data) -> None:
    options = dict(num_features=3, num_epochs=2, batch_size=16)
    method = fsjax.methods.set(hidden=(6,), epsilon=1.5, learning_rate=0.2)
    fsjax.fit(fsjax.methods.set(hidden=(6,), epsilon=1.5), data, **options)
    traced = fsjax.fit(method, data, **options)
    # After any change, even one without effect, the values are part of the program.
    fixed = fsjax.fit(method._replace(keep="accuracy"), data, best_by="loss", **options)
    assert fixed.states.hyper == {}
    np.testing.assert_allclose(fixed.scores, traced.scores, rtol=1e-5)


@pytest.mark.slow
def test_a_term_that_comes_in_is_another_program(data) -> None:
    options = dict(num_features=3, num_epochs=1)
    fsjax.fit(fsjax.methods.cae(3, hidden=(4,)), data, **options)
    before = len(programs._kept)
    fsjax.fit(fsjax.methods.cae(3, hidden=(4,), gjsd_weight=0.1), data, **options)
    assert len(programs._kept) > before


def test_folds_with_one_row_more_share_a_program(data, caplog) -> None:
    rows = np.arange(90)

    def fitted(train: int, valid: int) -> fsjax.FitResult:
        split = Split(rows[:train], rows[train : train + valid], rows[train + valid :])
        return fsjax.fit(LINEAR, data, num_features=2, num_epochs=2, batch_size=10, split=split)

    first = fitted(61, 13)
    with nothing_compiled(caplog):
        second = fitted(62, 12)
    assert first.states.spec == second.states.spec
    assert [len(part) for part in second.splits[0]] == [62, 12, 16]
    assert not np.allclose(first.scores, second.scores)


def test_predicting_rows_of_any_number_compiles_few_programs(data, caplog) -> None:
    result = fsjax.fit(LINEAR, data, num_epochs=1, seeds=(0, 1))
    x = np.concatenate([data[0]] * 4)
    whole = result.predict(x)
    for count in (20, 90):
        result.predict(x[:count])
    with nothing_compiled(caplog):
        for count in (0, 1, 33, 64, 65, 255, 256):
            np.testing.assert_allclose(result.predict(x[:count]), whole[:, :count], rtol=1e-5)


@programs.program()
def double(x: jax.Array, *, power: int) -> jax.Array:
    return x * 2.0**power


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    programs.free()
    monkeypatch.setattr(programs, "CAPACITY", 2)


def test_the_program_not_used_for_longest_goes(no_programs: None) -> None:
    shapes = [np.ones(n, np.float32) for n in (1, 2, 3)]
    first = double.compiled(shapes[0], power=1)
    double.compiled(shapes[1], power=1)
    assert double.compiled(shapes[0], power=1) is first
    double.compiled(shapes[2], power=1)
    assert len(programs._kept) == 2
    assert double.compiled(shapes[0], power=1) is first
    np.testing.assert_array_equal(double(shapes[1], power=3), [8.0, 8.0])


def test_programs_differ_by_all_that_they_depend_on(no_programs: None, monkeypatch) -> None:
    monkeypatch.setattr(programs, "CAPACITY", 99)
    x = np.ones(2, np.float32)
    fast = programs.program(compile="fast")(double.function)
    donating = programs.program(donate=(0,))(double.function)
    double.compiled(x, power=1)
    for kind, array, options in (
        (double, x, {"power": 2}),
        (double, np.ones(3, np.float32), {"power": 1}),
        (double, np.ones(2, np.int32), {"power": 1}),
        (double, x, {"power": 1, "work": 1e9}),
        (fast, x, {"power": 1}),
        (donating, x, {"power": 1}),
    ):
        before = len(programs._kept)
        kind.compiled(array, **options)
        assert len(programs._kept) == before + 1
        kind.compiled(array, **options)
        assert len(programs._kept) == before + 1


MAPS = Path("/proc/self/maps")


@pytest.mark.slow
@pytest.mark.skipif(not MAPS.exists(), reason="only Linux tells of its mappings")
def test_memory_of_programs_is_given_back(data) -> None:
    def mappings() -> int:
        return len(MAPS.read_text().splitlines())

    programs.free()
    fsjax.fit(STATIC, data, num_features=3, num_epochs=1)
    many = len(programs._kept)
    before = mappings()
    programs.free()
    assert len(programs._kept) == 0
    # Each program has some hundred mappings; a tenth of that leaves room for others.
    assert before - mappings() > 30 * many


@pytest.mark.slow
def test_a_program_whose_layouts_are_not_known_trains(data, monkeypatch) -> None:
    # JAX reads them under a bare `except`, which also swallows Ctrl-C.
    from jax._src.interpreters import pxla

    def unknown(executable: Any, in_layouts: Any, out_layouts: Any, *_: Any) -> Any:
        return (None,) * len(in_layouts), (None,) * len(out_layouts)

    method = fsjax.methods.wast(hidden=(7,))
    options = {"num_features": 3, "num_epochs": 2, "scaling": "standard"}
    monkeypatch.setattr(pxla, "_get_layouts_from_executable", unknown)
    result = fsjax.fit(method, data, **options)
    programs.free()
    monkeypatch.undo()
    np.testing.assert_array_equal(result.scores, fsjax.fit(method, data, **options).scores)
