"""Fitted results as files: above the engine, while the rest of ``fsjax.storage`` lies below it."""

from fsjax.storage.results.packing import pack, save
from fsjax.storage.results.unpacking import load, unpack

__all__ = ["load", "pack", "save", "unpack"]
