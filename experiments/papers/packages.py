"""Calls of the reference packages scikit-feature, LassoNet and STG, as installed by pip.

Each call uses the settings of the protocol (``configs/papers.py``), so that differences come from
the code and not from the settings. Settings that a paper does not state are our choice.
"""

from __future__ import annotations

import collections
import collections.abc
import importlib
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from fsjax.errors import ConfigError

#: The field ``method`` of a configuration.
Settings = Mapping[str, Any]


class Problem(NamedTuple):
    """The input of a package.

    Attributes:
      x: ``(N, D)`` float64 training rows, scaled as in the protocol.
      y: ``(N,)`` classes from 0.
      ks: the numbers of columns to select.
      settings: the settings of the method.
      seed: seed for packages that draw random numbers.
    """

    x: np.ndarray
    y: np.ndarray
    ks: Sequence[int]
    settings: Settings
    seed: int


class Package(NamedTuple):
    """A method of a package.

    Attributes:
      distribution: name of the package for pip.
      command: the exact call as text, with ``{name}`` for settings.
      select: returns ``(K,)`` columns for each K, the most important first.
      random: whether the result depends on a seed.
    """

    distribution: str
    command: str
    select: Callable[[Problem], dict[int, np.ndarray]]
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
                f"{self.distribution} is not installed; run pip install {self.distribution} in a "
                "separate environment that also has fsjax"
            ) from None

    def call(self, settings: Settings, scaling: str) -> str:
        """The command with a method's settings, and the scaling of X in words."""
        words = {"weights": "", **settings}
        words["weight_mode"] = _WEIGHT_MODES.get(words["weights"], "")
        return f"{self.command.format(**words)}; {_SCALED[scaling]}"


#: The scaling of X in words, by its name in the protocol.
_SCALED = {
    "none": "X as it is",
    "standard": "columns of X standardised",
    "scalar": "X on one scale",
    "scalar255": "X / 255 on one scale",
}

#: scikit-feature's names of the graph weights, by ours.
_WEIGHT_MODES = {"binary": "binary", "heat": "heat_kernel", "cosine": "cosine"}


def _skfeature(module: str) -> Any:
    return importlib.import_module(f"skfeature.{module}")


def _prefixes(order: np.ndarray, ks: Sequence[int]) -> dict[int, np.ndarray]:
    """The first K columns of a ranking, for each K."""
    order = np.asarray(order, int)
    return {k: order[:k] for k in ks}


def _graph(problem: Problem) -> Any:
    settings = problem.settings
    return _skfeature("utility.construct_W").construct_W(
        problem.x,
        metric=settings["metric"],
        neighbor_mode="knn",
        weight_mode=_WEIGHT_MODES[settings["weights"]],
        k=settings["num_neighbors"],
        t=settings["t"],
    )


def _fisher_score(problem: Problem) -> dict[int, np.ndarray]:
    score = _skfeature("function.similarity_based.fisher_score").fisher_score
    return _prefixes(score(problem.x, problem.y, mode="index"), problem.ks)


def _laplacian_score(problem: Problem) -> dict[int, np.ndarray]:
    score = _skfeature("function.similarity_based.lap_score").lap_score
    return _prefixes(score(problem.x, mode="index", W=_graph(problem)), problem.ks)


def _mcfs(problem: Problem) -> dict[int, np.ndarray]:
    mcfs = _skfeature("function.sparse_learning_based.MCFS").mcfs
    graph, num_clusters = _graph(problem), problem.settings["num_clusters"]
    return {
        k: np.asarray(
            mcfs(problem.x, n_selected_features=k, mode="index", W=graph, n_clusters=num_clusters),
            int,
        )[:k]
        for k in problem.ks
    }


def _l1_l21(problem: Problem) -> dict[int, np.ndarray]:
    solve = _skfeature("function.sparse_learning_based.ll_l21").proximal_gradient_descent
    weights, _, _ = solve(problem.x, problem.y, problem.settings["penalty"], mode="raw")
    ranking = _skfeature("utility.sparse_learning").feature_ranking
    return _prefixes(ranking(weights), problem.ks)


def _rfs(problem: Problem) -> dict[int, np.ndarray]:
    solve = _skfeature("function.sparse_learning_based.RFS").rfs
    penalty = problem.settings["penalty"]
    return _prefixes(solve(problem.x, problem.y, mode="index", gamma=penalty), problem.ks)


