"""The order in which methods compete, by ratings in the arena; written by docs/make_tables.py."""

from typing import Final

#: The most promising first: on tables of more rows than columns, and on the others.
NARROW: Final = (
    "l1_l21",
    "icap",
    "lassonet",
    "sand",
    "stg",
    "binmask",
    "ip_cae",
    "deep_lasso",
)
WIDE: Final = (
    "icap",
    "l1_l21",
    "lassonet",
    "binmask",
    "sand",
    "stg",
    "ip_cae",
    "deep_lasso",
)
