"""Makes the estimator class of a registered method: its arguments, and its docstring."""

from __future__ import annotations

import inspect
import textwrap
from itertools import chain
from typing import Any, NamedTuple

from fsjax.arguments import type_text
from fsjax.errors import nearest
from fsjax.estimators.base import Selector
from fsjax.registry import Registration, about_of

#: The classes by the name of their method.
ESTIMATORS: dict[str, type[Selector]] = {}


class Argument(NamedTuple):
    """Default, type and meaning of an argument."""

    default: Any
    annotation: str
    meaning: str = ""


#: What the arguments are called elsewhere.
_ALIASES = {
    "seed": "random_state",
    "seeds": "n_seeds",
    "lr": "learning_rate",
    "learning_rate_init": "learning_rate",
    "epochs": "num_epochs",
    "n_epochs": "num_epochs",
    "max_iter": "num_epochs",
    "k": "n_features_to_select",
    "num_features": "n_features_to_select",
    "n_features": "n_features_to_select",
    "n_features_to_keep": "n_features_to_select",
    "hidden_layer_sizes": "hidden",
    "scaling": "standardize",
    "valid_fraction": "validation_fraction",
    "progress": "verbose",
}

#: Arguments that all estimators have.
COMMON: dict[str, Argument] = {
    "n_seeds": Argument(
        1, "int", "runs from different initial values; the selection is their consensus."
    ),
    "random_state": Argument(
        0,
        "int | np.random.RandomState | np.random.Generator | None",
        "the first seed, a whole number; the others are the next numbers, as in "
        "``fsjax.fit(seeds=...)``. ``None`` or a NumPy generator draws it.",
    ),
    "validation_fraction": Argument(
        0.1, "float", "share of the rows, in [0, 1), that tells the best epoch."
    ),
    "validation_data": Argument(
        None,
        "tuple[ArrayLike, ArrayLike | None] | None",
        "``(X, y)`` to validate on in place of a share of the rows.",
    ),
    "standardize": Argument(
        True,
        "bool | str",
        "scale columns to mean 0 and standard deviation 1; ``False`` takes them as they are. Or a "
        "kind of ``fsjax.data.fit_scaler``: ``'standard'``, ``'minmax'``, ``'none'``, or "
        "``'scalar'``, one mean and deviation for the whole table. Unless they stay as they are, "
        "targets of a regression are standardised too, and predictions scaled back.",
    ),
    "class_weight": Argument(
        None,
        "Mapping[Any, float] | str | None",
        "``'balanced'``, or a weight by class; for classification.",
    ),
    "groups": Argument(
        None,
        "ArrayLike | None",
        "``(D,)`` the group of each column, labels of any kind. Groups are chosen as a whole and K "
        "counts them.",
    ),
    "verbose": Argument(False, "bool", "show a progress bar."),
}

_LEARNT = """
Attributes:
  support_: ``(D,)`` bool, the selected columns.
  n_features_: how many they are.
  selected_: for each seed its own columns, in order of importance.
  selection_frequency_: ``(D,)`` share of the seeds, in [0, 1], that selected each column.
  scores_: ``(D,)`` importance of every column, the mean over the seeds.
  ranking_: ``(D,)`` from 1, the most important; the selection comes first.
  history_: recorded values by name, ``(n_seeds, epochs)``.
  result_: the :class:`fsjax.FitResult`.
  classes_: the labels, for classification.
  n_features_in_, feature_names_in_: the columns of ``fit``.
"""


def estimator_of(registration: Registration) -> type[Selector]:
    """The estimator of a registered method, made once."""
    known = ESTIMATORS.get(registration.name)
    if known is None or known.registration is not registration:
        ESTIMATORS[registration.name] = _made(registration)
    return ESTIMATORS[registration.name]


