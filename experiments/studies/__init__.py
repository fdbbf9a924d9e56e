"""Studies of methods and of ``fsjax select``, and the figures of BinMask's paper."""
