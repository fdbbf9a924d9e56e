"""Which columns of a table to keep, how many, and how sure that is: ``fsjax.select``."""

from fsjax.auto.contest.request import Origin
from fsjax.auto.select_columns import select
from fsjax.auto.selection import Selection

__all__ = ["Origin", "Selection", "select"]
