"""``sweep``: trains many settings of a method with many seeds, in one program per structure."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import reprlib
import warnings
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from fsjax.arguments.user_functions import is_function, text_of
from fsjax.engine.check_run import Data
from fsjax.engine.fit import plan
from fsjax.engine.phases import check_phases
from fsjax.engine.plan import Plan
from fsjax.engine.prepare import Prepared
from fsjax.engine.result import FitResult
from fsjax.engine.rows import take_rows
from fsjax.errors import ConfigError, name_some, nearest
from fsjax.method import Method
from fsjax.registry import METHODS, Registration, registration_of, structure_of
from fsjax.tasks import TABLE

#: Options of ``plan`` that a grid cannot vary, because they apply to the whole sweep.
FIXED = (
    "seeds",
    "progress",
    "checkpoint_dir",
    "checkpoint_every",
    "seed_axis",
    "batch_devices",
    "max_time",
    "callback",
    "keep_partial",
)

#: Values of ``best_by`` of which the highest is the best.
LARGER_IS_BETTER = ("accuracy", "auc")


@dataclasses.dataclass(frozen=True)
class Sweep:
    """The outcome of :func:`sweep`.

    Attributes:
      names: names of the varied settings.
      settings: the values of each setting by name, in the order of the grid, without those that a
        sweep which ended early has not trained.
      results: the result of each setting, over all seeds.
    """

    names: tuple[str, ...]
    settings: tuple[Mapping[str, Any], ...]
    results: tuple[FitResult, ...]

    def table(self) -> pd.DataFrame:
        """A table with one row per setting and seed.

        Its columns are the names of the grid, ``seed``, ``best_epoch``, ``validation`` (the
        criterion of :meth:`best`; smaller is better; NaN without validation rows) and all test
        metrics. If settings differ in that criterion, ``criterion`` names it; only rows of the same
        one can be compared.
        """
        rows, several = [], len(best_places(self)) > 1
        for setting, result in zip(self.settings, self.results, strict=True):
            validation = _validation(result)
            criterion = {"criterion": _label(_criterion(setting, result))} if several else {}
            for place, seed in enumerate(result.seeds):
                rows.append(
                    {
                        **setting,
                        "seed": seed,
                        "best_epoch": int(result.best_epoch[place]),
                        **criterion,
                        "validation": float(validation[place]),
                        **{name: float(values[place]) for name, values in result.metrics.items()},
                    }
                )
        return pd.DataFrame(rows)

    def best(self) -> int:
        """The place of the setting with the lowest validation loss, averaged over the seeds.

        With ``best_by='accuracy'`` or ``'auc'`` it is the highest of that instead. Test metrics are
        not used.

        Raises:
          ConfigError: if there are no validation rows, or if the settings differ in the criterion:
            in ``best_by``, ``loss``, ``task``, ``sample_weight`` or, where scaled columns are
            reconstructed, ``scaling``.
        """
        places = best_places(self)
        if len(places) > 1:
            raise ConfigError(
                f"the settings have {len(places)} criteria that cannot be compared, "
                f"{' and '.join(label for label, _ in places[:5])}; compare rows with the same "
                "criterion in table()"
            )
        best = places[0][1] if places else None
        if best is None:
            raise ConfigError("there are no validation rows to choose by; give valid_fraction=0.2")
        return best


def best_places(sweep: Sweep) -> list[tuple[str, int | None]]:
    """The text of each criterion, and the place of the best of its settings.

    The place is ``None`` without validation rows.
    """
    groups: dict[Any, list[int]] = {}
    criteria = list(map(_criterion, sweep.settings, sweep.results))
    for place, criterion in enumerate(criteria):
        groups.setdefault(_key(tuple(criterion.items())), []).append(place)
    best: list[tuple[str, int | None]] = []
    for places in groups.values():
        values = np.array([_validation(sweep.results[place]).mean() for place in places])
        unknown = np.isnan(values).all()
        place_of_best = None if unknown else places[int(np.nanargmin(values))]
        best.append((_label(criteria[places[0]]), place_of_best))
    return best


def _criterion(setting: Mapping[str, Any], result: FitResult) -> dict[str, Any]:
    """What settings must have in common, so that their values of :func:`_validation` compare."""
    spec = result.states.spec
    metric = spec.best_by if spec.best_by in LARGER_IS_BETTER else "loss"
    names = ["task", "sample_weight"]
    if metric == "loss":
        names.append("loss")
    if "scaling" in setting and not TABLE[spec.task].target.supervised:
        names.append("scaling")
    return {"validation": metric, **{name: setting[name] for name in names if name in setting}}


def sweep(method: Method, data: Data, grid: Mapping[str, Sequence[Any]], **options: Any) -> Sweep:
    """Trains a method with every combination of some settings, each with every seed.

    Traced settings, such as learning rates and penalties, share one compiled program with a run
    per setting and seed. Settings that shape the program, such as ``hidden`` or ``num_epochs``,
    compile once per value.

    Args:
      method: a registered method; the grid replaces some of its arguments.
      data: a data set, or ``(X, y)``, as for :func:`fsjax.fit`.
      grid: the values to try, by the name of an argument of the method or an option of
        :func:`fsjax.plan`; the last name varies fastest.
      **options: those of :func:`fsjax.plan`, such as ``seeds``. ``max_time``, a true result of
        ``callback``, and Ctrl-C with ``keep_partial`` end the whole sweep; a warning names the
        settings that were not trained.

    Returns:
      The results, in the order of the grid.

    Raises:
      ConfigError: for an unknown name, no values, or values out of range, before anything is
        trained.
      DataError, NonFiniteLossError: as :func:`fsjax.fit`.

    Examples:
      >>> sweep = fsjax.sweep(
      ...     method, data, {"sensitivity_weight": [0.1, 0.9]}, num_features=2, num_epochs=2
      ... )
      >>> print(sweep.table())  # of a fsjax.Sweep: a row for each setting and seed
    """
    return plan_sweep(method, data, grid, **options).fit()


class Group(NamedTuple):
    """Settings that share a program.

    Attributes:
      places: their places in the order of the grid.
      methods: one method per setting.
      further: options of ``plan`` that the grid sets for all of them.
    """

    places: list[int]
    methods: list[Method]
    further: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class SweepPlan:
    """A sweep whose settings are all checked; see :func:`sweep`.

    Attributes:
      settings: the values of each setting by name.
      groups: the settings, grouped by program.
      data: the data of the call.
      options: the options of :func:`fsjax.plan`.
      first: the plan of the first group, often the only one. The data of the other groups is
        prepared again when they train, so that it is not all in memory at once.
    """

    settings: tuple[Mapping[str, Any], ...]
    groups: tuple[Group, ...]
    data: Data
    options: Mapping[str, Any]
    first: Plan

    def fit(self) -> Sweep:
        """Trains one group after another, until one ends early."""
        results: dict[int, FitResult] = {}
        control, planned = self.first.control, self.first
        with control.running():
            for number, group in enumerate(self.groups):
                if number:
                    if control.ends([]):
                        break
                    planned = _plan_group(number, group, self.data, self.options)
                    planned = dataclasses.replace(planned, control=control)
                results |= zip(group.places, fit_many(planned, group.methods), strict=False)
        left_out = [s for place, s in enumerate(self.settings) if place not in results]
        if left_out:
            warnings.warn(
                f"the sweep ended early, so {len(left_out)} of {len(self.settings)} settings were "
                f"not trained: {name_some([_label(setting) for setting in left_out])}",
                stacklevel=3,
            )
        places = sorted(results)
        trained = tuple(self.settings[place] for place in places)
        return Sweep(tuple(self.settings[0]), trained, tuple(results[place] for place in places))


def _label(setting: Mapping[str, Any]) -> str:
    texts = {name: text_of(v) if is_function(v) else reprlib.repr(v) for name, v in setting.items()}
    return ", ".join(f"{name}={text}" for name, text in texts.items())


def _key(value: Any) -> Hashable:
    """What tells the values of a grid apart; the text of a long array leaves numbers out."""
    if isinstance(value, FitResult):
        return id(value)
    if isinstance(value, list | tuple):
        return (type(value).__name__, *map(_key, value))
    if not isinstance(value, np.generic) and hasattr(value, "__array__"):
        array = np.asarray(value)
        if not array.dtype.hasobject:
            return str(array.dtype), array.shape, array.tobytes()
    return repr(value)


def plan_sweep(
    method: Method, data: Data, grid: Mapping[str, Sequence[Any]], **options: Any
) -> SweepPlan:
    """Checks a sweep; arguments and errors are those of :func:`sweep`."""
    settings = combinations(grid)
    arguments, of_plan = _registration(method).parameters, inspect.signature(plan).parameters
    known = [*arguments, *of_plan]
    for name in grid:
        if name in FIXED or name not in known or name in options:
            hint = "it applies to the whole sweep" if name in (*FIXED, *options) else None
            raise ConfigError(f"cannot sweep over {name!r}: {hint or nearest(name, known)}")
    groups: dict[Any, Group] = {}
    for place, setting in enumerate(settings):
        changes = {name: value for name, value in setting.items() if name in arguments}
        further = {name: value for name, value in setting.items() if name not in arguments}
        changed = METHODS[method.name](**dict(method.about.settings) | changes)
        key = (structure_of(changed)[0], _key(tuple(further.items())))
        group = groups.setdefault(key, Group([], [], further))
        group.places.append(place)
        group.methods.append(changed)
    first, *others = groups.values()
    for number, group in enumerate(others, start=1):
        _plan_group(number, group, data, options)
    planned = _plan_group(0, first, data, options)
    return SweepPlan(tuple(settings), (first, *others), data, options, planned)


def _plan_group(number: int, group: Group, data: Data, options: Mapping[str, Any]) -> Plan:
    """The plan of a group, with its own folder for checkpoints."""
    options = {**options, **group.further}
    if options.get("checkpoint_dir") is not None:
        options["checkpoint_dir"] = Path(options["checkpoint_dir"]) / f"{number:03d}"
    first, *others = group.methods
    planned = plan(first, data, **options)
    for method in others:
        check_phases(method, planned.spec)
    planned.check_number()
    planned.check_one_size("vary it in the grid")
    return planned


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of the values; the last name varies fastest.

    Raises:
      ConfigError: for an empty grid, and for a name without values or with a repeated value.
    """
    if not grid:
        raise ConfigError("the grid is empty; give at least one name with its values")
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise ConfigError(f"{name}={values!r} in the grid; give a list of values")
        if not len(values) or len(set(map(_key, values))) < len(values):
            raise ConfigError(
                f"{name}={list(values)!r} in the grid; give at least one value, and each only once"
            )
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def fit_many(planned: Plan, methods: Sequence[Method]) -> list[FitResult]:
    """Runs :meth:`Plan.fit` for methods that differ only in traced arguments, in one program.

    Returns:
      One result per method; each has an equal share of the seconds of training. Methods that are
      trained in turn, as each searches, have none once training was ended early.
    """
    seeds, count = len(planned.seeds), len(methods)
    plans = [
        dataclasses.replace(planned, method=method, hyper=structure_of(method)[1])
        for method in methods
    ]
    if count == 1:
        return plans[0].fit()
    if planned.sizes and planned.method.search is not None:
        if (folder := planned.checkpoint_dir) is not None:
            plans = [
                dataclasses.replace(single, checkpoint_dir=folder / f"{number:03d}")
                for number, single in enumerate(plans)
            ]
        with planned.control.running():
            started = (single for single in plans if not planned.control.stopped)
            return [single.fit()[0] for single in started]
    rows = np.tile(np.arange(seeds), count)
    many = dataclasses.replace(
        planned,
        seeds=tuple(planned.seeds[row] for row in rows),
        prepared=_rows_of(planned, rows),
        start=None if planned.start is None else take_rows(planned.start, rows),
    )
    hyper = {
        name: [single.hyper[name] for single in plans for _ in range(seeds)]
        for name in planned.hyper
    }
    with many.control.running():
        trained = many.train(hyper=hyper)
    chosen = many.choose(trained)
    results = []
    for number, single in enumerate(plans):
        rows_of_method = slice(number * seeds, (number + 1) * seeds)
        states, of_plan = jax.tree.map(
            lambda leaf, rows=rows_of_method: leaf[rows],
            (trained.states, chosen),
        )
        history = {name: values[rows_of_method] for name, values in trained.history.items()}
        cost = {
            name: value / count if name.endswith("seconds") else value
            for name, value in trained.cost.items()
        }
        trained_method = trained._replace(states=states, history=history, cost=cost)
        results.append(single.select(trained_method, of_plan)[0])
    return results


