"""Protocols that turn a selection or a trained network into numbers."""

from fsjax.evaluation.embedded import embedded_metrics

__all__ = ["embedded_metrics"]
