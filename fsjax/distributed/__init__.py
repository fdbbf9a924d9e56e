"""One run on several processes, of one machine or of many: start, agree, end together."""

from fsjax.distributed.members import agreed, group, is_lead, share, shared_out
from fsjax.distributed.start import initialize_distributed

__all__ = ["agreed", "group", "initialize_distributed", "is_lead", "share", "shared_out"]
