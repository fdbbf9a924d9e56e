"""Annotations of the arguments of methods and tasks, and checks of values against them.

An annotation states the type of an argument, its range, and whether it shapes the compiled program.
Floats are traced unless they are marked :data:`STATIC`, so that changing a learning rate or a
penalty does not recompile. Everything else is static, including users' schedules and optimisers,
which are passed to Optax unchanged.

Examples:
  >>> from typing import Annotated
  >>> from fsjax import arguments
  >>> Level = Annotated[float, arguments.Within(above=0, below=1)]
  >>> arguments.check(Level, level=0.5)  # a ConfigError outside
  >>> print(arguments.known(0.5))  # True: a number, and not a tracer
  >>> print(arguments.is_used(0.0))  # False: this term of a loss is left out
  >>> schedule = optax.cosine_decay_schedule(1e-2, 100)  # an arguments.Schedule
  >>> network = fsjax.methods.neural_network(optimizer=optax.adam(schedule))  # arguments.Optimizer
"""

from fsjax.arguments.checks import (
    STATIC,
    TERM,
    Count,
    Fraction,
    Kind,
    Layers,
    NonNegative,
    Optimizer,
    Positive,
    Rate,
    Schedule,
    Share,
    Whole,
    Widths,
    Within,
    check,
    checked_arguments,
    imported,
    is_traced,
    is_used,
    kinds_of,
    known,
    type_text,
)

__all__ = [
    "STATIC",
    "TERM",
    "Count",
    "Fraction",
    "Kind",
    "Layers",
    "NonNegative",
    "Optimizer",
    "Positive",
    "Rate",
    "Schedule",
    "Share",
    "Whole",
    "Widths",
    "Within",
    "check",
    "checked_arguments",
    "imported",
    "is_traced",
    "is_used",
    "kinds_of",
    "known",
    "type_text",
]
