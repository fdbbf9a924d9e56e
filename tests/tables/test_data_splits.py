"""Splits: PyTorch's permutation, the sizes in the papers, and parts that are disjoint.

Covers ``fsjax.tables.torch_random``.
"""

import hashlib

import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_ids

from fsjax import data
from fsjax.errors import DataError
from fsjax.tables.datasets.catalog import ENTRIES
from fsjax.tables.splits import validation_split


def table(num_rows: int, y: np.ndarray | None = None, **more: object) -> data.Dataset:
    return data.Dataset("table.csv", np.zeros((num_rows, 2), np.float32), y, **more)


def real(name: str) -> data.Dataset:
    try:
        return data.load(name, download=False)
    except DataError:
        pytest.skip(f"no file of {name!r}; set FSJAX_DATA to the folder that holds it")


# First entries, and sha256 of the whole permutation as little-endian int64; from PyTorch 2.13.0.
@pytest.mark.parametrize(
    ("n", "seed", "first", "digest"),
    [
        (1, 42, [0], "af5570f5a1810b7a"),
        (2, 42, [0, 1], "9d34149fbd1fe777"),
        (10, 42, [2, 6, 1, 8, 4, 5, 0, 9, 3, 7], "fd6484606b698821"),
        (10, 0, [4, 1, 7, 5, 3, 9, 0, 8], "03a19defe024a605"),
        (7, 1234567890123, [4, 5, 1, 3, 2, 0, 6], "59bd9737f827ce80"),
        (1000, 7, [615, 284, 599, 580], "f1da82586e18309a"),
        (6238, 42, [816, 591, 3966, 4287], "5331b1c1c8e7bda2"),
        (60000, 42, [37542, 43087, 2992, 25810], "7cd1a1e010482b25"),
    ],
)
def test_torch_permutation(n: int, seed: int, first: list[int], digest: str) -> None:
    order = data.torch_randperm(n, seed)
    assert order[: len(first)].tolist() == first
    assert hashlib.sha256(order.astype("<i8").tobytes()).hexdigest()[:16] == digest


def test_torch_permutation_of_nothing_and_of_too_much() -> None:
    assert data.torch_randperm(0, 42).shape == (0,)
    with pytest.raises(ValueError, match="choose a length"):
        data.torch_randperm(2**31, 42)
    with pytest.raises(ValueError, match="sum to 3"):
        data.torch_random_split(4, (2, 1), 42)


@slow_ids("mnist*")
@pytest.mark.parametrize(
    ("name", "protocol", "sizes"),
    [
        ("coil20", "paper", (864, 288, 288)),
        ("isolet", "paper", (4990, 1248, 1559)),
        ("mnist", "paper", (7200, 1800, 1500)),
        ("madelon", "paper", (1600, 400, 600)),
        ("pcmac", "paper", (1243, 311, 389)),
        ("arcene", "paper", (80, 20, 100)),
        ("dexter", "paper", (240, 60, 300)),
        ("coil20", "wast", (922, 230, 288)),
        ("isolet", "wast", (4990, 1247, 1560)),
        ("mnist", "wast", (48000, 12000, 10000)),
    ],
)
def test_sizes_on_the_real_files(name: str, protocol: str, sizes: tuple[int, int, int]) -> None:
    split = data.make_split(real(name), protocol)
    assert tuple(len(part) for part in split) == sizes
    assert len(np.unique(np.concatenate(split))) == sum(sizes)


