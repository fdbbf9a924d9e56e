"""``fsjax.register``: registers a method of one's own, and makes its estimator in its module."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fsjax import registry
from fsjax.estimators.factory import estimator_of
from fsjax.method import Method
from fsjax.signatures import takes_arguments_of


@takes_arguments_of(registry.register)
@functools.wraps(registry.register)
def register(**facts: Any) -> Callable[[Callable[..., Method]], registry.Builder]:
    decorate = registry.register(**facts)

    def publish(build: Callable[..., Method]) -> registry.Builder:
        builder = decorate(build)
        estimator = estimator_of(builder.registration)
        # Where pickle finds it.
        build.__globals__[estimator.__name__] = estimator
        return builder

    return publish
