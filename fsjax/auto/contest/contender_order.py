"""The order in which methods compete, by ratings in the arena; written by docs/make_tables.py."""

from typing import Final

#: The most promising first: on tables of more rows than columns, and on the others.
NARROW: Final = (
    "l1_l21",
    "icap",
    "stg",
    "binmask",
    "lassonet",
    "ip_cae",
    "deep_lasso",
    "entryprune",
)
WIDE: Final = (
    "icap",
    "l1_l21",
    "lassonet",
    "binmask",
    "entryprune",
    "ip_cae",
    "stg",
    "deep_lasso",
)