@pytest.mark.parametrize(
    ("name", "rows", "num_train", "sizes"),
    [
        ("har", 10299, 7352, (5881, 1471, 2947)),
        ("mice_protein", 1080, 0, (648, 216, 216)),
        ("fashion_mnist", 70000, 60000, (7200, 1800, 1500)),
        ("cifar10", 60000, 50000, (40000, 10000, 10000)),
    ],
)
def test_sizes_of_sets_by_their_shape(name, rows, num_train, sizes) -> None:
    mark = (np.arange(rows) >= num_train).astype(np.uint8) if num_train else None
    X, paper = np.zeros((rows, 1), np.uint8), ENTRIES[name].paper
    dataset = data.Dataset(name, X, None, official_split=mark, paper=paper)
    assert tuple(len(part) for part in data.make_split(dataset)) == sizes


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(30, 300),
    seed=st.none() | st.integers(0, 2**32 - 1),
    protocol=st.sampled_from(sorted(data.PROTOCOLS)),
    valid=st.sampled_from([0.0, 0.1, 0.3]),
)
def test_parts_are_disjoint_and_cover_all_rows(rows, seed, protocol, valid) -> None:
    y = (np.arange(rows) % 2).astype(np.int32)
    mark = (np.arange(rows) >= rows // 2).astype(np.uint8)
    split = data.make_split(
        table(rows, y, official_split=mark),
        protocol,
        seed=seed,
        fractions=(0.7 - valid, valid, 0.3),
        valid_fraction=valid,
    )
    joined = np.concatenate(split)
    assert joined.dtype == np.int32
    assert sorted(joined.tolist()) == list(range(rows))
    assert (len(split.valid) == 0) == (valid == 0)


@pytest.mark.parametrize("protocol", ["paper", "random", "wast", "ip_cae"])
def test_seed_none_is_42_and_another_seed_differs(protocol: str) -> None:
    digits = data.load("digits")
    fixed, same, other = (data.make_split(digits, protocol, seed=s) for s in (None, 42, 1))
    assert all(np.array_equal(a, b) for a, b in zip(fixed, same, strict=True))
    assert not np.array_equal(fixed.test, other.test)


def test_official_test_rows_stay_for_every_seed() -> None:
    dataset = table(100, official_split=(np.arange(100) >= 80).astype(np.uint8))
    splits = [data.make_split(dataset, "official", seed=seed) for seed in (None, 1, 2)]
    assert all(split.test.tolist() == list(range(80, 100)) for split in splits)
    assert len({tuple(np.sort(split.valid)) for split in splits}) == 3


def test_stratified_keeps_the_proportions() -> None:
    y = np.repeat([0, 1], [160, 40]).astype(np.int32)
    split = data.make_split(table(200, y), "stratified")
    assert [int(y[part].sum()) for part in split] == [24, 8, 8]


def test_rows_that_validate_hold_the_classes_in_proportion() -> None:
    classes = np.repeat([0, 1, 2], [100, 60, 40])
    drawn = []
    for seed in (0, 1):
        train, valid = validation_split(200, 0.1, seed, classes)
        assert np.bincount(classes[valid]).tolist() == [10, 6, 4]
        np.testing.assert_array_equal(np.sort([*train, *valid]), np.arange(200))
        drawn.append(valid)
    assert not np.array_equal(*drawn)


def test_a_class_of_one_row_trains() -> None:
    classes = np.r_[7, np.zeros(9, int)]
    for seed in range(20):
        train, valid = validation_split(10, 0.5, seed, classes)
        assert 0 in train and len(valid) == 5


def test_a_class_of_two_rows_trains_beside_many_validation_rows() -> None:
    classes = np.r_[7, 7, np.zeros(98, int)]
    for seed in range(5):
        train, valid = validation_split(100, 0.8, seed, classes)
        assert set(classes[train]) == {0, 7} and len(valid) == 80


def test_reconstruction_needs_no_classes() -> None:
    split = data.make_split(table(10), "stratified", task="reconstruction")
    assert [len(part) for part in split] == [6, 2, 2]


@pytest.mark.parametrize("protocol", ["stratified", "random", "wast", "official"])
@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.1, 16), (0.5, 80)])
def test_valid_fraction_is_that_of_the_training_rows(protocol, share: float, count: int) -> None:
    y = (np.arange(200) % 2).astype(np.int32)
    mark = (np.arange(200) >= 160).astype(np.uint8)
    dataset = table(200, y, official_split=mark)
    split = data.make_split(dataset, protocol, valid_fraction=share)
    assert [len(part) for part in split] == [160 - count, count, 40]
    # The test rows do not depend on the validation rows.
    usual = data.make_split(dataset, protocol)
    assert np.array_equal(np.sort(split.test), np.sort(usual.test))
    assert len(usual.valid) == (32 if protocol in ("official", "wast") else 40)


def test_valid_fraction_of_the_ip_cae_protocol() -> None:
    mark = (np.arange(100) >= 80).astype(np.uint8)
    with_official = table(100, official_split=mark)
    for share, count in ((0.0, 0), (0.25, 20)):
        split = data.make_split(with_official, "ip_cae", valid_fraction=share)
        assert [len(part) for part in split] == [80 - count, count, 20]
        # Without official test rows this protocol keeps its own shares.
        split = data.make_split(table(100), "ip_cae", valid_fraction=share)
        assert [len(part) for part in split] == [60, 20, 20]


RARE = np.array([0] * 20 + [1] * 20 + [2] * 2, np.int32)
MANY = (np.arange(60) % 20).astype(np.int32)
FEW = {"protocol": "random", "fractions": (0.1, 0.4, 0.5)}


@bad_calls(
    (table(20), {"protocol": "randm"}, "did you mean 'random'"),
    (table(20), {"task": "classify"}, "did you mean 'classification'"),
    (table(20), {"fractions": (0.5, 0.2, 0.2)}, "sum to 1"),
    (table(20), {"fractions": (0.8, 0.2, 0.0)}, "above 0 for training and test rows"),
    (table(20), {"valid_fraction": 1.0}, "valid_fraction=1.0; choose a share"),
    (table(20), {"valid_fraction": -0.1}, "valid_fraction=-0.1; choose a share"),
    (table(20), {"valid_fraction": float("nan")}, "valid_fraction=nan; choose a share"),
    (table(20), {"protocol": "official"}, "no official split; choose protocol=stratified"),
    (table(20), {"protocol": "stratified"}, "needs classes", "no target"),
    (table(2), {"protocol": "random"}, "rows"),
    (table(2), {"protocol": "wast"}, "rows"),
    (table(1), {"protocol": "ip_cae"}, "rows"),
    (table(3), FEW, "table.csv has 3 rows, too few for fractions"),
    (table(60, MANY), {"protocol": "stratified"}, "20 classes", "only 12"),
    (
        table(20, np.ones(20)),
        {"protocol": "stratified", "task": "survival"},
        "task=survival needs two columns",
    ),
    (
        table(42, RARE, class_names=("low", "high", "rare")),
        {"protocol": "stratified"},
        *("class 'rare' of table.csv has 2 row", "at least 3"),
    ),
    (
        table(60, np.repeat([0, 1, 2], [40, 17, 3]).astype(np.int32)),
        {"protocol": "stratified", "fractions": (0.2, 0.2, 0.6)},
        *("class 2 of table.csv has 1 row(s) besides the test rows", "at least 2"),
    ),
)
def test_bad_requests(bad: tuple) -> None:
    refuses(lambda: data.make_split(bad[0], **bad[1]), *bad[2:])
