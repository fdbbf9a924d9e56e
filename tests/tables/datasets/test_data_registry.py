"""Registered data sets: every form of their files, and the messages for other files.

Covers ``fsjax.tables.datasets.loading``.
"""

import gzip
import io
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from bad_calls import bad_calls, refuses
from registered import rows_of

from fsjax import data
from fsjax.errors import ConfigError, DataError
from fsjax.tables.datasets.catalog import ENTRIES
from fsjax.tables.readers import formats as parsers

pytestmark = pytest.mark.usefixtures("only_tmp")


def test_names() -> None:
    known = {"digits", "madelon_like", "ehr_like", "ring_xor_sum", "mnist", "coil20"}
    assert known <= set(data.available())


@bad_calls(
    (lambda: data.load("isollet"), "unknown data set 'isollet'"),
    (lambda: data.load("???"), "allowed: ", "'mnist'"),
    (lambda: data.load("digits", target="a"), "leave it out"),
)
def test_bad_calls(bad: tuple) -> None:
    refuses(*bad)


def test_places_in_order(tmp_path, monkeypatch) -> None:
    X, y = rows_of((1440, 1024), 20)
    first, second, cache = tmp_path / "a", tmp_path / "b", tmp_path / "home/.cache/fsjax"
    for number, folder in enumerate((first, second, cache)):
        folder.mkdir(parents=True)
        np.savez(folder / "coil20.npz", X=np.full_like(X, number), y=y)
    monkeypatch.setenv("FSJAX_DATA", str(second))
    assert data.load("coil20", first).X[0, 0] == 0
    assert data.load("coil20").X[0, 0] == 1
    monkeypatch.delenv("FSJAX_DATA")
    loaded = data.load("coil20")
    assert loaded.X[0, 0] == 2
    assert loaded.image_order == "F" and loaded.as_image(np.arange(1024))[1, 0] == 1


def test_mat_and_its_official_split(tmp_path) -> None:
    X, y = rows_of((2600, 500), 2)
    scipy.io.savemat(tmp_path / "MADELON.mat", {"X": X.astype(float), "Y": (2 * y - 1)[:, None]})
    loaded = data.load("madelon", tmp_path)
    assert loaded.y.dtype == np.int32 and loaded.y[:4].tolist() == [0, 1, 0, 1]
    assert int(loaded.official_split.sum()) == 600 and loaded.official_split[2000] == 1


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw"])
def test_idx_files(tmp_path, shrink, packed, folder) -> None:
    shrink("mnist", shape=(30, 784))
    labels = np.array(ENTRIES["mnist"].first_labels * 2 + tuple(range(10)), np.uint8)
    images = np.random.default_rng(0).integers(0, 256, (30, 28, 28)).astype(np.uint8)
    write_idx(tmp_path / folder, images, labels, packed)
    loaded = data.load("mnist", tmp_path)
    np.testing.assert_array_equal(loaded.X, images.reshape(30, -1))
    np.testing.assert_array_equal(loaded.y, labels)
    assert int(loaded.official_split.sum()) == 10


def write_idx(folder: Path, images: np.ndarray, labels: np.ndarray, packed: bool) -> None:
    folder.mkdir(parents=True)
    for part, array in (("images", images), ("labels", labels)):
        for name, rows in (("train", array[:20]), ("t10k", array[20:])):
            header = bytes([0, 0, 8, rows.ndim]) + np.array(rows.shape, ">u4").tobytes()
            content = header + rows.tobytes()
            path = folder / f"{name}-{part}-idx{rows.ndim}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(content) if packed else content)


def test_isolet_of_the_archive(tmp_path, shrink) -> None:
    shrink("isolet", shape=(52, 617))
    X = np.random.default_rng(0).uniform(-1, 1, (52, 617)).round(4)
    y = np.arange(52) % 26 + 1
    lines = [
        ", ".join(f"{v:.4f}" for v in row) + f", {label}." for row, label in zip(X, y, strict=True)
    ]
    with zipfile.ZipFile(tmp_path / "isolet.zip", "w") as archive:
        archive.writestr("isolet1+2+3+4.data.gz", gzip.compress("\n".join(lines[:40]).encode()))
        archive.writestr("isolet5.data.gz", gzip.compress("\n".join(lines[40:]).encode()))
    loaded = data.load("isolet", tmp_path)
    np.testing.assert_allclose(loaded.X, X, rtol=1e-6)
    np.testing.assert_array_equal(loaded.y, y - 1)
    assert int(loaded.official_split.sum()) == 12 and loaded.class_names[2] == "C"


