"""Peak memory and seconds of training on a sparse text table that never becomes dense."""

import resource
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

import fsjax
from experiments.benchmarks.timing import Case, case
from experiments.studies.known_arrays import informative_columns
from fsjax.data import Dataset

#: Rows, columns, words per row, and words that are informative of the class.
ROWS, COLUMNS, WORDS, INFORMATIVE = 10_000, 50_000, 100, 50

#: Shares of the rows that have an informative word: in its own class, and in the other one.
SHARES = (0.10, 0.01)


def text_like(
    rows: int = ROWS,
    columns: int = COLUMNS,
    words: int = WORDS,
    informative: int = INFORMATIVE,
    seed: int = 0,
) -> Dataset:
    """Generates the tf-idf table of random text in two classes, as a sparse array.

    The frequencies of words follow Zipf's law. Half of the informative words belong to each class;
    otherwise they resemble words that occur in some hundred rows.

    Args:
      rows: N.
      columns: D, the size of the vocabulary.
      words: drawn per row with replacement, besides informative words.
      informative: number of informative words.
      seed: of the random generator.
    """
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(columns, informative, replace=False))
    share = 1.0 / (np.arange(columns) + 30.0)
    share = rng.permutation(share)
    share[chosen] = 0.0
    drawn = rng.choice(columns, rows * words, p=share / share.sum())
    y = rng.integers(0, 2, rows)
    of_class = np.arange(informative) % 2 == y[:, None]
    row, word = np.nonzero(rng.random(of_class.shape) < np.where(of_class, *SHARES))
    places = np.append(np.repeat(np.arange(rows), words), row), np.append(drawn, chosen[word])
    counts = sp.csr_array(sp.coo_array((np.ones(len(places[0])), places), shape=(rows, columns)))
    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts).astype(np.float32)
    return Dataset("text_like", X, y.astype(np.int32), informative=tuple(chosen.tolist()))


def train(name: str, epochs: int, **settings: Any) -> dict[str, Any]:
    """Trains in this fresh process: seconds, peak memory, share of informative columns found."""
    data = text_like()
    started = time.perf_counter()
    result = fsjax.fit(
        getattr(fsjax.methods, name)(**settings),
        data,
        num_features=INFORMATIVE,
        num_epochs=epochs,
        batch_size=128,
        scaling="maxabs",
    )
    share = np.isin(result.selected[0], informative_columns(data)).mean()
    return {
        "nonzeros": int(csr_array(data.X).nnz),
        "seconds": time.perf_counter() - started,
        "train_seconds": float(result.cost["train_seconds"]),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "found_percent": 100.0 * float(share),
    }


def cases() -> dict[str, Case]:
    """Returns the cases by name."""
    return {
        "text/stg, 3 epochs": case(train, "stg", 3, search=False, hidden=(400, 200)),
        "text/binmask, 3 epochs": case(train, "binmask", 3, search=False),
        "text/fisher_score": case(train, "fisher_score", 1),
    }
