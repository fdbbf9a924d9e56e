"""Fast inference with pruned networks: each layer in the form that is fastest on this machine."""

from fsjax.sparsity.inference.compression import Compressed, LayerForm, compress

__all__ = ["Compressed", "LayerForm", "compress"]
