"""What a selection does with its budget, on a clock that only the work of methods moves.

Covers ``fsjax.auto.pipeline``, ``fsjax.auto.contest.schedule``.
"""

import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from auto_helpers import problem

import fsjax
from fsjax.auto import pipeline
from fsjax.auto.contest import expected_time, network_rankings
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.rankers import SIMPLE, Ranking
from fsjax.auto.contest.rankers.parts import Part
from fsjax.auto.contest.request import Origin, Request
from fsjax.auto.reading.notes import Note

NETWORKS = ("icap", "l1_l21", "binmask", "lassonet", "deep_lasso", "sand", "ip_cae", "stg",
            "wast")  # fmt: skip

#: Seconds of the rankings by a network, which are trained together.
NETWORK = 3.0


@pytest.fixture
def work(monkeypatch, forest_seconds) -> list[str]:
    """Names of the work that was done, in order; each piece moves the clock."""
    now, done = [1000.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "process_time", lambda: now[0])

    def forest(part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
        now[0] += forest_seconds
        done.append("forest")
        return np.arange(part.X.shape[1], 0.0, -1.0)

    def networks(name, parts, task, groups, sizes, seed):
        now[0] += NETWORK
        done.append(name)
        order = np.arange(int(groups.max()) + 1)[::-1]
        return [Ranking({size: order[:size] for size in sizes}, -1.0 * order) for _ in parts]

    monkeypatch.setitem(SIMPLE, "forest", forest)
    monkeypatch.setitem(SIMPLE, "univariate", lambda part, *_: np.arange(1.0 * part.X.shape[1]))
    monkeypatch.setattr(network_rankings, "rank_folds", networks)
    monkeypatch.setattr(
        expected_time, "expected_seconds", lambda name, *_: forest_seconds * (name == "forest")
    )
    monkeypatch.setattr(expected_time.network_settings, "network_seconds", lambda *_, **__: NETWORK)
    return done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "forest_seconds", "networks"),
    [
        (33.0, 0.0, 9),
        (20.0, 0.0, 5),
        (60.0, 1.0, 9),
        (60.0, 2.0, 7),
        (30.0, 2.0, 1),
        (12.0, 0.5, 0),
    ],
)
def test_no_network_is_left_out_while_there_is_time_for_it(budget, forest_seconds, networks, work):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 6))
    selection = fsjax.select(
        X, (X[:, 0] + 0.3 * rng.normal(size=160) > 0).astype(int), budget=budget, judge="linear",
        methods=("univariate", "forest", *NETWORKS),
    )  # fmt: skip
    assert selection.method == "forest" and selection.seconds <= budget
    late = selection.facts.methods_left_out
    assert len(late) == 9 - networks == 9 - len(set(work) & set(NETWORKS))
    if late:
        # A network that wins ranks all rows and halves of them before the answer is written.
        assert selection.seconds > budget - 2.0 - 2 * NETWORK


def test_a_leak_that_takes_part_for_want_of_columns_says_so(monkeypatch):
    monkeypatch.setattr(pipeline, "run_stages", lambda request, *_: request)
    table = SimpleNamespace(design=SimpleNamespace(units=("a", "b")), keep=())
    notes = (Note("a", "leak", "is a likely leak"), Note("b", "missing", "has gaps"))
    request = Request(table, None, None, notes, Origin(), None)
    leak, other = pipeline.without_and_with_leaks(request, None, None, None).notes
    assert "a likely leak; it takes part, as without" in leak.text and other == notes[1]


@dataclass
class Answer:
    statements: tuple[str, ...] = ("three columns",)
    with_leaks: object = None
    better_than_chance: bool = True
    finished: bool = True
    stopped: bool = False


def test_an_interruption_early_with_leaks_keeps_the_selection_without_them(monkeypatch):
    calls = []

    def run_stages(*args):
        calls.append(args)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return Answer()

    monkeypatch.setattr(pipeline, "run_stages", run_stages)
    table = problem(columns=5)
    notes = (Note(table.design.units[0], "leak", "is a likely leak"),)
    request, clock = Request(table, None, None, notes, Origin(), None), Clock(100.0)
    result = pipeline.without_and_with_leaks(request, None, None, clock)
    assert result.statements[0] == "three columns" and result.with_leaks is None
    assert result.stopped and not result.finished and clock.stopped
