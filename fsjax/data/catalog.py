"""The public data sets that are known by name: one declarative entry each, nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fsjax.data import parsers
from fsjax.data.download import Remote
from fsjax.data.files import Form

_UCI = "https://archive.ics.uci.edu/static/public"
_MAT = (
    "https://raw.githubusercontent.com/jundongl/scikit-feature/master/skfeature/data",
    "https://jundongl.github.io/scikit-feature/files/datasets",
)


@dataclass(frozen=True)
class Entry:
    """What is known about a registered data set.

    Attributes:
        title: one line for people.
        shape: (rows, columns) that its files must have.
        num_classes: number of classes.
        forms: in which it may be found, in the order of preference.
        remotes: the files to download when none is found.
        protocol: the split protocol that ``'paper'`` stands for.
        scaling: the papers' scaling and the rows it is fitted on.
        wast_official: whether WAST uses the official test rows (otherwise 80/20).
        image_shape: pixel grid of a row, or None.
        image_order: ``'C'`` for pixels line by line, ``'F'`` for column by column.
        class_names: in the order of the class numbers, where the files do not tell.
        train_rows: number of leading training rows in files that hold train then test rows
            without saying so; 0 where there is no such split.
        first_labels: of the training rows, to tell apart sets whose files have the same names.
        impute: rule for missing values that this set has, or None for a set without any.
        hint: one more line for the message when nothing is found.
    """

    title: str
    shape: tuple[int, int]
    num_classes: int
    forms: tuple[Form, ...] = ()
    remotes: tuple[Remote, ...] = ()
    protocol: str = "wast"
    scaling: tuple[str, str] = ("standard", "train")
    wast_official: bool = False
    image_shape: tuple[int, ...] | None = None
    image_order: str = "C"
    class_names: tuple[str, ...] | None = None
    train_rows: int = 0
    first_labels: tuple[int, ...] | None = None
    impute: str | None = None
    hint: str = ""

    @property
    def source(self) -> str:
        """Where its files are published, for messages."""
        return ", ".join(remote.urls[0] for remote in self.remotes)


def _npz(name: str) -> Form:
    return Form("NumPy archive", parsers.read_npz, ((f"{name}.npz",),))


def _mat(*names: str) -> Form:
    return Form("MATLAB file", parsers.read_mat, (tuple(f"{name}.mat" for name in names),))


def _mat_remote(file: str) -> tuple[Remote, ...]:
    return (Remote(f"{file}.mat", tuple(f"{base}/{file}.mat" for base in _MAT)),)


def _scikit_feature(
    name: str, title: str, shape: tuple[int, int], num_classes: int, *files: str, **more: Any
) -> Entry:
    """A set of scikit-feature, by its name there and the names its file may have."""
    forms = (_npz(name), _mat(*files))
    return Entry(title, shape, num_classes, forms, _mat_remote(files[0]), **more)


def _cifar(
    num_classes: int,
    read: Callable[[Sequence[bytes]], parsers.Table],
    members: Sequence[str],
    folder: str,
    sha256: str,
    *fallbacks: Form,
) -> Entry:
    archive = f"cifar-{num_classes}-python.tar.gz"
    batches = Form("Python batch", read, tuple((name,) for name in members), (folder, archive))
    return Entry(
        f"colour photos of {num_classes} kinds of things, 32x32",
        (60000, 3072),
        num_classes,
        (_npz(f"cifar{num_classes}"), batches, *fallbacks),
        (Remote(archive, (f"https://www.cs.toronto.edu/~kriz/{archive}",), sha256),),
        protocol="official",
        wast_official=True,
        image_shape=(32, 32, 3),
    )


def _uci(number: int, file: str) -> tuple[Remote, ...]:
    return (Remote(file, (f"{_UCI}/{number}/{file}",)),)


_IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def _idx(*folders: str) -> Form:
    # Some mirrors write "images.idx3" where the original has "images-idx3".
    members = tuple((name, name.replace("-idx", ".idx")) for name in _IDX_FILES)
    return Form("IDX file", parsers.read_idx, members, folders)


def _idx_remotes(base: str, checksums: tuple[str, ...]) -> tuple[Remote, ...]:
    return tuple(
        Remote(f"{name}.gz", (f"{base}/{name}.gz",), sha256)
        for name, sha256 in zip(_IDX_FILES, checksums, strict=True)
    )


def _nips(name: str, sparse: bool = False) -> Form:
    folder = name.upper()
    parts = ("train.data", "train.labels", "valid.data", "valid.labels")
    return Form(
        "text file of the NIPS 2003 challenge",
        parsers.read_dexter if sparse else parsers.read_nips_dense,
        tuple((f"{name}_{part}", f"{folder}/{name}_{part}") for part in parts),
        (folder, f"{name}.zip"),
    )


_HAR_FILES = (
    ("train/X_train.txt", "X_train.txt"),
    ("train/y_train.txt", "y_train.txt"),
    ("test/X_test.txt", "X_test.txt"),
    ("test/y_test.txt", "y_test.txt"),
    ("features.txt",),
    ("activity_labels.txt",),
)
_HAR_ZIP = "human+activity+recognition+using+smartphones.zip"
_MICE_ZIP = "mice+protein+expression.zip"

ENTRIES: dict[str, Entry] = {
    "digits": Entry(
        "handwritten digits, 8x8, that come with scikit-learn",
        (1797, 64),
        10,
        protocol="stratified",
        scaling=("minmax", "train"),
        image_shape=(8, 8),
    ),
    "madelon_like": Entry(
        "generated in the manner of Madelon", (2600, 500), 2, protocol="stratified"
    ),
    "ehr_like": Entry(
        "generated in the manner of health records, with a rare outcome",
        (20000, 3000),
        2,
        protocol="stratified",
        scaling=("minmax", "train"),
    ),
    "mnist": Entry(
        "handwritten digits, 28x28",
        (70000, 784),
        10,
        (_npz("mnist"), _idx("MNIST/raw", "MNIST")),
        _idx_remotes(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
        protocol="ip_cae",
        scaling=("mnist", "train"),
        wast_official=True,
        image_shape=(28, 28),
        first_labels=(5, 0, 4, 1, 9, 2, 1, 3, 1, 4),
    ),
    "fashion_mnist": Entry(
        "photos of clothes, 28x28",
        (70000, 784),
        10,
        (_npz("fashion_mnist"), _idx("FashionMNIST/raw", "FashionMNIST", "fashion")),
        _idx_remotes(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            (
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
        protocol="ip_cae",
        scaling=("fashion_mnist", "train"),
        wast_official=True,
        image_shape=(28, 28),
        class_names=(
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
        first_labels=(9, 0, 0, 3, 0, 2, 7, 2, 5, 5),
    ),
    "isolet": Entry(
        "spoken letter names, 617 acoustic features",
        (7797, 617),
        26,
        (
            _npz("isolet"),
            Form(
                "comma-separated file",
                parsers.read_isolet,
                (("isolet1+2+3+4.data",), ("isolet5.data",)),
                ("isolet.zip",),
            ),
        ),
        _uci(54, "isolet.zip"),
        protocol="ip_cae",
        scaling=("minmax", "train+valid"),
        class_names=tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        hint="Isolet.mat of scikit-feature is not used: it has the first 1560 rows only",
    ),
    "coil20": _scikit_feature(
        "coil20",
        "20 objects, 72 views each, 32x32",
        (1440, 1024),
        20,
        "COIL20",
        protocol="ip_cae",
        scaling=("none", "train"),
        image_shape=(32, 32),
        image_order="F",
    ),
    "har": Entry(
        "human activity from a smartphone's sensors",
        (10299, 561),
        6,
        (
            _npz("har"),
            Form(
                "text file",
                parsers.read_har,
                _HAR_FILES,
                ("UCI HAR Dataset", "UCI HAR Dataset.zip", _HAR_ZIP, "har.zip"),
            ),
        ),
        _uci(240, _HAR_ZIP),
        protocol="ip_cae",
        scaling=("minmax", "train+valid"),
        wast_official=True,
    ),
    "mice_protein": Entry(
        "protein levels in the cortex of mice",
        (1080, 77),
        8,
        (
            _npz("mice_protein"),
            Form(
                "table of the UCI archive",
                parsers.read_mice,
                (("Data_Cortex_Nuclear.csv", "Data_Cortex_Nuclear.xls"),),
                (_MICE_ZIP, "mice.zip"),
            ),
        ),
        _uci(342, _MICE_ZIP),
        protocol="ip_cae",
        scaling=("minmax", "train"),
        impute="class_mean",
    ),
    "madelon": Entry(
        "artificial: 5 informative, 15 redundant and 480 noise columns",
        (2600, 500),
        2,
        (_npz("madelon"), _mat("madelon"), _nips("madelon")),
        _mat_remote("madelon"),
        wast_official=True,
        train_rows=2000,
    ),
    "usps": _scikit_feature(
        "usps", "handwritten digits, 16x16", (9298, 256), 10, "USPS", image_shape=(16, 16)
    ),
    "pcmac": _scikit_feature(
        "pcmac", "words of posts on PC or Mac hardware", (1943, 3289), 2, "PCMAC"
    ),
    "basehock": _scikit_feature(
        "basehock", "words of posts on baseball or hockey", (1993, 4862), 2, "BASEHOCK"
    ),
    "relathe": _scikit_feature(
        "relathe", "words of posts on religion or atheism", (1427, 4322), 2, "RELATHE"
    ),
    "dexter": Entry(
        "words of Reuters articles, with probes",
        (600, 20000),
        2,
        (_npz("dexter"), _nips("dexter", sparse=True)),
        _uci(168, "dexter.zip"),
        protocol="official",
        wast_official=True,
    ),
    "arcene": Entry(
        "mass spectra, cancer or normal, with probes",
        (200, 10000),
        2,
        (_npz("arcene"), _mat("arcene"), _nips("arcene")),
        _mat_remote("arcene"),
        protocol="official",
        wast_official=True,
        train_rows=100,
    ),
    "gisette": Entry(
        "handwritten 4 or 9, constructed features, with probes",
        (7000, 5000),
        2,
        (_npz("gisette"), _nips("gisette"), _mat("gisette")),
        _uci(170, "gisette.zip"),
        protocol="official",
        wast_official=True,
        train_rows=6000,
    ),
    "smk_can_187": _scikit_feature(
        "smk_can_187",
        "gene expression, smokers with or without lung cancer",
        (187, 19993),
        2,
        "SMK_CAN_187",
        "SMK-CAN-187",
    ),
    "gla_bra_180": Entry(
        "gene expression, four kinds of glioma",
        (180, 49151),
        4,
        (_npz("gla_bra_180"), _mat("GLA-BRA-180", "GLA_BRA_180")),
        (
            Remote(
                "GLA-BRA-180.mat",
                (
                    "https://jundongl.github.io/scikit-feature/OLD/datasets/GLA-BRA-180.mat",
                    f"{_MAT[0]}/GLA-BRA-180.mat",
                ),
            ),
        ),
    ),
    "allaml": _scikit_feature(
        "allaml", "gene expression, two kinds of leukaemia", (72, 7129), 2, "ALLAML"
    ),
    "cifar10": _cifar(
        10,
        parsers.read_cifar10,
        (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch", "batches.meta"),
        "cifar-10-batches-py",
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        Form(
            "NumPy archive",
            parsers.read_npz,
            (("cifar10_subset.npz",),),
            shape=(5000, 3072),
            note="a subset of 5000 of the 60000 rows",
            fallback=True,
        ),
    ),
    "cifar100": _cifar(
        100,
        parsers.read_cifar100,
        ("train", "test", "meta"),
        "cifar-100-python",
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    ),
}
"""Every registered data set by its name."""
