"""What the last bits of a run depend on beside its configuration."""

from __future__ import annotations

from typing import Any

import jax
import jaxlib

from fsjax.distributed.same import code
from fsjax.jax_settings import setting
from fsjax.version import __version__


def circumstances(seed_axis: str) -> dict[str, Any]:
    """Devices, precision and versions, ready for JSON.

    A run that is continued under others ends within rounding of the one in one piece, or, where a
    rounding tips a choice of columns, elsewhere.
    """
    first = jax.devices()[0]
    return {
        "seed_axis": seed_axis,
        "platform": first.platform,
        "device": first.device_kind,
        "devices": jax.device_count(),
        "processes": jax.process_count(),
        "matmul_precision": setting("jax_default_matmul_precision"),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        # The code of one version may differ, where it is worked on.
        "fsjax": f"{__version__} ({code()['fsjax'][:12]})",
    }