@pytest.mark.parametrize("packed", [False, True])
def test_har_folder_and_nested_zip(tmp_path, shrink, packed) -> None:
    shrink("har", shape=(18, 3))
    X = np.random.default_rng(0).uniform(-1, 1, (18, 3)).astype(np.float32)
    y = np.arange(18) % 6 + 1
    files = {
        "features.txt": "1 same\n2 same\n3 other\n",
        "activity_labels.txt": "".join(f"{i + 1} ACT{i}\n" for i in range(6)),
    }
    for part, rows in (("train", slice(0, 12)), ("test", slice(12, 18))):
        files[f"{part}/X_{part}.txt"] = "".join(
            "  " + "  ".join(f"{v:.7e}" for v in row) + "\n" for row in X[rows]
        )
        files[f"{part}/y_{part}.txt"] = "".join(f"{v}\n" for v in y[rows])
    if packed:
        inner = io.BytesIO()
        with zipfile.ZipFile(inner, "w") as archive:
            for name, text in files.items():
                archive.writestr(f"UCI HAR Dataset/{name}", text)
        with zipfile.ZipFile(tmp_path / "har.zip", "w") as archive:
            archive.writestr("UCI HAR Dataset.zip", inner.getvalue())
    else:
        for name, text in files.items():
            path = tmp_path / "UCI HAR Dataset" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    loaded = data.load("har", tmp_path)
    np.testing.assert_allclose(loaded.X, X, rtol=1e-5)
    assert loaded.feature_names == ("same", "same #2", "other")
    assert loaded.class_names[0] == "ACT0" and int(loaded.official_split.sum()) == 6


def test_mice_protein_imputation(tmp_path, shrink) -> None:
    shrink("mice_protein", shape=(8, 2), num_classes=2)
    rows = ["MouseID,P1_N,P2_N,Genotype,class"]
    rows += [f"m{i},{'' if i == 0 else i},{i},Control,c-{'CS'[i % 2]}-s" for i in range(8)]
    (tmp_path / "Data_Cortex_Nuclear.csv").write_text("\n".join(rows))
    loaded = data.load("mice_protein", tmp_path)
    assert loaded.feature_names == ("P1_N", "P2_N")
    assert loaded.X[0, 0] == pytest.approx((2 + 4 + 6) / 3)
    assert data.load("mice_protein", tmp_path, impute="mean").X[0, 0] == pytest.approx(4)
    with pytest.raises(ConfigError, match="'class_mean'"):
        data.load("mice_protein", tmp_path, impute="class_men")


def test_nips_text_files(tmp_path, shrink) -> None:
    shrink("madelon", shape=(6, 3))
    shrink("dexter", shape=(4, 20000))
    folder = tmp_path / "MADELON"
    folder.mkdir()
    (folder / "madelon_train.data").write_text("1 2 3 \n4 5 6 \n7 8 9 \n1 1 2 \n")
    (folder / "madelon_train.labels").write_text("-1\n1\n-1\n1\n")
    (folder / "madelon_valid.data").write_text("1 2 3 \n4 5 7 \n")
    (tmp_path / "madelon_valid.labels").write_text("1\n-1\n")
    loaded = data.load("madelon", tmp_path)
    assert loaded.X[-1].tolist() == [4, 5, 7] and loaded.y.tolist() == [0, 1, 0, 1, 1, 0]
    with zipfile.ZipFile(tmp_path / "dexter.zip", "w") as archive:
        for part in ("train", "valid"):
            archive.writestr(f"DEXTER/dexter_{part}.data", "1:7 20000:3 \n2:999 \n")
            archive.writestr(f"DEXTER/dexter_{part}.labels", "1\n-1\n")
    loaded = data.load("dexter", tmp_path)
    assert loaded.X[0, 0] == 7 and loaded.X[0, -1] == 3 and loaded.X[3, 1] == 999
    assert loaded.official_split.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("packed", [False, True])
def test_cifar_batches(tmp_path, shrink, packed) -> None:
    shrink("cifar10", shape=(60, 3072))
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    planes = np.random.default_rng(0).integers(0, 256, (60, 3, 32, 32)).astype(np.uint8)
    files = {"batches.meta": {b"label_names": [f"c{i}".encode() for i in range(10)]}}
    for i, name in enumerate(names):
        rows = planes[10 * i : 10 * i + 10].reshape(10, -1)
        files[name] = {b"data": rows, b"labels": list(range(10))}
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    if packed:
        with tarfile.open(tmp_path / "cifar-10-python.tar.gz", "w:gz") as archive:
            archive.add(folder, arcname=folder.name)
        for name in files:
            (folder / name).unlink()
    loaded = data.load("cifar10", tmp_path)
    np.testing.assert_array_equal(loaded.X[3].reshape(32, 32, 3), planes[3].transpose(1, 2, 0))
    assert loaded.official_split.tolist() == [0] * 50 + [1] * 10
    assert loaded.class_names[1] == "c1"


