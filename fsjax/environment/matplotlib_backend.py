"""Matplotlib without the backend that the environment names, where there is no such backend."""

from __future__ import annotations

import os
import sys
import warnings


def check_backend() -> None:
    """Imports Matplotlib, if ``MPLBACKEND`` is set, so that a wrong name is not an error.

    Matplotlib cannot be imported where ``MPLBACKEND`` names no backend, of which a run would hear
    when it is over and its pictures are drawn. They need no backend: all are drawn with Agg.
    """
    backend = os.environ.get("MPLBACKEND")
    if not backend or "matplotlib" in sys.modules:
        return
    del os.environ["MPLBACKEND"]
    try:
        import matplotlib

        # What Matplotlib does with it.
        matplotlib.rcParams["backend"] = backend
    except ImportError:  # an optional library
        pass
    except ValueError:
        warnings.warn(
            f"MPLBACKEND={backend!r} is not a backend of Matplotlib and is ignored", stacklevel=2
        )
    finally:
        os.environ["MPLBACKEND"] = backend
