"""The registry of methods: everything else about a method follows from one registration.

    @fsjax.register(estimator="DeepLasso", paper="Cherepanova et al., NeurIPS 2023")
    def deep_lasso(*, penalty: NonNegative = 0.01, hidden: Layers = (64,)) -> fsjax.Method:
        ...

adds ``fsjax.methods.METHODS["deep_lasso"]`` and the estimator ``DeepLasso``. The method can then be
saved and loaded, the launchers accept it in ``--config.method.name``, and the contract test that
every method must pass includes it.

    >>> from fsjax import registry
    >>> builder: registry.Builder = fsjax.methods.get_method("wast")
    >>> facts: registry.Registration = builder.registration
    >>> print(facts.num_epochs, facts.scaling, facts.takes_number, registry.registration_of(method))
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import jax

from fsjax.arguments import Kind, checked_arguments, is_traced, kinds_of, known
from fsjax.arguments.user_functions import is_function
from fsjax.errors import ConfigError
from fsjax.method import About, Method


class Builder(Protocol):
    """A registered function that makes a method."""

    __name__: str
    __signature__: inspect.Signature
    registration: Registration

    def __call__(self, *args: Any, **kwargs: Any) -> Method:
        """Checks the arguments and returns the method with them."""


#: All methods by name; packages add theirs through an entry point (``fsjax.methods.GROUP``).
METHODS: dict[str, Builder] = {}

#: Names that an argument of a method cannot have, because its estimator has a method, or every
#: estimator an argument, of that name.
RESERVED = frozenset(
    """
    fit fit_transform transform inverse_transform predict predict_proba predict_log_proba
    decision_function score save plot get_feature_names_out get_metadata_routing get_params
    get_support set_fit_request set_output set_params set_score_request
    n_features_to_select task image_shape num_epochs batch_size n_seeds random_state
    validation_fraction validation_data standardize class_weight groups early_stopping max_time
    warm_start callback keep_partial verbose
    """.split()
)


class MethodStructure(NamedTuple):
    """A method without the values of its traced arguments: the static argument of its programs.

    Attributes:
      build: the undecorated builder.
      name: name of the method.
      static: the values of the arguments that are not traced, by name.
      traced: names of the traced arguments.
    """

    build: Callable[..., Method]
    name: str
    static: tuple[tuple[str, Any], ...]
    traced: tuple[str, ...]

    @property
    def in_library(self) -> bool:
        """Whether the builder belongs to this library, whose own tests check its contract."""
        return self.build.__module__.startswith("fsjax.methods.")

    def bind(self, hyper: Mapping[str, Any]) -> Method:
        """The method with these values, possibly tracers, of its traced arguments."""
        method = self.build(**dict(self.static), **{name: hyper[name] for name in self.traced})
        return method._replace(about=method.about._replace(name=self.name))


class MethodSource(NamedTuple):
    """How a method was built.

    Attributes:
      structure: its structure.
      hyper: values of its traced arguments, by name.
      fields: the fields that the builder returned; a method with other fields was changed since.
    """

    structure: MethodStructure
    hyper: tuple[tuple[str, float], ...]
    fields: tuple[Any, ...]


def structure_of(method: Method) -> tuple[MethodStructure, dict[str, float]]:
    """The structure of a method, and the values of its traced arguments.

    A method that was made by hand, or changed after it was built, has no traced arguments: its
    structure is the method as a whole.
    """
    source = _source_of(method)
    if source is None:
        return MethodStructure(_itself, method.name, (("method", method),), ()), {}
    return source.structure, dict(source.hyper)


def _itself(method: Method) -> Method:
    return method


def registration_of(method: Method) -> Registration | None:
    """The registration of the builder that made a method.

    ``None`` for a method that was made by hand, or of which a field was replaced since.
    """
    source = _source_of(method)
    builder = None if source is None else METHODS.get(source.structure.name)
    return None if builder is None else builder.registration


def _source_of(method: Method) -> MethodSource | None:
    """How a method was built; ``None`` if it is no longer what the builder returned."""
    source: MethodSource | None = method.about.source
    if source is None or any(
        part is not other for part, other in zip(source.fields, _parts(method), strict=True)
    ):
        return None
    return source


def _parts(method: Method) -> tuple[Any, ...]:
    return (*method.about[:-1], *method[1:])


@dataclasses.dataclass(frozen=True)
class Registration:
    """The facts about a method that are known before it is built.

    Attributes:
      name: name of the builder.
      build: the undecorated builder.
      estimator, paper, optimises, num_epochs, batch_size, scaling, training, small,
        options: the arguments of :func:`register`.
      parameters: all arguments by name, including those of ``options``.
      kinds: the parsed annotation of each argument.
    """

    name: str
    build: Callable[..., Method]
    estimator: str
    paper: str
    optimises: str
    num_epochs: int
    batch_size: int | None
    scaling: str
    training: Mapping[str, Any]
    small: Mapping[str, Any]
    options: Any
    parameters: Mapping[str, inspect.Parameter]
    kinds: Mapping[str, Kind]

    @property
    def origin(self) -> str:
        """``module:function``, the name by which launchers find methods outside the library."""
        return f"{self.build.__module__}:{self.build.__qualname__}"

    @property
    def takes_number(self) -> bool:
        """Whether the method is built for a fixed number of columns."""
        return "num_features" in self.parameters

    def defaults(self) -> dict[str, Any]:
        """Default values of all arguments except ``num_features``."""
        return {
            name: parameter.default
            for name, parameter in self.parameters.items()
            if name != "num_features"
        }

    def values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The values of all arguments, checked.

        Raises:
          TypeError: for unknown or missing arguments.
          ConfigError: for a value of the wrong type or out of its range.
        """
        label = f"fsjax.methods.{self.name}"
        values = checked_arguments(label, self.parameters, self.kinds, args, kwargs)
        self._check_rates(values)
        return values

    def _check_rates(self, values: Mapping[str, Any]) -> None:
        """Raises ConfigError for a learning rate that an optimiser given as an object ignores."""
        optimizers = [v for name, v in values.items() if self.kinds[name].function == "optimizer"]
        if not any(map(is_function, optimizers)):
            return
        for name, value in values.items():
            default = self.parameters[name].default
            is_rate = self.kinds[name].function == "schedule"
            if is_rate and known(value) and value != default:
                raise ConfigError(
                    f"{name}={value} has no effect with an optimizer of your own; leave {name} out "
                    "and set the rate of the optimizer itself"
                )


