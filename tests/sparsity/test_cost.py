"""Connections and FLOPs against WAST's Table 3, and on trees of every shape."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal

import numpy as np
import pytest

from fsjax.errors import ConfigError
from fsjax.sparsity.summary import count_connections, training_flops

#: Two rows: data set, D, training rows, #params, and the FLOPs (1e12) of QS and of WAST.
TABLE_3 = [
    ("MNIST", 784, 60000, 62720, "2.25", "0.22"),
    ("PCMAC", 3289, 1554, 263120, "0.24", "0.02"),
]


def sparse_autoencoder(num_features: int) -> tuple[dict, dict]:
    """D -> 200 -> D with a fifth of the connections of each layer."""
    shapes = {"encoder": (num_features, 200), "decoder": (200, num_features)}
    params, masks = {}, {}
    for layer, shape in shapes.items():
        active = np.zeros(shape, bool)
        active.reshape(-1)[: active.size // 5] = True
        # Weights are 0, because connections are counted by their masks.
        params[layer] = {"kernel": np.zeros(shape, np.float32), "bias": np.ones(shape[1])}
        masks[layer] = {"kernel": active, "bias": np.ones(shape[1], bool)}
    return params, masks


@pytest.mark.parametrize("row", TABLE_3, ids=[row[0] for row in TABLE_3])
def test_wast_table_3(row: tuple) -> None:
    _, num_features, num_samples, params, *printed = row
    connections = count_connections(*sparse_autoencoder(num_features))
    assert connections == params == 80 * num_features
    for num_epochs, text in zip((100, 10), printed, strict=True):
        flops = Decimal(training_flops(connections, num_samples, num_epochs)) / 10**12
        # The paper truncates numbers: 0.0566 is printed as 0.05.
        assert flops.quantize(Decimal(text), ROUND_DOWN) == Decimal(text)


@pytest.mark.parametrize(
    "masks", [{"a": np.ones((3, 4), bool)}, {"a": np.ones((4, 3), bool), "b": np.ones(4, bool)}, {}]
)
def test_masks_that_do_not_match(masks: dict) -> None:
    with pytest.raises(ConfigError, match="do not match params"):
        count_connections({"a": np.ones((3, 4)), "b": np.ones(4)}, masks)
