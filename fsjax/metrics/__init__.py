"""Metrics of outputs, selections and networks, computed from arrays; the engine uses them."""