def _icap(problem: Problem) -> dict[int, np.ndarray]:
    # ICAP adds one column after another, so the result for the largest K contains all smaller ones.
    icap = _skfeature("function.information_theoretical_based.ICAP").icap
    order = icap(problem.x, problem.y, mode="index", n_selected_features=max(problem.ks))
    return _prefixes(order, problem.ks)


def _cife(problem: Problem) -> dict[int, np.ndarray]:
    # scikit-feature's cife() mistakes the ranks that lcsi() returns by default for column numbers.
    lcsi = _skfeature("function.information_theoretical_based.LCSI").lcsi
    number = max(problem.ks)
    order = lcsi(problem.x, problem.y, mode="index", beta=1, gamma=1, n_selected_features=number)
    return _prefixes(order, problem.ks)


def _lassonet(problem: Problem) -> dict[int, np.ndarray]:
    lassonet = importlib.import_module("lassonet")
    hidden, seed = tuple(problem.settings["hidden"]), problem.seed
    model = lassonet.LassoNetClassifier(hidden_dims=hidden, random_state=seed, torch_seed=seed)
    model.path(problem.x.astype(np.float32), problem.y)
    importance = model.feature_importances_.numpy()
    return _prefixes(np.argsort(-importance, kind="stable"), problem.ks)


def _stg(problem: Problem) -> dict[int, np.ndarray]:
    # The package was written for Python 3.9, in which collections still had these names.
    for name in ("Sequence", "Mapping", "Set", "Iterable"):
        vars(collections).setdefault(name, getattr(collections.abc, name))
    torch, stg = importlib.import_module("torch"), importlib.import_module("stg")
    torch.manual_seed(problem.seed)
    model = stg.STG(
        task_type="classification",
        input_dim=problem.x.shape[1],
        output_dim=int(problem.y.max()) + 1,
        hidden_dims=list(problem.settings["hidden"]),
        activation="relu",
        optimizer="Adam",
        learning_rate=1e-2,
        batch_size=128,
        sigma=problem.settings["sigma"],
        lam=problem.settings["strength"],
        random_state=problem.seed,
        device="cpu",
    )
    x = problem.x.astype(np.float32)
    model.fit(x, problem.y, nr_epochs=100, shuffle=True, verbose=False)
    return _prefixes(np.argsort(-model.get_gates("raw"), kind="stable"), problem.ks)


_SKFEATURE = "skfeature-chappers"
_GRAPH = (
    "construct_W(X, metric='{metric}', neighbor_mode='knn', weight_mode='{weight_mode}', "
    "k={num_neighbors}, t={t})"
)

#: The packages by our name of the method.
PACKAGES: dict[str, Package] = {
    "fisher_score": Package(_SKFEATURE, "fisher_score(X, y, mode='index')", _fisher_score),
    "laplacian_score": Package(
        _SKFEATURE, f"lap_score(X, mode='index', W={_GRAPH})", _laplacian_score
    ),
    "mcfs": Package(
        _SKFEATURE,
        f"mcfs(X, n_selected_features=K, mode='index', W={_GRAPH}, n_clusters={{num_clusters}})",
        _mcfs,
    ),
    "l1_l21": Package(
        _SKFEATURE,
        "feature_ranking(proximal_gradient_descent(X, y, {penalty}, mode='raw')[0])",
        _l1_l21,
    ),
    "rfs": Package(_SKFEATURE, "rfs(X, y, mode='index', gamma={penalty})", _rfs),
    "icap": Package(_SKFEATURE, "icap(X, y, mode='index', n_selected_features=K)", _icap),
    "cife": Package(
        _SKFEATURE, "lcsi(X, y, mode='index', beta=1, gamma=1, n_selected_features=K)", _cife
    ),
    "stg": Package(
        "stg",
        "STG(hidden_dims={hidden}, activation='relu', optimizer='Adam', learning_rate=1e-2, "
        "batch_size=128, sigma={sigma}, lam={strength}).fit(X, y, nr_epochs=100), "
        "ranked by get_gates('raw')",
        _stg,
        random=True,
    ),
    "lassonet": Package(
        "lassonet",
        "LassoNetClassifier(hidden_dims={hidden}).path(X, y), ranked by feature_importances_",
        _lassonet,
        random=True,
    ),
}