def register(
    *,
    estimator: str,
    paper: str = "",
    optimises: str = "",
    num_epochs: int = 100,
    batch_size: int | None = 64,
    scaling: str = "standard",
    training: Mapping[str, Any] = {},
    small: Mapping[str, Any] = {},
    options: Any = None,
    without: Sequence[str] = (),
) -> Callable[[Callable[..., Method]], Builder]:
    """Registers the builder of a method, in this library or in your own file.

    The builder is a function of keyword arguments whose annotations state type and range
    (:mod:`fsjax.arguments`); ``num_features`` may come first. Float arguments are traced: in
    compiled code the builder is called with tracers for them, so that changing their values does
    not recompile. Mark floats that decide shapes or branches with ``fsjax.arguments.STATIC``. A
    learning rate that only Optax uses may also be a schedule: annotate it with
    ``fsjax.arguments.Positive | Schedule``.

    Args:
      estimator: name of the scikit-learn class, which is added to the module of the builder.
      paper: where the method was published.
      optimises: one line on what it does, for tables.
      num_epochs: default of the estimator and of the default configuration.
      batch_size: likewise; ``None`` takes all training rows.
      scaling: likewise, a kind of :func:`fsjax.data.fit_scaler`.
      training: further fixed arguments of :func:`fsjax.fit`.
      small: arguments for tests on tables with a dozen columns.
      options: where the builder's ``**options`` come from: an instance of a dataclass, whose
        values are the defaults, or another registered builder.
      without: names of options that the method does not have.

    Returns:
      A decorator. The decorated builder checks its arguments and returns the same object for equal
      ones.

    Raises:
      ConfigError: if the name of the method or of the estimator is taken; for an argument that has
        no annotation, or a name that estimators reserve.

    Examples:
      >>> @fsjax.register(estimator="Linear", paper="an example", optimises="a linear loss")
      ... def linear(*, learning_rate: fsjax.arguments.Positive = 0.1):
      ...     '''A linear model; the score of a column is the sum of its absolute weights.'''
      ...
      ...     def init(key, spec, data):  # spec: a fsjax.Spec
      ...         kernel = jax.random.normal(key, (spec.num_columns, spec.num_outputs))
      ...         return fsjax.create_state(spec, {"kernel": 0.01 * kernel})
      ...
      ...     # state: a fsjax.TrainState; batch: a fsjax.Batch
      ...     def loss(params, state, batch, key):
      ...         return state.spec.loss_of(batch.x @ params["kernel"], batch.y, batch.weight), {}
      ...
      ...     return fsjax.Method(
      ...         fsjax.About(tasks=fsjax.tasks.SUPERVISED),
      ...         init=init,
      ...         loss=loss,
      ...         optimizer=optax.sgd(learning_rate),
      ...         predict=lambda state, x: x @ state.params["kernel"],
      ...         select=lambda state: fsjax.Selection(jnp.abs(state.params["kernel"]).sum(axis=1)),
      ...     )
      >>> fsjax.testing.check_method(linear(), tasks=("classification",))
    """

    def decorate(build: Callable[..., Method]) -> Builder:
        parameters, kinds = _parameters(build, options, without)
        registration = Registration(
            name=build.__name__,
            build=build,
            estimator=estimator,
            paper=paper,
            optimises=optimises,
            num_epochs=num_epochs,
            batch_size=batch_size,
            scaling=scaling,
            training=training,
            small=small,
            options=options,
            parameters=parameters,
            kinds=kinds,
        )
        _check_names(registration)

        @functools.wraps(build)
        def builder(*args: Any, **kwargs: Any) -> Method:
            values = registration.values(args, kwargs)
            if any(isinstance(value, jax.core.Tracer) for value in values.values()):
                return build(**values)  # called by another method in compiled code
            return _built(build, registration.name, tuple(sorted(values.items())))

        registered = cast(Builder, builder)
        registered.registration = registration
        registered.__signature__ = inspect.Signature(list(parameters.values()))
        METHODS[registration.name] = registered
        return registered

    return decorate


