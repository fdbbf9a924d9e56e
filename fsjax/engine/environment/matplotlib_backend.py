"""A check of ``MPLBACKEND``, so that an unknown Matplotlib backend does not end a run."""

from __future__ import annotations

import os
import sys
import warnings


def check_backend() -> None:
    """Imports Matplotlib if ``MPLBACKEND`` is set, and turns an unknown backend into a warning.

    With an unknown backend the import of Matplotlib fails, which a run would otherwise notice only
    at its end, when it draws figures. All figures are drawn with Agg, so no backend is needed.
    """
    backend = os.environ.get("MPLBACKEND")
    if not backend or "matplotlib" in sys.modules:
        return
    del os.environ["MPLBACKEND"]
    try:
        import matplotlib

        # As Matplotlib itself does with MPLBACKEND.
        matplotlib.rcParams["backend"] = backend
    except ImportError:  # an optional library
        pass
    except ValueError:
        warnings.warn(
            f"MPLBACKEND={backend!r} is not a backend of Matplotlib and is ignored", stacklevel=2
        )
    finally:
        os.environ["MPLBACKEND"] = backend
