"""``fsjax.register``, and the estimator class of a registered method, which is generated."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fsjax import registry
from fsjax.arguments import type_text
from fsjax.arguments.signatures import set_signature, takes_arguments_of
from fsjax.engine.control import Progress
from fsjax.errors import nearest
from fsjax.estimators.base import Selector
from fsjax.method import Method
from fsjax.registry import Registration, about_of
from fsjax.tasks import Task

#: Estimator classes by the name of their method.
ESTIMATORS: dict[str, type[Selector]] = {}

#: Names of the arguments in other libraries and in ``fsjax.fit``.
_ALIASES = {
    "n_features_to_select": ("k", "num_features", "n_features", "n_features_to_keep"),
    "random_state": ("seed",),
    "n_seeds": ("seeds",),
    "learning_rate": ("lr", "learning_rate_init"),
    "num_epochs": ("epochs", "n_epochs", "max_iter"),
    "hidden": ("hidden_layer_sizes",),
    "standardize": ("scaling",),
    "validation_fraction": ("valid_fraction",),
    "verbose": ("progress",),
}


def _common(
    self,
    n_features_to_select: int | float | None = None,
    *,
    task: str | Task,
    image_shape: Sequence[int] | None = None,
    num_epochs: int,
    batch_size: int | None,
    n_seeds: int = 1,
    random_state: int | np.random.RandomState | np.random.Generator | None = 0,
    validation_fraction: float = 0.1,
    validation_data: tuple[ArrayLike, ArrayLike | None] | None = None,
    standardize: bool | str,
    class_weight: Mapping[Any, float] | str | None = None,
    groups: ArrayLike | None = None,
    early_stopping: int | None = None,
    max_time: float | None = None,
    keep_partial: bool = False,
    warm_start: bool = False,
    callback: Callable[[Progress], Any] | None = None,
    verbose: bool = False,
) -> None:
    """Arguments of all estimators; the method's own arguments come after the task.

    Args:
      n_features_to_select: K, a whole number, or a share in (0, 1] of the columns. ``None``
        {none}.
      task: {tasks}; or a registered task that is based on one of them.
      image_shape: ``(H, W)`` or ``(H, W, channels)``, for networks of images.
      num_epochs: epochs to train ({num_epochs}).
      batch_size: rows per step; ``None`` takes all training rows. For survival, whose loss compares
        the rows of a batch, the default number means 4096.
      n_seeds: number of runs with different initial values; the selection is their consensus.
      random_state: the first seed, a whole number; the others are the next numbers, as in
        ``fsjax.fit(seeds=...)``. ``None`` or a NumPy generator draws it.
      validation_fraction: share of the rows, in [0, 1), on which the best epoch is chosen.
      validation_data: ``(X, y)`` to validate on instead of a share of the rows.
      standardize: scale columns to mean 0 and standard deviation 1; ``False`` leaves them as they
        are. Or a kind of ``fsjax.data.fit_scaler``: ``'standard'``, ``'minmax'``, ``'none'``,
        ``'maxabs'`` (division by the largest absolute value), or ``'scalar'`` (one mean and
        deviation for the whole table). If columns are scaled, targets of a regression are
        standardised too and counts divided by their mean; predictions are scaled back.
      class_weight: ``'balanced'``, or a weight by class, also for validation rows; for
        classification.
      groups: ``(D,)`` the group of each column, labels of any kind. Groups are selected as a whole,
        and K counts groups.
      early_stopping: number of epochs without a better validation loss after which a seed stops;
        ``None``, and a default without validation rows, trains all epochs.
      max_time: seconds after which training stops and keeps what was learned.
      keep_partial: whether the first Ctrl-C stops training with a warning and keeps what was
        learned; otherwise it raises KeyboardInterrupt, which also ends a cross-validation around.
      warm_start: whether ``fit`` starts from the result of the previous ``fit``, if there is one,
        with the same classes and columns. Columns and targets are scaled by the new rows, so give
        rows like those before.
      callback: a function of :class:`fsjax.Progress` that is called after each epoch and stops
        training by returning true.
      verbose: show a progress bar.
    """


#: Arguments that come before a method's own; the others come after them.
_FIRST = ("self", "n_features_to_select", "task")

#: Values of ``standardize`` by scaling; others have their own name.
_STANDARDIZE = {"standard": True, "none": False}


def estimator_of(registration: Registration) -> type[Selector]:
    """The estimator class of a registered method, generated once."""
    known = ESTIMATORS.get(registration.name)
    if known is None or known.registration is not registration:
        ESTIMATORS[registration.name] = _made(registration)
    return ESTIMATORS[registration.name]


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


def _made(registration: Registration) -> type[Selector]:
    signature = _signature(registration)
    _, *arguments = signature.parameters
    class_name, module = registration.estimator, registration.build.__module__
    # Classes of our methods belong to this package, others to the module that registers them.
    module = "fsjax.estimators" if module.startswith("fsjax.methods") else module

    def __init__(self: Selector, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in arguments:
                ours = (alias for alias, others in _ALIASES.items() if name.lower() in others)
                hint = nearest(next(ours, name), arguments)
                raise TypeError(f"{class_name} has no argument {name!r}: {hint}")
        if len(args) > 1:
            raise TypeError(
                f"{class_name} got {len(args)} arguments without names; only n_features_to_select "
                f"may have none, and data go to fit, as in {class_name}(10).fit(X, y)"
            )
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name in arguments:
            setattr(self, name, bound.arguments[name])

    # scikit-learn reads the arguments from the signature.
    set_signature(__init__, signature)
    __init__.__qualname__ = f"{class_name}.__init__"
    __init__.__module__ = module
    contents = {
        "__init__": __init__,
        "__module__": module,
        "__doc__": _documentation(registration, arguments),
        "registration": registration,
    }
    return type(class_name, (Selector,), contents)


def _signature(registration: Registration) -> inspect.Signature:
    about = about_of(registration)
    parameters = {
        name: registration.parameters[name].replace(
            kind=inspect.Parameter.KEYWORD_ONLY,
            annotation=type_text(registration.kinds[name]),
        )
        for name in registration.defaults()
    }
    common = dict(inspect.signature(_common).parameters)
    defaults = {
        "task": about.tasks[0],
        "num_epochs": registration.num_epochs,
        "batch_size": registration.batch_size,
        "early_stopping": registration.training.get("early_stopping"),
        "standardize": _STANDARDIZE.get(registration.scaling, registration.scaling),
    }
    for name, default in defaults.items():
        common[name] = common[name].replace(default=default)
    if not about.takes_groups:
        del common["groups"]
    if "network" not in parameters:
        del common["image_shape"]
    ordered = {**{name: common[name] for name in _FIRST}, **parameters, **common}
    return inspect.Signature(list(ordered.values()))


def _documentation(registration: Registration, arguments: Collection[str]) -> str:
    about = about_of(registration)
    idea = (inspect.getdoc(registration.build) or "").partition("\nArgs:\n")[0].strip()
    text = (inspect.getdoc(_common) or "").format(
        none="keeps the columns whose gate opens" if about.gates else "takes half of them",
        tasks=" or ".join(f"``{task!r}``" for task in about.tasks),
        num_epochs=registration.num_epochs,
    )
    first: list[str] = []
    last: list[str] = []
    for names, entry in _entries(text):
        if names.intersection(arguments):
            (first if names.intersection(_FIRST) else last).extend(entry)
    documented = {"num_features", "**options"}
    for source in _sources(registration):
        for names, entry in _entries(inspect.getdoc(source) or ""):
            if names.intersection(arguments) and not documented.issuperset(names):
                first += entry
            documented |= names
    body = textwrap.indent("\n".join(first + last), "  ")
    attributes = (inspect.getdoc(Selector) or "").partition("\nAttributes:\n")[2]
    return f"{idea}\n\nArgs:\n{body}\n\nAttributes:\n{attributes}\n"


def _sources(registration: Registration) -> list[Any]:
    """The functions that document the arguments: the builder, and those its options come from."""
    sources: list[Any] = [registration.build]
    options = registration.options
    while options is not None:
        sources.append(options)
        options = getattr(getattr(options, "registration", None), "options", None)
    return sources


def _entries(text: str) -> list[tuple[set[str], list[str]]]:
    """The names and lines of every entry under ``Args`` or ``Attributes`` of a docstring."""
    _, _, section = text.replace("\nAttributes:\n", "\nArgs:\n").partition("\nArgs:\n")
    section = section.partition("\n\n")[0]
    entries: list[tuple[set[str], list[str]]] = []
    for line in inspect.cleandoc(section).split("\n"):
        if line.startswith(" "):
            entries[-1][1].append(line)
        elif line:
            names = {name.strip() for name in line.partition(":")[0].split(",")}
            entries.append((names, [line]))
    return entries