def _rows_of(planned: Plan, rows: np.ndarray) -> Prepared:
    """The prepared data of some seeds, given by their places, which may repeat."""
    prepared = planned.prepared
    return prepared._replace(
        arrays=planned.arrays_of(rows),
        x_test=tuple(prepared.x_test[row] for row in rows),
        y_test=tuple(prepared.y_test[row] for row in rows),
        feature_mask=prepared.feature_mask[rows],
        splits=tuple(prepared.splits[row] for row in rows),
        scalers=tuple(prepared.scalers[row] for row in rows),
    )


def _registration(method: Method) -> Registration:
    registration = registration_of(method)
    if registration is None:
        raise ConfigError(
            f"{method.name or 'this method'} was not made by a registered builder, so its "
            "settings cannot vary; decorate the function that makes it with @fsjax.register(...)"
        )
    return registration


def _validation(result: FitResult) -> np.ndarray:
    """``(S,)``, the criterion on the validation rows, smaller is better; NaN without such rows.

    It is that of the kept epochs, or of the network whose gates a search closed after training.
    """
    seeds, at_best = np.arange(len(result.seeds)), np.asarray(result.best_epoch) - 1
    values = {name: of_epochs[seeds, at_best] for name, of_epochs in result.history.items()}
    # Those of a search; the history is from before it closed gates.
    values |= {
        name.replace("valid_", "valid/", 1): of_seeds
        for name, of_seeds in result.metrics.items()
        if name.startswith("valid_")
    }
    best_by = result.states.spec.best_by
    sign = -1.0 if best_by in LARGER_IS_BETTER else 1.0
    unknown = np.full(len(seeds), np.nan)
    return sign * values.get(f"valid/{best_by}", values.get("valid/loss", unknown))