def _made(registration: Registration) -> type[Selector]:
    arguments = _arguments(registration)
    signature = _signature(arguments)
    class_name, module = registration.estimator, registration.build.__module__
    # Ours are found in the package of the estimators, others where they were registered.
    module = "fsjax.estimators" if module.startswith("fsjax.methods") else module

    def __init__(self: Selector, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in arguments:
                known = nearest(_ALIASES.get(name.lower(), name), arguments)
                raise TypeError(f"{class_name} has no argument {name!r}: {known}")
        if len(args) > 1:
            raise TypeError(
                f"{class_name} takes n_features_to_select alone without a name, not {len(args)} "
                f"values; data go to fit, as in {class_name}(10).fit(X, y)"
            )
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name in arguments:
            setattr(self, name, bound.arguments[name])

    # scikit-learn reads the arguments from here.
    __init__.__signature__ = signature
    __init__.__qualname__ = f"{class_name}.__init__"
    __init__.__module__ = module
    contents = {
        "__init__": __init__,
        "__module__": module,
        "__doc__": _documentation(registration, arguments),
        "registration": registration,
    }
    return type(class_name, (Selector,), contents)


def _arguments(registration: Registration) -> dict[str, Argument]:
    """The method's own arguments, without their meaning, then what all estimators have."""
    about, own = about_of(registration), registration.defaults()
    none = "keeps the columns whose gate opens" if about.gates else "takes half of them"
    number = f"K, a whole number, or a share in (0, 1] of the columns. ``None`` {none}."
    tasks = " or ".join(f"``{task!r}``" for task in about.tasks) + "."
    epochs, scaling = registration.num_epochs, registration.scaling
    rows = "rows per step; ``None`` takes all training rows."
    standardize = {"standard": True, "none": False}.get(scaling, scaling)
    further = {
        "num_epochs": Argument(epochs, "int", f"epochs to train ({epochs})."),
        "batch_size": Argument(registration.batch_size, "int | None", rows),
        **COMMON,
        "standardize": COMMON["standardize"]._replace(default=standardize),
    }
    if not about.takes_groups:
        del further["groups"]
    if "network" in own:
        shape = "``(H, W)`` or ``(H, W, channels)``, for networks of images."
        further = {"image_shape": Argument(None, "Sequence[int] | None", shape), **further}
    return {
        "n_features_to_select": Argument(None, "int | float | None", number),
        "task": Argument(about.tasks[0], "str", tasks),
        **{name: Argument(one, type_text(registration.kinds[name])) for name, one in own.items()},
        **further,
    }


def _signature(arguments: dict[str, Argument]) -> inspect.Signature:
    kinds = {"n_features_to_select": inspect.Parameter.POSITIONAL_OR_KEYWORD}
    parameters = [
        inspect.Parameter(
            name,
            kinds.get(name, inspect.Parameter.KEYWORD_ONLY),
            default=one.default,
            annotation=one.annotation,
        )
        for name, one in arguments.items()
    ]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return inspect.Signature([itself, *parameters])


def _documentation(registration: Registration, arguments: dict[str, Argument]) -> str:
    text = inspect.getdoc(registration.build) or ""
    idea = text.partition("\nArgs:\n")[0].strip()
    meant = [
        textwrap.wrap(f"{name}: {one.meaning}", 96, subsequent_indent="  ")
        for name, one in arguments.items()
        if one.meaning
    ]
    own: list[list[str]] = []
    told = {"num_features", "**options"}
    for source in _sources(registration):
        for names, entry in _entries(inspect.getdoc(source) or ""):
            if names & arguments.keys() and not told.issuperset(names):
                own.append(entry)
            told |= names
    # The number and the task come first, then the method's own.
    lines = chain.from_iterable([*meant[:2], *own, *meant[2:]])
    body = textwrap.indent("\n".join(lines), "  ")
    return f"{idea}\n\nArgs:\n{body}\n{_LEARNT}"


def _sources(registration: Registration) -> list[Any]:
    """Where arguments are documented: the builder, and what its options come from."""
    found: list[Any] = [registration.build]
    options = registration.options
    while options is not None:
        found.append(options)
        options = getattr(getattr(options, "registration", None), "options", None)
    return found


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