def _check_names(registration: Registration) -> None:
    """Raises ConfigError for a name that is taken; the same builder may be registered again."""
    for other in (builder.registration for builder in METHODS.values()):
        for what, name, taken in (
            ("method", registration.name, other.name),
            ("estimator", registration.estimator, other.estimator),
        ):
            if name == taken and other.origin != registration.origin:
                raise ConfigError(
                    f"the {what} name {name!r} is taken by {other.origin}; choose another one"
                )
    if not isinstance(
        registration.build.__globals__.get(registration.estimator, Registration), type
    ):
        raise ConfigError(
            f"the estimator name {registration.estimator!r} is taken in "
            f"{registration.build.__module__}; choose another one"
        )


def _parameters(
    build: Callable[..., Method], options: Any, without: Sequence[str]
) -> tuple[dict[str, inspect.Parameter], dict[str, Kind]]:
    """All arguments of a builder and their kinds, with ``**options`` expanded."""
    of_builder = inspect.signature(build).parameters
    _check_arguments(build.__name__, of_builder)
    kinds = kinds_of(build)
    parameters = {
        name: parameter
        for name, parameter in of_builder.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    }
    if isinstance(options, type):
        raise ConfigError(
            f"options={options.__name__} is a class; give an instance, {options.__name__}()"
        )
    if options is not None:
        source = getattr(options, "registration", None)
        further = source.parameters if source else _fields(options)
        kinds = {**(source.kinds if source else kinds_of(type(options))), **kinds}
        for name, parameter in further.items():
            if name not in parameters and name not in without:
                parameters[name] = parameter.replace(kind=parameter.KEYWORD_ONLY)
    return parameters, {name: kinds[name] for name in parameters}


def _check_arguments(name: str, parameters: Mapping[str, inspect.Parameter]) -> None:
    """Raises ConfigError for an argument with a reserved name or without an annotation."""
    for argument, parameter in parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if argument in RESERVED:
            raise ConfigError(
                f"{name} has an argument {argument!r}, a name that estimators reserve; choose "
                "another name"
            )
        if parameter.annotation is parameter.empty:
            raise ConfigError(
                f"the argument {argument!r} of {name} has no annotation; annotate its type and "
                f"range, for example {argument}: fsjax.arguments.Positive (typing.Any checks "
                "nothing)"
            )


def _fields(options: Any) -> dict[str, inspect.Parameter]:
    """The fields of a dataclass instance as parameters, with their values as defaults."""
    further = inspect.signature(type(options)).parameters
    return {
        name: parameter.replace(default=getattr(options, name))
        for name, parameter in further.items()
    }


@functools.lru_cache(maxsize=512)
def _built(
    build: Callable[..., Method], name: str, settings: tuple[tuple[str, Any], ...]
) -> Method:
    kinds = METHODS[name].registration.kinds
    traced = {key: value for key, value in settings if is_traced(value, kinds[key])}
    static = tuple((key, value) for key, value in settings if key not in traced)
    structure = MethodStructure(build, name, static, tuple(traced))
    method = structure.bind(traced)
    method = method._replace(about=method.about._replace(settings=settings, source=None))
    source = MethodSource(structure, tuple(traced.items()), _parts(method))
    return method._replace(about=method.about._replace(source=source))


def about_of(registration: Registration) -> About:
    """The facts about a method with its default arguments."""
    return METHODS[registration.name]().about
