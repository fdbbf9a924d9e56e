"""Registered data sets: every form of their files, and the messages for other files.

Covers ``fsjax.tables.datasets.loading``.
"""

import gzip
import io
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from registered import rows_of

from fsjax import data
from fsjax.errors import ConfigError, DataError
from fsjax.tables.datasets.catalog import ENTRIES
from fsjax.tables.readers import formats as parsers

pytestmark = pytest.mark.usefixtures("only_tmp")


def test_names() -> None:
    known = {"digits", "madelon_like", "ehr_like", "ring_xor_sum", "mnist", "coil20"}
    assert known <= set(data.available())
    with pytest.raises(DataError, match="unknown data set 'isollet'"):
        data.load("isollet")
    with pytest.raises(DataError, match="allowed: .*'mnist'"):
        data.load("???")
    with pytest.raises(ConfigError, match="leave it out"):
        data.load("digits", target="a")


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


def test_fashion_files_are_not_taken_for_mnist(tmp_path, shrink) -> None:
    shrink("mnist", shape=(30, 784))
    labels = np.array(ENTRIES["fashion_mnist"].first_labels * 2 + tuple(range(10)), np.uint8)
    write_idx(tmp_path / "mnist", np.zeros((30, 28, 28), np.uint8), labels, False)
    with pytest.raises(DataError, match="first labels are .*expected .* for 'mnist'"):
        data.load("mnist", tmp_path)


def test_idx_cut_short(tmp_path, shrink) -> None:
    write_idx(tmp_path / "mnist", np.zeros((30, 28, 28), np.uint8), np.zeros(30, np.uint8), False)
    path = tmp_path / "mnist/train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DataError, match=r"train-images.*truncated.*ossci"):
        data.load("mnist", tmp_path)


def test_idx_files_begin_with_their_type(tmp_path, shrink) -> None:
    write_idx(tmp_path / "mnist", np.zeros((30, 28, 28), np.uint8), np.zeros(30, np.uint8), False)
    (tmp_path / "mnist/train-images-idx3-ubyte").write_bytes(bytes([0, 0, 13, 3]))
    with pytest.raises(DataError, match="it is not an IDX file of bytes"):
        data.load("mnist", tmp_path)


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "coil20.npz cannot be read.*is a PNG image"),
        (b"PK\x03\x04 cut short", "coil20.npz cannot be read as NumPy"),
        (b"", "coil20.npz cannot be read.*is empty"),
        (b"<html>not found</html>", "a web page"),
    ],
)
def test_broken_files(tmp_path, content, message) -> None:
    (tmp_path / "coil20.npz").write_bytes(content)
    with pytest.raises(DataError, match=message):
        data.load("coil20", tmp_path)


def test_half_an_archive(tmp_path) -> None:
    X, y = rows_of((1440, 1024), 20)
    np.savez_compressed(tmp_path / "coil20.npz", X=X, y=y)
    path = tmp_path / "coil20.npz"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(DataError, match="coil20.npz cannot be read"):
        data.load("coil20", tmp_path)
    (tmp_path / "isolet.zip").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match="isolet.zip cannot be read"):
        data.load("isolet", tmp_path)


def test_renamed_files(tmp_path) -> None:
    X, y = rows_of((50, 10), 2)
    np.savez(tmp_path / "mnist.npz", X=X, y=y)
    with pytest.raises(DataError, match=r"X is \(50, 10\), expected \(70000"):
        data.load("mnist", tmp_path)
    X, y = rows_of((1440, 1024), 3)
    np.savez(tmp_path / "coil20.npz", X=X, y=y)
    with pytest.raises(DataError, match="3 classes, expected 20"):
        data.load("coil20", tmp_path)
    np.savez(tmp_path / "coil20.npz", X=X)
    with pytest.raises(DataError, match="no labels"):
        data.load("coil20", tmp_path)


def test_missing_values_where_none_belong(tmp_path) -> None:
    X, y = rows_of((1440, 1024), 20)
    X = X.astype(np.float32)
    X[5, 7] = np.nan
    np.savez(tmp_path / "coil20.npz", X=X, y=y)
    with pytest.raises(DataError, match="1 missing value"):
        data.load("coil20", tmp_path)


def test_catalog_is_complete() -> None:
    for name, entry in ENTRIES.items():
        if name in ("digits", "madelon_like", "ehr_like", "ring_xor_sum"):
            continue
        assert entry.forms[0].members == ((f"{name}.npz",),)
        assert entry.remotes and all(remote.urls for remote in entry.remotes)
        assert entry.image_shape is None or np.prod(entry.image_shape) == entry.shape[1]
