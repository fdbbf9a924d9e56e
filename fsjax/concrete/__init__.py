"""Building blocks of the concrete (Gumbel-Softmax) feature selectors."""

from fsjax.concrete.divergence import gjsd
from fsjax.concrete.logits import Parametrisation, parametrisation
from fsjax.concrete.sampling import exponential_temperature, gumbel_softmax, select, select_discrete
from fsjax.engine.kernels.random import gumbel_row, key_words

__all__ = [
    "Parametrisation",
    "exponential_temperature",
    "gjsd",
    "gumbel_row",
    "gumbel_softmax",
    "key_words",
    "parametrisation",
    "select",
    "select_discrete",
]
