"""Makes an estimator class of a method: its hyperparameters become constructor arguments."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fsjax.errors import nearest
from fsjax.estimators.base import Selector
from fsjax.method import Method

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_ANYWHERE = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Argument(NamedTuple):
    """Default, type and meaning of an argument."""

    default: Any
    annotation: str
    meaning: str


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

_NUMBER = Argument(
    None,
    "int | float | None",
    "K, a whole number, or a share in (0, 1] of the columns. ``None`` {none}.",
)

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


def _parameters_of(source: Callable[..., Method] | type) -> dict[str, inspect.Parameter]:
    """Keyword arguments of a method (or options class), without K."""
    return {
        name: parameter.replace(kind=_KEYWORD)
        for name, parameter in inspect.signature(source).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name != "num_features"
    }


def selector(
    class_name: str,
    build: Callable[..., Method],
    *,
    options: Callable[..., Method] | type | None = None,
    num_epochs: int,
    batch_size: int | None,
    standardize: bool | str = True,
    without: Sequence[str] = (),
    **training: Any,
) -> type[Selector]:
    """The estimator of a method.

    Args:
      class_name: what the class is called in :mod:`fsjax.estimators`.
      build: the method, from ``fsjax.methods``.
      options: where its ``**options`` come from, a method or ``NetworkOptions``.
      num_epochs: the default number of epochs.
      batch_size: the default rows per step; ``None`` takes all training rows.
      standardize: the default scaling.
      without: options that the method always refuses.
      **training: fixed arguments of :func:`fsjax.fit`.
    """
    further = {} if options is None else _parameters_of(options)
    own = {**_parameters_of(build), **further, **_parameters_of(build)}
    own = {name: parameter for name, parameter in own.items() if name not in without}
    image = "network" in own
    tasks = build().tasks
    common = {**COMMON, "standardize": COMMON["standardize"]._replace(default=standardize)}
    if not build().takes_groups:
        del common["groups"]
    signature = inspect.Signature(
        [
            inspect.Parameter("self", _ANYWHERE),
            _parameter("n_features_to_select", _NUMBER.default, _NUMBER.annotation, _ANYWHERE),
            _parameter("task", tasks[0], "str"),
            *own.values(),
            *([_parameter("image_shape", None, "Sequence[int] | None")] if image else []),
            _parameter("num_epochs", num_epochs, "int"),
            _parameter("batch_size", batch_size, "int | None"),
            *(_parameter(name, one.default, one.annotation) for name, one in common.items()),
        ]
    )

    def __init__(self: Selector, *args: Any, **kwargs: Any) -> None:
        for name in kwargs:
            if name not in signature.parameters:
                meant = _ALIASES.get(name.lower())
                known = nearest(meant or name, list(signature.parameters)[1:])
                raise TypeError(f"{class_name} has no argument {name!r}: {known}")
        if len(args) > 1:
            raise TypeError(
                f"{class_name} takes n_features_to_select alone without a name, not {len(args)} "
                f"values; data go to fit, as in {class_name}(10).fit(X, y)"
            )
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    # scikit-learn reads the arguments from here.
    __init__.__signature__ = signature
    __init__.__qualname__ = f"{class_name}.__init__"
    __init__.__module__ = "fsjax.estimators"
    return type(
        class_name,
        (Selector,),
        {
            "__init__": __init__,
            "__module__": "fsjax.estimators",
            "__doc__": _documentation(
                build, options, tasks, num_epochs, image, set(signature.parameters)
            ),
            "method_name": build().name,
            "method_parameters": tuple(own),
            "training": training,
        },
    )


def _parameter(name: str, default: Any, annotation: str, kind: Any = _KEYWORD) -> inspect.Parameter:
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _documentation(
    build: Callable[..., Method],
    options: Callable[..., Method] | type | None,
    tasks: tuple[str, ...],
    num_epochs: int,
    image: bool,
    known: set[str],
) -> str:
    text = inspect.getdoc(build) or ""
    idea = text.partition("\nArgs:\n")[0].strip()
    gates = build().gates is not None
    none = "keeps the columns whose gate opens" if gates else "takes half of them"
    lines = _argument("n_features_to_select", _NUMBER.meaning.format(none=none))
    lines += _argument("task", " or ".join(f"``{task!r}``" for task in tasks) + ".")
    told = {"num_features", "**options"}
    for source in (build, options):
        for names, entry in _entries("" if source is None else inspect.getdoc(source) or ""):
            if names & known and not told.issuperset(names):
                lines += entry
            told |= names
    if image:
        meaning = "``(H, W)`` or ``(H, W, channels)``, for networks of images."
        lines += _argument("image_shape", meaning)
    lines += _argument("num_epochs", f"epochs to train ({num_epochs}).")
    lines += _argument("batch_size", "rows per step; ``None`` takes all training rows.")
    for name, one in COMMON.items():
        if name in known:
            lines += _argument(name, one.meaning)
    body = textwrap.indent("\n".join(lines), "  ")
    return f"{idea}\n\nArgs:\n{body}\n{_LEARNT}"


def _argument(name: str, meaning: str) -> list[str]:
    return textwrap.wrap(f"{name}: {meaning}", 96, subsequent_indent="  ")


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
