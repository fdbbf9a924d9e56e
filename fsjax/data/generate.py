"""Generated data with a known answer, in the manner of Madelon (NIPS 2003 challenge)."""

import numpy as np
from sklearn.datasets import make_classification

from fsjax.data.dataset import Dataset
from fsjax.errors import ConfigError


def madelon_like(
    num_samples: int = 2600,
    num_features: int = 500,
    num_informative: int = 5,
    num_redundant: int = 15,
    seed: int = 0,
    *,
    num_classes: int = 2,
    num_clusters_per_class: int | None = None,
    class_sep: float = 2.0,
    flip_y: float = 0.01,
) -> Dataset:
    """Clusters on the corners of a hypercube, their linear mixtures, and noise columns.

    Guyon's design of Madelon: a few informative columns that only separate the classes together,
    redundant columns that are random linear combinations of them, and probes of pure noise.
    Which clusters belong to which class is drawn at random, so that no single column tells.

    Args:
        num_samples: rows, N.
        num_features: columns, D.
        num_informative: columns that span the hypercube.
        num_redundant: columns that are linear combinations of the informative ones.
        seed: of the generator; the same seed gives the same table.
        num_classes: classes, at least 2.
        num_clusters_per_class: clusters that make up a class; by default as many as the
            hypercube has corners for, at most 16 (Madelon's number).
        class_sep: half the side of the hypercube, in units of a cluster's standard deviation.
            At 2 an SVM on the right columns scores about as on Madelon itself.
        flip_y: share of the rows, 0 to 1, whose label is drawn at random.

    Returns:
        A data set with float32 ``X``, shuffled rows and columns; ``informative`` holds the columns
        of both the informative and the redundant kind.

    Raises:
        ConfigError: if the counts do not fit together.
    """
    if num_informative < 1 or num_redundant < 0 or num_classes < 2:
        raise ConfigError(
            f"num_informative={num_informative}, num_redundant={num_redundant}, "
            f"num_classes={num_classes}; use at least 1, 0 and 2"
        )
    signal = num_informative + num_redundant
    if signal > num_features:
        raise ConfigError(
            f"num_informative={num_informative} and num_redundant={num_redundant} make {signal} "
            f"columns, but num_features={num_features}; raise num_features to at least {signal}"
        )
    corners = 2 ** min(num_informative, 30)
    clusters = num_clusters_per_class or max(1, min(16, corners // num_classes))
    if num_classes * clusters > corners:
        raise ConfigError(
            f"{num_classes} classes of {clusters} clusters need {num_classes * clusters} corners, "
            f"but num_informative={num_informative} gives {corners}; raise num_informative"
        )
    if num_samples < num_classes * clusters:
        raise ConfigError(
            f"num_samples={num_samples} is fewer than one row for each of the "
            f"{num_classes * clusters} clusters; raise num_samples"
        )
    # One class per cluster here, labels below: scikit-learn hands out the corners of a full
    # hypercube in order, which would make the class the sign of a single column.
    X, cluster = make_classification(
        n_samples=num_samples,
        n_features=num_features,
        n_informative=num_informative,
        n_redundant=num_redundant,
        n_classes=num_classes * clusters,
        n_clusters_per_class=1,
        class_sep=class_sep,
        flip_y=0.0,
        hypercube=True,
        shuffle=False,
        random_state=seed,
    )
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(num_classes * clusters) % num_classes)[cluster]
    flipped = rng.random(num_samples) < flip_y
    y = np.where(flipped, rng.integers(0, num_classes, num_samples), y)
    # Shuffled here and not by scikit-learn, which would not tell where the columns went.
    rows, columns = rng.permutation(num_samples), rng.permutation(num_features)
    position = np.argsort(columns)
    return Dataset(
        name="madelon_like",
        X=X[rows][:, columns].astype(np.float32),
        y=y[rows].astype(np.int32),
        informative=tuple(sorted(int(index) for index in position[:signal])),
        source=f"generated, seed {seed}",
    )
