"""A table of one's own: which columns to keep, how many, and how sure."""

from fsjax.auto.select_columns import Origin, select
from fsjax.auto.selection import Selection

__all__ = ["Origin", "Selection", "select"]
