"""Pruned networks in the form that computes fastest on this machine."""

from fsjax.sparsity.inference.compression import Compressed, LayerForm, compress

__all__ = ["Compressed", "LayerForm", "compress"]
