"""Runs that use several processes, on one machine or on many."""

from fsjax.engine.distributed.exchange import (
    agreed,
    gathered_processes,
    is_lead,
    process_count,
    share,
    shared_out,
)
from fsjax.engine.distributed.start import end_process, initialize_distributed, lost_process

__all__ = [
    "agreed",
    "end_process",
    "gathered_processes",
    "initialize_distributed",
    "is_lead",
    "lost_process",
    "process_count",
    "share",
    "shared_out",
]