def test_cifar100_has_the_fine_classes() -> None:
    planes = np.random.default_rng(0).integers(0, 256, (3, 3 * 32 * 32)).astype(np.uint8)
    parts = [{b"data": planes[i:], b"fine_labels": [7, 99, 0][i:]} for i in (0, 1)]
    names = {b"fine_label_names": [f"c{i}".encode() for i in range(100)]}
    loaded = parsers.read_cifar100([pickle.dumps(part, protocol=2) for part in (*parts, names)])
    assert loaded.y.tolist() == [7, 99, 0, 99, 0]
    assert loaded.split.tolist() == [0, 0, 0, 1, 1]
    assert loaded.class_names[99] == "c99"


def test_a_batch_that_would_run_code_is_refused() -> None:
    class Harm:
        def __reduce__(self):
            return print, ("ran",)

    with pytest.raises(DataError, match="refers to .*print"):
        parsers.read_cifar100([pickle.dumps({b"data": Harm()}, protocol=2)] * 3)


def test_cifar_subset_only_when_the_full_set_is_absent(tmp_path, shrink) -> None:
    X, y = rows_of((5000, 3072), 10)
    np.savez(tmp_path / "cifar10_subset.npz", X=X, y=y, split=np.arange(5000) >= 4000)
    loaded = data.load("cifar10", tmp_path, download=False)
    assert "subset of 5000" in loaded.source and int(loaded.official_split.sum()) == 1000
    shrink("cifar10", shape=(20, 3072))
    np.savez(tmp_path / "cifar10.npz", X=X[:20], y=y[:20])
    assert data.load("cifar10", tmp_path).num_samples == 20


def coil20(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Writes a changed file of COIL-20."""

    def write(folder: Path) -> None:
        X, y = rows_of((1440, 1024), 20)
        np.savez(folder / "coil20.npz", X=X, y=y)
        (folder / "coil20.npz").write_bytes(change((folder / "coil20.npz").read_bytes()))

    return write


def mnist(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Writes files of MNIST, one of them changed."""

    def write(folder: Path) -> None:
        labels = np.array(ENTRIES["fashion_mnist"].first_labels * 2 + tuple(range(10)), np.uint8)
        write_idx(folder / "mnist", np.zeros((30, 28, 28), np.uint8), labels, False)
        path = folder / "mnist/train-images-idx3-ubyte"
        path.write_bytes(change(path.read_bytes()))

    return write


def arrays(name: str, shape: tuple[int, int], classes: int, **more: float) -> Callable:
    """Writes the arrays of a data set, with a value or without labels."""

    def write(folder: Path) -> None:
        X, y = rows_of(shape, classes)
        X = X.astype(np.float32)
        X[5, 7] = more.get("value", 1.0)
        np.savez(folder / f"{name}.npz", X=X, **({"y": y} if classes else {}))

    return write


@bad_calls(
    ("mnist", mnist(lambda old: old), "first labels are ", " for 'mnist'"),
    ("mnist", mnist(lambda old: old[:-5]), "train-images", "truncated", "ossci"),
    ("mnist", mnist(lambda old: bytes([0, 0, 13, 3])), "it is not an IDX file of bytes"),
    ("mnist", arrays("mnist", (50, 10), 2), "X is (50, 10), expected (70000"),
    ("coil20", coil20(lambda old: b"\x89PNG\r\n\x1a\n" + bytes(99)), "coil20.npz", "a PNG image"),
    ("coil20", coil20(lambda old: b"PK\x03\x04 cut short"), "cannot be read as NumPy"),
    ("coil20", coil20(lambda old: b""), "is empty"),
    ("coil20", coil20(lambda old: b"<html>not found</html>"), "a web page"),
    ("coil20", coil20(lambda old: old[:5000]), "coil20.npz cannot be read"),
    ("coil20", arrays("coil20", (1440, 1024), 3), "3 classes, expected 20"),
    ("coil20", arrays("coil20", (1440, 1024), 0), "no labels"),
    ("coil20", arrays("coil20", (1440, 1024), 20, value=np.nan), "1 missing value"),
    ("isolet", lambda folder: (folder / "isolet.zip").write_bytes(b"PK\x03\x04"), "isolet.zip"),
)
def test_files_that_are_not_those_of_the_data_set(bad: tuple, tmp_path, shrink) -> None:
    name, write, *words = bad
    if name == "mnist" and "70000" not in words[0]:
        shrink("mnist", shape=(30, 784))
    write(tmp_path)
    refuses(lambda: data.load(name, tmp_path), *words)
