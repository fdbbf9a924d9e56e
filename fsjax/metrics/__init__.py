"""Numbers about outputs, selections and networks, from arrays alone: the engine stands on them."""
