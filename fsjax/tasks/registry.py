"""``register``: user-defined tasks with arguments, in the same way as :func:`fsjax.register`.

    @fsjax.tasks.register
    def quantile(level: Annotated[float, Within(above=0, below=1)] = 0.5) -> Task:
        ...
        return fsjax.tasks.like("regression", loss=pinball)

makes ``quantile(0.9)`` a task, with the name ``quantile(level=0.9)`` in the engine.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import importlib.metadata
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, cast

from fsjax.arguments import Kind, checked_arguments, imported, kinds_of
from fsjax.errors import ConfigError, nearest
from fsjax.tasks.checks import check_made
from fsjax.tasks.table import TABLE, TASKS
from fsjax.tasks.task import Task, TaskSource, with_fields


class TaskBuilder(Protocol):
    """A registered function that returns a task."""

    __name__: str
    registration: TaskRegistration

    def __call__(self, *args: Any, **kwargs: Any) -> Task:
        """Return the task with these arguments, which are checked."""

    def __hash__(self) -> int:
        """Hash by identity, as functions do."""


#: The registered functions by name; packages add theirs by the entry points of :data:`GROUP`.
BUILDERS: dict[str, TaskBuilder] = {}

#: The group of entry points ``name = package.module:function`` of registered tasks.
GROUP: Final = "fsjax.tasks"

#: Numbers for the names of the tasks of :func:`watched`.
_numbers = itertools.count()


@dataclasses.dataclass(frozen=True)
class TaskRegistration:
    """What is known of a task before it is created.

    Attributes:
      name: of the function.
      build: the function before decoration.
      parameters: its parameters by name.
      kinds: the types and ranges from their annotations.
    """

    name: str
    build: Callable[..., Task]
    parameters: Mapping[str, inspect.Parameter]
    kinds: Mapping[str, Kind]

    @property
    def origin(self) -> str:
        """``module:function``, by which launchers import tasks from outside the library."""
        return f"{self.build.__module__}:{self.build.__qualname__}"


def register(build: Callable[..., Task]) -> TaskBuilder:
    """Register a function that returns a task; a decorator.

    The annotations of its parameters give types and ranges (:mod:`fsjax.arguments`): numbers, text,
    booleans, choices, and sequences of whole numbers. Each value of an argument gives another
    task, with its own compiled programs and checkpoints.

    Args:
      build: a function that returns :func:`fsjax.tasks.like`, with a name that is not in use.

    Returns:
      The function, which now checks its arguments and the task, and returns the same task for
      equal arguments.

    Raises:
      ConfigError: for a name that another task has, and parameters without such an annotation. The
        returned task is checked when the function is called.

    Examples:
      >>> @fsjax.tasks.register
      ... def absolute():
      ...     def loss(outputs, y, weight):
      ...         return fsjax.tasks.weighted_mean(jnp.abs(y - outputs).mean(axis=-1), weight)
      ...
      ...     return fsjax.tasks.like("regression", loss=loss)
      >>> fsjax.testing.check_task(absolute())
      >>> print(fsjax.tasks.name_of(absolute()))
    """
    registration = TaskRegistration(build.__name__, build, *_arguments(build))
    _check_name(registration)

    @functools.wraps(build)
    def builder(*args: Any, **kwargs: Any) -> Task:
        name, parameters, kinds = registration.name, registration.parameters, registration.kinds
        values = checked_arguments(name, parameters, kinds, args, kwargs)
        task = _built(registered, tuple(values.items()))
        TABLE[task.name] = task
        return task

    registered = cast(TaskBuilder, builder)
    registered.registration = registration
    BUILDERS[registration.name] = registered
    return registered


def get_task(name: str) -> Task:
    """The task with a name: built-in, or registered, with arguments in parentheses.

    Args:
      name: for example ``regression``, ``quantile(0.9)``, ``quantile(level=0.9)`` or
        ``module:quantile(0.9)``, which imports the module, also from the working directory.

    Raises:
      ConfigError: for an unknown name, with the nearest known one, and for arguments that cannot be
        read or that the task does not take.

    Examples:
      >>> outputs, y = jnp.array([[2.0, 0.0], [0.0, 1.0]]), jnp.array([0, 1])
      >>> print(fsjax.tasks.get_task("classification"))  # a tasks.Task
      >>> print(fsjax.tasks.loss("classification", outputs, y, jnp.ones(2)))
      >>> print(fsjax.tasks.metrics("classification", outputs, y, jnp.ones(2)))
      >>> print(fsjax.tasks.row_metrics("classification", outputs, y))
    """
    if name in TASKS:
        return TABLE[name]
    function, args, kwargs = _parsed(name)
    try:
        return _builder(function)(*args, **kwargs)
    except TypeError as error:
        raise ConfigError(f"task={name!r}: {error}") from error


def name_of(task: str | Task) -> str:
    """The name of a task in :data:`fsjax.tasks.TABLE`, to which it is added if necessary.

    Args:
      task: a task that a registered function returned, or a name for :func:`get_task`.

    Raises:
      ConfigError: as :func:`get_task`, and for a task that no registered function returned.
    """
    if isinstance(task, str):
        return get_task(task).name
    if not isinstance(task, Task):
        raise ConfigError(f"task={task!r}: {nearest(str(task), _known())}")
    if task.source is None and TABLE.get(task.name) is not task:
        raise ConfigError(
            f"task={task!r} was not returned by a registered function; decorate the function that "
            "returns it with @fsjax.tasks.register"
        )
    # The function may have been registered again since; this task is the one to train for.
    TABLE[task.name] = task
    return task.name


def is_registered(name: str) -> bool:
    """Whether text names a registered function, also as ``module:function``.

    It may have arguments, which are not checked.
    """
    function = name.partition("(")[0]
    try:
        _builder(function)
    except ConfigError:
        return False
    return True


def resembled(name: str) -> str:
    """The built-in task that a task resembles; a built-in task itself."""
    return TABLE[name].like or name


@contextlib.contextmanager
def watched(name: str) -> Iterator[tuple[str, list[str]]]:
    """Add a temporary copy of a task to the table, which records the calls of its loss.

    Yields:
      Its name, which is new, so that no earlier trace is used for it; and a list that grows with
      each call.
    """
    task, calls, probe = TABLE[name], [], f"{name} watched {next(_numbers)}"

    def loss(*args: Any) -> Any:
        calls.append(name)
        return task.objective.loss(*args)

    TABLE[probe] = dataclasses.replace(with_fields(task, {"loss": loss}), name=probe)
    try:
        yield probe, calls
    finally:
        del TABLE[probe]


@functools.lru_cache(maxsize=512)
def _built(builder: TaskBuilder, settings: tuple[tuple[str, Any], ...]) -> Task:
    registration = builder.registration
    task = registration.build(**dict(settings))
    check_made(registration.name, task)
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings)
    name = f"{registration.name}({arguments})" if settings else registration.name
    source = TaskSource(builder, registration.build, settings)
    return dataclasses.replace(task, name=name, source=source)


def _arguments(build: Callable[..., Task]) -> tuple[dict[str, inspect.Parameter], dict[str, Kind]]:
    """The parameters of a function and their kinds; ConfigError for parameters without either."""
    parameters, kinds = dict(inspect.signature(build).parameters), kinds_of(build)
    unnamed = (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
        inspect.Parameter.POSITIONAL_ONLY,
    )
    for name, parameter in parameters.items():
        if parameter.kind in unnamed:
            raise ConfigError(
                f"the task {build.__name__} has the parameter {str(parameter)!r}; give each "
                "parameter a name and an annotation"
            )
        if name not in kinds or kinds[name].base is None:
            raise ConfigError(
                f"the parameter {name!r} of the task {build.__name__} has no annotation with a "
                f"supported type; write {name}: float, or another type of fsjax.arguments"
            )
    return parameters, kinds


def _check_name(registration: TaskRegistration) -> None:
    """ConfigError for a name that another task has; a function may be registered again."""
    name = registration.name
    if name in TASKS:
        raise ConfigError(f"the task name {name!r} is that of a built-in task; choose another one")
    if name in BUILDERS and BUILDERS[name].registration.origin != registration.origin:
        origin = BUILDERS[name].registration.origin
        raise ConfigError(f"the task name {name!r} is taken by {origin}; choose another one")


def _builder(name: str) -> TaskBuilder:
    """The registered function of this name, or ``module:function``."""
    if ":" in name:
        builder = imported("task", name)
        if not isinstance(getattr(builder, "registration", None), TaskRegistration):
            raise ConfigError(
                f"task {name!r} is not registered; decorate it with @fsjax.tasks.register"
            )
        return cast(TaskBuilder, builder)
    if name not in BUILDERS:
        _load_entry_points()
    if name not in BUILDERS:
        raise ConfigError(f"task={name!r}: {nearest(name, _known())}")
    return BUILDERS[name]


def _known() -> list[str]:
    return [*TASKS, *BUILDERS]


def _parsed(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The name of the function, and the arguments in parentheses, which are Python literals."""
    function, parenthesis, arguments = text.partition("(")
    if not parenthesis:
        return function, [], {}
    try:
        call = ast.parse(f"task({arguments}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("more than one pair of parentheses")
        args = [ast.literal_eval(value) for value in call.args]
        kwargs: dict[str, Any] = {}
        for word in call.keywords:
            if word.arg is None:
                raise ValueError("a dictionary of arguments")
            kwargs[word.arg] = ast.literal_eval(word.value)
    except (SyntaxError, ValueError):
        raise ConfigError(
            f"task={text!r}: the arguments cannot be read; write numbers or text in quotes, as in "
            f"{function}(0.9) or {function}(level=0.9)"
        ) from None
    return function, args, kwargs


@functools.cache
def _load_entry_points() -> None:
    for point in importlib.metadata.entry_points(group=GROUP):
        point.load()
