"""How the packages of others are called: scikit-feature, LassoNet and STG, as installed by pip."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from fsjax.errors import ConfigError

#: Training rows ``(N, D)``, classes ``(N,)`` from 0, the numbers of columns asked for, and a seed.
Select = Callable[[np.ndarray, np.ndarray, Sequence[int], int], dict[int, np.ndarray]]


class Package(NamedTuple):
    """A method of a package.

    Attributes:
      distribution: its name for pip.
      command: the exact call, as text for the table.
      select: columns for each K, the most important first.
      random: whether the result depends on a seed.
    """

    distribution: str
    command: str
    select: Select
    random: bool = False

    @property
    def version(self) -> str:
        """The installed version.

        Raises:
          ConfigError: if the package is not installed.
        """
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            raise ConfigError(
                f"{self.distribution} is not installed; run pip install {self.distribution} in an "
                "environment of its own that also holds fsjax"
            ) from None


def _skfeature(module: str) -> Any:
    return importlib.import_module(f"skfeature.{module}")


def _prefixes(order: np.ndarray, ks: Sequence[int]) -> dict[int, np.ndarray]:
    """The first K of a ranking, for each K."""
    order = np.asarray(order, int)
    return {k: order[:k] for k in ks}


def _graph(x: np.ndarray) -> Any:
    """The graph of the package's examples."""
    return _skfeature("utility.construct_W").construct_W(
        x, metric="euclidean", neighbor_mode="knn", weight_mode="heat_kernel", k=5, t=1
    )


def _fisher_score(x: np.ndarray, y: np.ndarray, ks: Sequence[int], _: int) -> dict[int, np.ndarray]:
    score = _skfeature("function.similarity_based.fisher_score").fisher_score
    return _prefixes(score(x, y, mode="index"), ks)


def _laplacian_score(
    x: np.ndarray, _: np.ndarray, ks: Sequence[int], __: int
) -> dict[int, np.ndarray]:
    score = _skfeature("function.similarity_based.lap_score").lap_score
    return _prefixes(score(x, mode="index", W=_graph(x)), ks)


def _mcfs(x: np.ndarray, _: np.ndarray, ks: Sequence[int], __: int) -> dict[int, np.ndarray]:
    module = _skfeature("function.sparse_learning_based.MCFS")
    graph = _graph(x)
    return {
        k: np.asarray(
            module.mcfs(x, n_selected_features=k, mode="index", W=graph, n_clusters=20), int
        )[:k]
        for k in ks
    }


def _l1_l21(x: np.ndarray, y: np.ndarray, ks: Sequence[int], _: int) -> dict[int, np.ndarray]:
    solve = _skfeature("function.sparse_learning_based.ll_l21").proximal_gradient_descent
    weights, _, _ = solve(x, y, 0.1, mode="raw")
    return _prefixes(_skfeature("utility.sparse_learning").feature_ranking(weights), ks)


def _rfs(x: np.ndarray, y: np.ndarray, ks: Sequence[int], _: int) -> dict[int, np.ndarray]:
    solve = _skfeature("function.sparse_learning_based.RFS").rfs
    return _prefixes(solve(x, y, mode="index", gamma=0.1), ks)


def _icap(x: np.ndarray, y: np.ndarray, ks: Sequence[int], _: int) -> dict[int, np.ndarray]:
    # One column after another: the largest K has all smaller ones.
    icap = _skfeature("function.information_theoretical_based.ICAP").icap
    return _prefixes(icap(x, y, mode="index", n_selected_features=max(ks)), ks)


def _cife(x: np.ndarray, y: np.ndarray, ks: Sequence[int], _: int) -> dict[int, np.ndarray]:
    # Its own cife() takes the ranks that lcsi() returns by default for column numbers.
    lcsi = _skfeature("function.information_theoretical_based.LCSI").lcsi
    order = lcsi(x, y, mode="index", beta=1, gamma=1, n_selected_features=max(ks))
    return _prefixes(order, ks)


def _lassonet(x: np.ndarray, y: np.ndarray, ks: Sequence[int], seed: int) -> dict[int, np.ndarray]:
    torch, lassonet = importlib.import_module("torch"), importlib.import_module("lassonet")
    torch.manual_seed(seed)
    scaled = (x - x.mean()) / x.std()
    model = lassonet.LassoNetClassifier(hidden_dims=(200,), random_state=seed, torch_seed=seed)
    model.path(scaled.astype(np.float32), y)
    importance = model.feature_importances_.numpy()
    return _prefixes(np.argsort(-importance, kind="stable"), ks)


def _stg(x: np.ndarray, y: np.ndarray, ks: Sequence[int], seed: int) -> dict[int, np.ndarray]:
    torch, stg = importlib.import_module("torch"), importlib.import_module("stg")
    torch.manual_seed(seed)
    spread = x.std(0)
    scaled = (x - x.mean(0)) / np.where(spread > 0, spread, 1)
    model = stg.STG(
        task_type="classification",
        input_dim=x.shape[1],
        output_dim=int(y.max()) + 1,
        hidden_dims=[200],
        activation="relu",
        optimizer="Adam",
        learning_rate=1e-2,
        batch_size=100,
        sigma=0.5,
        lam=2.0,
        random_state=seed,
        device="cpu",
    )
    model.fit(scaled.astype(np.float32), y, nr_epochs=100, shuffle=True, verbose=False)
    return _prefixes(np.argsort(-model.get_gates("raw"), kind="stable"), ks)


_SKFEATURE = "skfeature-chappers"
_GRAPH = (
    "construct_W(X, metric='euclidean', neighbor_mode='knn', weight_mode='heat_kernel', k=5, t=1)"
)

#: By our name of the method.
PACKAGES: dict[str, Package] = {
    "fisher_score": Package(_SKFEATURE, "fisher_score(X, y, mode='index')", _fisher_score),
    "laplacian_score": Package(
        _SKFEATURE, f"lap_score(X, mode='index', W={_GRAPH})", _laplacian_score
    ),
    "mcfs": Package(
        _SKFEATURE,
        f"mcfs(X, n_selected_features=K, mode='index', W={_GRAPH}, n_clusters=20)",
        _mcfs,
    ),
    "l1_l21": Package(
        _SKFEATURE,
        "feature_ranking(proximal_gradient_descent(X, y, 0.1, mode='raw')[0])",
        _l1_l21,
    ),
    "rfs": Package(
        _SKFEATURE,
        "rfs(X, y, mode='index', gamma=0.1)",
        _rfs,
    ),
    "icap": Package(_SKFEATURE, "icap(X, y, mode='index', n_selected_features=K)", _icap),
    "cife": Package(
        _SKFEATURE, "lcsi(X, y, mode='index', beta=1, gamma=1, n_selected_features=K)", _cife
    ),
    "stg": Package(
        "stg",
        "STG(hidden_dims=[200], activation='relu', optimizer='Adam', learning_rate=1e-2, "
        "batch_size=100, sigma=0.5, lam=2).fit(standardised X, y, nr_epochs=100), "
        "ranked by get_gates('raw')",
        _stg,
        random=True,
    ),
    "lassonet": Package(
        "lassonet",
        "LassoNetClassifier(hidden_dims=(200,)).path(X on one scale, y), ranked by "
        "feature_importances_",
        _lassonet,
        random=True,
    ),
}
