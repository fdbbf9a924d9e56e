"""Differences between runs, and their names."""

from __future__ import annotations

import json

from fsjax.storage.identity import Identity

RUN = Identity(
    settings={"seeds": (0, 1), "train": {"rate": 0.1, "epochs": 5}},
    data={"crc": 7},
    code={"loss": "a"},
    versions={"jax": "1"},
)


def test_equal_runs_are_equal_after_a_file() -> None:
    again = Identity.from_json(json.loads(json.dumps(RUN.to_json())))
    assert again == RUN and again.changes(RUN) == "" and again.versions == RUN.versions
    assert RUN.settings["seeds"] == [0, 1]


def test_changes_are_told_by_name() -> None:
    other = Identity({"seeds": [0], "train": {"rate": 0.1}}, {"crc": 7}, {"loss": "b"})
    assert other != RUN
    text = other.changes(RUN)
    for part in ("loss was 'a', is 'b'", "seeds was [0, 1], is [0]", "train.epochs was 5, is None"):
        assert part in text
    assert "seeds was None" in RUN.changes(Identity.from_json({"settings": 3}))
    assert other.changes(RUN, ["versions"]) == "jax was '1', is None"
    many = Identity({str(number): "x" * 500 for number in range(7)})
    message = many.changes(Identity())
    assert message.endswith("; and 3 more") and len(message) < 700


def test_other_versions_make_no_other_run() -> None:
    assert Identity(versions={"jax": "1"}) == Identity(versions={"jax": "2"})
