"""RING, XOR and SUM of Passemiers et al. (2024): classes that depend on pairs of columns."""

from collections.abc import Callable

import numpy as np

from fsjax.errors import ConfigError, check_choice, check_whole
from fsjax.tables.dataset import Dataset

#: The bounds of the parts of each rule, with which about half of the rows are positive. That of
#: ``sum`` alone follows from symmetry; the others are the authors'.
BOUNDS: dict[str, tuple[float, ...]] = {
    "ring": (0.1151,),
    "xor": (0.0,),
    "sum": (1.0,),
    "ring+xor": (0.0704, 0.0337),
    "ring+xor+sum": (0.0479, 0.0598, 1.4074),
}

#: Standard deviation of the noise on the sum.
SUM_NOISE = 0.2

#: Radius of the ring, in the unit square.
RADIUS = 0.35


def ring_xor_sum(
    num_samples: int = 1000,
    num_features: int = 128,
    rule: str = "ring+xor+sum",
    seed: int = 0,
) -> Dataset:
    """Generate uniform columns, and classes that depend on two columns for each part of a rule.

    Passemiers et al., "How good are neural networks at non-linear feature selection?" (2024). A
    row is positive if one part of the rule holds: two columns lie near a circle around their
    middle (``ring``), on different sides of their middles (``xor``), or have a large sum with
    noise (``sum``). In ``ring`` and ``xor`` no single column predicts the class. ConfigError for
    values that do not fit together.

    Args:
        num_samples: rows, N, at least 2.
        num_features: columns, D, at least two for each part of the rule.
        rule: ``'ring'``, ``'xor'``, ``'sum'``, ``'ring+xor'`` or ``'ring+xor+sum'``.
        seed: of the generator; the same seed gives the same table.

    Returns:
        A data set with float32 ``X`` in [0, 1], columns in random order, and classes 0 and 1.
    """
    check_choice("rule", rule, BOUNDS)
    num_samples = check_whole("num_samples", num_samples, min_value=2)
    num_features = check_whole("num_features", num_features)
    parts = rule.split("+")
    if num_features < 2 * len(parts):
        raise ConfigError(
            f"num_features={num_features}, but rule={rule!r} needs {2 * len(parts)}; choose at "
            f"least {2 * len(parts)}"
        )
    rng = np.random.default_rng(seed)
    X = rng.random((num_samples, num_features), np.float32)
    informative = rng.permutation(num_features)[: 2 * len(parts)]
    positive = np.zeros(num_samples, bool)
    for number, (part, bound) in enumerate(zip(parts, BOUNDS[rule], strict=True)):
        first, second = X[:, informative[2 * number : 2 * number + 2]].T.astype(np.float64)
        positive |= _PARTS[part](first, second, bound, rng)
    return Dataset(
        name="ring_xor_sum",
        X=X,
        y=positive.astype(np.int32),
        informative=tuple(sorted(informative.tolist())),
        source=f"generated, {rule}, seed {seed}",
    )


def _ring(a: np.ndarray, b: np.ndarray, bound: float, rng: np.random.Generator) -> np.ndarray:
    return np.abs(np.hypot(a - 0.5, b - 0.5) - RADIUS) <= bound


def _xor(a: np.ndarray, b: np.ndarray, bound: float, rng: np.random.Generator) -> np.ndarray:
    return (a - 0.5) * (0.5 - b) >= bound


def _sum(a: np.ndarray, b: np.ndarray, bound: float, rng: np.random.Generator) -> np.ndarray:
    return a + b + rng.normal(0.0, SUM_NOISE, len(a)) >= bound


_PARTS: dict[str, Callable[..., np.ndarray]] = {"ring": _ring, "xor": _xor, "sum": _sum}
