"""Generated data with known informative columns, similar to Madelon or to health records."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri
from scipy.stats import beta
from sklearn.datasets import make_classification

from fsjax.errors import ConfigError, check_whole
from fsjax.tables.dataset import Dataset
from fsjax.tables.datasets.catalog import ENTRIES


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
    """Generate clusters on the corners of a hypercube, linear mixtures and noise columns.

    Guyon's design of Madelon: a few informative columns that separate the classes only together,
    redundant columns that are random linear combinations of them, and probes of pure noise.
    The classes of clusters are drawn at random, so that no single column predicts the class.
    ConfigError if the counts do not fit together.

    Args:
        num_samples: rows, N.
        num_features: columns, D.
        num_informative: columns that span the hypercube.
        num_redundant: columns that are linear combinations of the informative ones.
        seed: of the generator; the same seed gives the same table.
        num_classes: classes, at lowest 2.
        num_clusters_per_class: clusters that make up a class; by default as many as the
            hypercube has corners for, at most 16 (Madelon's number).
        class_sep: half the side of the hypercube, in units of a cluster's standard deviation.
            At 2 an SVM on the right columns is about as accurate as on Madelon itself.
        flip_y: share of the rows, 0 to 1, whose label is drawn at random.

    Returns:
        A data set with float32 ``X``, shuffled rows and columns; ``informative`` has both the
        informative and the redundant columns.

    Examples:
      >>> print(fsjax.data.madelon_like(num_samples=200, num_features=50).informative)
      >>> print(fsjax.data.ehr_like(num_samples=500, num_features=60).informative)
      >>> print(fsjax.data.ring_xor_sum(200, 10, "xor").informative)
    """
    if num_informative < 1 or num_redundant < 0 or num_classes < 2:
        raise ConfigError(
            f"num_informative={num_informative}, num_redundant={num_redundant}, "
            f"num_classes={num_classes}; choose at lowest 1, 0 and 2"
        )
    signal = num_informative + num_redundant
    if signal > num_features:
        raise ConfigError(
            f"num_informative={num_informative} and num_redundant={num_redundant} need {signal} "
            f"columns, but num_features={num_features}; choose at lowest {signal}"
        )
    corners = 2 ** min(num_informative, 30)
    clusters = num_clusters_per_class or max(1, min(16, corners // num_classes))
    needed = num_classes * clusters
    if needed > corners:
        raise ConfigError(
            f"{num_classes} classes of {clusters} clusters need {needed} corners, "
            f"but num_informative={num_informative} gives {corners}; choose a larger one"
        )
    if num_samples < needed:
        raise ConfigError(
            f"num_samples={num_samples}, but there are {needed} clusters; choose at lowest one row "
            "for each"
        )
    # One class per cluster here, labels below: scikit-learn hands out the corners of a full
    # hypercube in order, which would make the class the sign of a single column.
    X, cluster = make_classification(
        n_samples=num_samples,
        n_features=num_features,
        n_informative=num_informative,
        n_redundant=num_redundant,
        n_classes=needed,
        n_clusters_per_class=1,
        class_sep=class_sep,
        flip_y=0.0,
        shuffle=False,
        random_state=seed,
    )
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(needed) % num_classes)[cluster]
    flipped = rng.random(num_samples) < flip_y
    y = np.where(flipped, rng.integers(0, num_classes, num_samples), y)
    # scikit-learn would shuffle too, but it does not return the order of the columns.
    rows, columns = rng.permutation(num_samples), rng.permutation(num_features)
    position = np.argsort(columns)
    return Dataset(
        name="madelon_like",
        X=X[rows][:, columns].astype(np.float32),
        y=y[rows].astype(np.int32),
        informative=tuple(sorted(position[:signal].tolist())),
        source=f"generated, seed {seed}",
    )


#: Columns of health records form groups of about this many that occur together.
BLOCK_SIZE = 15

#: Shares of the variance of a latent value: the patient's utilisation, the group of the column.
UTILISATION, BLOCK = 0.15, 0.35

#: Rows whose latent values are in memory at once.
_ROWS_AT_ONCE = 1000


def ehr_like(
    num_samples: int = 20000,
    num_features: int = 3000,
    num_informative: int = 40,
    prevalence: float = 0.02,
    density: float = 0.06,
    seed: int = 0,
    *,
    num_interactions: int = 4,
    log_odds_std: float = 1.3,
) -> Dataset:
    """Generate sparse columns like those of electronic health records, and a rare outcome.

    A substitute for the records of the BinMask paper (section 4.3), which are not public. A column
    is a code that few patients have: binary, a count, or a share of the time in (0, 1]. Entries
    are non-zero where a latent normal value exceeds the threshold of its column. Latent values
    have a component for the patient's use of care, and one for a group of codes that occur
    together. The outcome follows a logistic model of the informative columns and of products of
    two of them. ``X`` is non-negative float32, and the classes are 0 and 1. ConfigError for a value
    outside its range, or fewer than 10 expected rows of a class.

    Args:
        num_samples: rows, N.
        num_features: columns, D.
        num_informative: columns of the logistic model; frequent codes are more likely to be.
        prevalence: expected share of the rows of class 1, in (0, 1).
        density: mean share of non-zero entries, in (0, 1); most columns have a smaller one.
        seed: of the generator; the same seed gives the same table.
        num_interactions: products of two informative columns, drawn among the frequent ones.
        log_odds_std: standard deviation of the log-odds over the rows; 0 for no signal. At 1.3
            the true log-odds have an area under the ROC curve of about 0.88.
    """
    num_samples = check_whole("num_samples", num_samples)
    num_features = check_whole("num_features", num_features)
    num_informative = check_whole("num_informative", num_informative)
    num_interactions = check_whole("num_interactions", num_interactions, min_value=0)
    if num_informative > num_features:
        raise ConfigError(
            f"num_informative={num_informative} but num_features={num_features}; choose at most "
            f"{num_features}"
        )
    if num_interactions > num_informative // 2:
        raise ConfigError(
            f"num_interactions={num_interactions} need 2 informative columns each, but "
            f"num_informative={num_informative}; choose at most {num_informative // 2}"
        )
    for label, value in (("prevalence", prevalence), ("density", density)):
        if not 0 < value < 1:
            raise ConfigError(f"{label}={value}; choose a share above 0 and below 1")
    if not 0 <= log_odds_std < float("inf"):
        raise ConfigError(f"log_odds_std={log_odds_std}; choose 0 or more")
    if num_samples * min(prevalence, 1 - prevalence) < 10:
        raise ConfigError(
            f"num_samples={num_samples} and prevalence={prevalence} give fewer than 10 expected "
            "rows of a class; choose more rows, or a prevalence nearer to 0.5"
        )
    rng = np.random.default_rng(seed)
    codes = _draw_codes(rng, num_features, density)
    X = _draw_records(rng, num_samples, codes)
    informative = rng.choice(
        num_features, num_informative, replace=False, p=codes.density / codes.density.sum()
    )
    # The most frequent first: products of rare codes would be zero in nearly all rows.
    informative = informative[np.argsort(-codes.density[informative])]
    signal = _draw_signal(rng, X[:, informative], num_interactions)
    if signal.std() > 0:
        signal *= log_odds_std / signal.std()
    # The expected share of class 1, given these rows, is then the prevalence.
    intercept = brentq(
        lambda b: expit(b + signal).mean() - prevalence, -1e3 - signal.max(), 1e3 - signal.min()
    )
    return Dataset(
        name="ehr_like",
        X=X,
        y=(rng.random(num_samples) < expit(intercept + signal)).astype(np.int32),
        informative=tuple(sorted(informative.tolist())),
        source=f"generated, seed {seed}",
        paper=ENTRIES["ehr_like"].paper,
    )


class _Codes(NamedTuple):
    """Columns of health records, (D,) each: P(not zero), kind (0, 1, 2), group, mean count."""

    density: np.ndarray
    kind: np.ndarray
    block: np.ndarray
    mean_count: np.ndarray


def _draw_codes(rng: np.random.Generator, number: int, density: float) -> _Codes:
    # Quantiles of a skewed distribution, so that the mean is close to the density for any seed.
    # None is below a twentieth of the mean, because such tables leave out very rare codes.
    lowest = density / 20
    mean = (density - lowest) / (1 - lowest)
    quantiles = beta.ppf((np.arange(number) + 0.5) / number, 0.6, 0.6 * (1 - mean) / mean)
    return _Codes(
        density=rng.permutation(lowest + (1 - lowest) * quantiles),
        kind=rng.choice(3, number, p=(0.4, 0.3, 0.3)),
        block=rng.integers(-(-number // BLOCK_SIZE), size=number),
        mean_count=rng.uniform(1.5, 5.0, number),
    )


def _draw_records(rng: np.random.Generator, rows: int, codes: _Codes) -> np.ndarray:
    """(N, D) float32, written in place a few rows at a time."""
    threshold = -ndtri(codes.density).astype(np.float32)
    idiosyncratic = np.float32(np.sqrt(1 - UTILISATION - BLOCK))
    X = np.empty((rows, len(threshold)), np.float32)
    for first in range(0, rows, _ROWS_AT_ONCE):
        part = X[first : first + _ROWS_AT_ONCE]
        rng.standard_normal(dtype=np.float32, out=part)
        part *= idiosyncratic
        patient = rng.standard_normal((len(part), 1), np.float32)
        groups = rng.standard_normal((len(part), codes.block.max() + 1), np.float32)
        part += np.float32(np.sqrt(UTILISATION)) * patient
        part += np.float32(np.sqrt(BLOCK)) * groups[:, codes.block]
        row, column = np.nonzero(part > threshold)
        # Uniform in (0, 1] among the entries of a column; small for those far beyond it.
        tail = np.clip(ndtr(-part[row, column]) / codes.density[column], 1e-12, 1.0)
        # A geometric number, at lowest 1, with the column's mean.
        count = 1 + np.floor(np.log(tail) / np.log1p(-1 / codes.mean_count[column]))
        share = np.maximum(1 - tail, 0.01)
        part[...] = 0.0
        part[row, column] = np.choose(codes.kind[column], (1.0, count, share))
    return X


def _draw_signal(rng: np.random.Generator, X: np.ndarray, num_interactions: int) -> np.ndarray:
    """(N,) float64 up to scale and shift, from informative columns (N, I), frequent ones first."""
    # 1 for a count of 1, and growing logarithmically with the count.
    present = np.log2(1.0 + X)
    number = X.shape[1]
    # Some risks are much larger than others, and a quarter of the codes lower the risk.
    weights = rng.exponential(size=number) * np.where(rng.random(number) < 0.25, -1.0, 1.0)
    pairs = rng.permutation(2 * num_interactions).reshape(2, num_interactions)
    products = present[:, pairs[0]] * present[:, pairs[1]]
    return present @ weights + products @ rng.exponential(2.0, num_interactions)
