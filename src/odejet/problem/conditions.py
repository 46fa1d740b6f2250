"""Conditions: the model of each experiment, with what is known there put in.

An experiment may know the values of parameters and of initial states, as numbers or as expressions in parameters, and
has inputs of its own.  Put into the model these give the experiment's *own* model, whose parameters and free initial
states are exactly what is unknown there: simulation, identifiability and algebra of an experiment work on it, and never
ask again what is known.  Experiments that know the same share one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.data import Data, Experiment, Series
from odejet.data.arrays import known as read_known
from odejet.data.covariate import Covariate
from odejet.errors import DataError, ModelError, clipped, nearest
from odejet.jets.curves import expanded
from odejet.jets.inputs import Sampled, sampled
from odejet.model import Model, entries
from odejet.model.cumulated import Cumulated, cumulated, of_rates
from odejet.model.delays import resolved
from odejet.model.expressions import Expression, constant, names, number, substituted
from odejet.model.transform import rewritten, written_out
from odejet.problem.given import check_given, given_in, names_given

Known = Mapping[str, Expression]

_NUMBERED = re.compile(r"DV([0-9]*)")
"""What tables of NONMEM call whatever was measured, with the number of the output where that is told."""


@dataclass(frozen=True, eq=False)
class Condition:
    """An experiment as its problem reads it: outputs in the model's order, its own model, its samples.

    Where outputs tell what happened since the last measurement, the model has their rates, and `cumulated` is what is
    simulated in its place.  Where inputs are curves that are to be found, `functions` of time drive it in their place.
    """

    experiment: Experiment
    model: Model
    cumulated: Cumulated
    functions: Mapping[str, Sampled] = field(default_factory=dict)

    @classmethod
    def of(cls, experiment: Experiment, model: Model) -> Condition:
        """Return the condition of an experiment of a model."""
        model, functions = expanded(model, experiment.inputs)
        own = resolved(_own(model, experiment))
        return cls(experiment, of_rates(own), cumulated(own), functions)

    @cached_property
    def driven(self) -> Experiment:
        """The experiment with all that drives its own model: functions in the place of curves, too."""
        if not self.functions:
            return self.experiment
        return replace(self.experiment, inputs={**self.experiment.inputs, **self.functions})

    @cached_property
    def series(self) -> dict[str, Series]:
        """What was measured of the outputs of the model: rates, in the middle of the window that each is over."""
        return {name: self._rates(name, series) for name, series in self.experiment.outputs.items()}

    def _rates(self, name: str, series: Series) -> Series:
        if name not in self.cumulated.outputs:
            return series
        begins = self._begins(series)
        sizes = 1.0 if self.cumulated.outputs[name] else series.times - begins
        sds = None if series.sds is None else series.sds / sizes
        return Series(0.5 * (begins + series.times), series.values / sizes, sds).at(~series.censored)

    def _begins(self, series: Series) -> np.ndarray:
        """When the window of each measurement begins."""
        ends = np.unique(series.times)
        return np.r_[self.experiment.start, ends][np.searchsorted(ends, series.times)]

    def width(self, name: str) -> float:
        """About how much larger what is measured is than the output of the model: the usual window of a rate."""
        if self.cumulated.outputs.get(name, True):
            return 1.0
        series = self.experiment.outputs[name]
        return float(np.median(series.times - self._begins(series)))

    @property
    def kind(self) -> tuple[int, frozenset[str]]:
        """Return a key that experiments share which have one model and the same measured outputs."""
        return id(self.model), frozenset(self.experiment.outputs)


def in_words_of(model: Model, data: Data) -> Data:
    """Data in which whatever a table of NONMEM has measured are outputs of the model: the only one, or by number."""
    known = {*model.outputs, *model.inputs, *model.parameters, *model.fixed}
    measured = dict.fromkeys(name for one in data.experiments for name in one.outputs)
    new: dict[str, str] = {}
    for name in measured:
        told = _NUMBERED.fullmatch(name)
        if told is None or name in known:
            continue
        outputs, which = list(model.outputs), int(told[1] or 0)
        alone = len(outputs) == 1 and sum(map(bool, map(_NUMBERED.fullmatch, measured))) == 1
        if alone or (which == 1 and len(outputs) == 1):
            new[name] = outputs[0]
        elif 1 <= which <= len(outputs):
            new[name] = outputs[which - 1]
        elif which:
            count = f"{len(outputs)} output{'s'[: len(outputs) != 1]}"
            raise DataError(f"the table has measurements with DVID {which}, but the model has {count}; leave them out")
        elif len(outputs) > 1:
            shown = ", ".join(outputs[:20])
            raise DataError(f"the model has the outputs {shown}; add a column DVID that tells which of them DV is")
    if not new:
        return data
    return Data.of(
        replace(one, outputs={new.get(name, name): series for name, series in one.outputs.items()})
        for one in data.experiments
    )


def fixed_values(fixed: Mapping[str, Any] | None, model: Model, noise: Sequence[str] = ()) -> dict[str, Expression]:
    """What a problem fixes in all experiments, of the model and of names in the noise: numbers, or expressions in
    parameters."""
    if not fixed:
        return {}
    if not isinstance(fixed, Mapping):
        raise ModelError("fixed must be a dictionary of names and values, such as {'k1': 0.2}")
    known = [*model.parameters, *model.fixed, *model.states, *noise]
    for name in fixed:
        if name not in known:
            raise ModelError(f"fixed: the model has no parameter '{name}'{nearest(str(name), known)}")
    try:
        return {name: read_known(name, value, "fixed") for name, value in fixed.items()}
    except DataError as error:
        raise ModelError(str(error)) from None


def conditions(model: Model, data: Data, fixed: Known, noise: Sequence[str] = ()) -> tuple[Condition, ...]:
    """The experiments of the data as the model reads them; what does not fit it is refused with a sentence.

    An output that was never measured is simply not used; `noise` are names that only the noise depends on.
    """
    if not model.outputs:
        raise DataError(f"the model {model.name} has no outputs, so that no data say anything about it; add [outputs]")
    strangers = [name for name in model.experiments if name not in {one.name for one in data.experiments}]
    if strangers:
        raise DataError(
            f"the model knows of an experiment '{strangers[0]}', but the data have none of that name"
            f"{nearest(strangers[0], [one.name for one in data.experiments])}"
        )
    owned: dict[Any, Condition] = {}
    result = []
    for experiment in data.experiments:
        bound = _bound(experiment, model, fixed, noise)
        key = _key(bound), model.experiments.get(experiment.name, {}).get(entries.EVENTS_KEY)
        try:
            if key not in owned:
                owned[key] = Condition.of(bound, model)
        except ModelError as error:
            raise DataError(f"{experiment.name}: {error}") from None
        result.append(replace(owned[key], experiment=bound))
        _check_windows(result[-1])
    _check_effect(model, result)
    return tuple(result)


def _check_windows(condition: Condition) -> None:
    """Refuse measurements of what happened in no time, or in endless time."""
    experiment = condition.experiment
    for name in condition.cumulated.outputs:
        times = experiment.outputs[name].times if name in experiment.outputs else np.zeros(0)
        if len(times) and times[0] <= experiment.start:
            raise DataError(
                f"{experiment.name}: {name} is what happened since the start, but is measured at the start, "
                f"t = {times[0]:g}; give an earlier start, or leave this row out"
            )
        if len(times) and np.isinf(times[-1]):
            raise DataError(f"{experiment.name}: {name} is over a window of time, which cannot end at t = inf")


def unmeasured(model: Model, experiment: Experiment, fixed: Known) -> Condition:
    """An experiment that was not measured, as the model reads it."""
    bound = _bound(experiment, model, fixed, (), measured=False)
    try:
        return Condition.of(bound, model)
    except ModelError as error:
        raise DataError(f"{experiment.name}: {error}") from None


def _key(experiment: Experiment) -> Any:
    """What makes the models of two experiments the same."""
    inputs = {name: "" if isinstance(value, Sampled) else value for name, value in experiment.inputs.items()}
    tables = (experiment.values, experiment.initial, experiment.before, inputs)
    known = (frozenset((name, str(value)) for name, value in table.items()) for table in tables)
    return experiment.steady, experiment.events, experiment.doses, *known


def _check_effect(model: Model, found: Iterable[Condition]) -> None:
    """Refuse a parameter that no experiment feels, since nothing can be said of it."""
    felt = {name for one in found for name in one.model.parameters}
    known = {name for one in found for name in one.experiment.values}
    for name in model.parameters:
        if name not in felt and name not in known:
            raise DataError(f"with the known initial states the parameter '{name}' has no effect; fix it")


# --- one experiment ---


def _bound(
    experiment: Experiment, model: Model, fixed: Known, noise: Sequence[str], measured: bool = True
) -> Experiment:
    """An experiment with everything under the model's names, and with what the model and the problem know of it."""
    where = f"{experiment.name}: "
    parameters = (*model.parameters, *model.fixed, *noise)
    for name in experiment.outputs:
        if name not in (*model.outputs, *model.inputs, *parameters):
            raise DataError(f"{where}{_stranger(name, model)}")
    if model.start is not None and not experiment.started:
        experiment = replace(experiment, start=min(experiment.start, model.start))
    experiment = replace(experiment, started=True)
    told, steady, before = _start(experiment, model)
    values = {
        **{name: value for name, value in fixed.items() if name not in model.states},
        **{name: value for name, value in told.items() if name not in model.states},
        **_constants(experiment, parameters),
        **experiment.values,
    }
    initial = {
        **{name: value for name, value in {**fixed, **told}.items() if name in model.states},
        **experiment.initial,
    }
    if steady:
        initial, before = {}, {**model.initial, **initial, **model.before, **before}
    elif model.steady and (missing := [name for name in model.states if name not in initial]):
        raise DataError(f"{where}the initial values of {', '.join(missing[:8])} are missing; give all of them or none")
    for kind, given, known in (
        ("input", experiment.inputs, model.inputs),
        ("state", initial, model.states),
        ("parameter", values, (*parameters, *names_given(experiment))),
        ("parameter, input or state", before, (*parameters, *model.inputs, *model.states)),
    ):
        for name in given:
            if name not in known:
                raise DataError(f"{where}the model has no {kind} '{name}'{nearest(name, known)}")
    outputs = {name: experiment.outputs[name] for name in model.outputs if name in experiment.outputs}
    if not outputs and measured:
        raise DataError(f"{where}none of the outputs {', '.join(list(model.outputs)[:20])} was measured")
    given_inputs = {**_samples(experiment, model), **experiment.inputs}
    inputs = {name: _joined(given_inputs[name], model, name) for name in model.inputs if name in given_inputs}
    columns = {name: experiment.outputs[name] for name in parameters if name in experiment.outputs}
    bound = replace(
        experiment,
        outputs=outputs,
        inputs=inputs,
        initial=initial,
        values=values,
        steady=steady,
        before=before,
        covariates={**experiment.covariates, **{name: Covariate(s.times, s.values) for name, s in columns.items()}},
    )
    _check_inputs(bound, model)
    _check_bounds(bound, model)
    check_given(bound, model.states)
    return bound


def _start(experiment: Experiment, model: Model) -> tuple[dict[str, Any], bool, Known]:
    """What the model tells of an experiment by name, whether that starts at rest, and under what it came to rest."""
    told = dict(model.experiments.get(experiment.name, {}))
    steady, before = model.steady and not experiment.initial, {}
    # Values are expressions; what is neither is no value of a parameter that happens to be called so.
    if isinstance(told.get(entries.STEADY_KEY), str):
        steady = bool(told.pop(entries.STEADY_KEY))
    if isinstance(told.get(entries.BEFORE_KEY), Mapping):
        before = told.pop(entries.BEFORE_KEY)
    if isinstance(told.get(entries.EVENTS_KEY), tuple):
        del told[entries.EVENTS_KEY]
    return told, steady or experiment.steady, {**before, **experiment.before}


def _constants(experiment: Experiment, parameters: Iterable[str]) -> dict[str, Expression]:
    """Columns that are named like parameters: what these are in the experiment, in every row."""
    found: dict[str, Expression] = {}
    given: dict[str, Series | Covariate] = {**experiment.covariates, **experiment.outputs}
    for name in parameters:
        if name not in given:
            continue
        values = given[name].values
        if name in experiment.values:
            # An experiment that was bound before has what its column says.
            if values.dtype.kind == "f" and experiment.values[name] == number(float(values[0])):
                continue
            raise DataError(f"{experiment.name}: the parameter '{name}' is given twice, in a column and as a value")
        if values.dtype.kind != "f":
            raise DataError(
                f"{experiment.name}: the column '{name}' is named like a parameter but holds words such as "
                f"{clipped(str(values[0]))}; give numbers, or rename the column"
            )
        if (values != values[0]).any():
            raise DataError(
                f"{experiment.name}: the column '{name}' is named like a parameter but varies from {values.min():g} to "
                f"{values.max():g}; a parameter has one value in an experiment: make it an input, or rename the column"
            )
        found[name] = number(float(values[0]))
    return found


def _samples(experiment: Experiment, model: Model) -> dict[str, Sampled]:
    """Columns that are named like inputs."""
    found = {name: series for name, series in experiment.outputs.items() if name in model.inputs}
    changing = {name: series for name, series in experiment.covariates.items() if name in model.inputs}
    for name, series in found.items():
        if series.limits is not None:
            raise DataError(f"{experiment.name}: the input '{name}' has censored values; give numbers")
    samples = {name: sampled(series.times, series.values, f"input '{name}'") for name, series in found.items()}
    samples |= {name: _carried(name, own, experiment) for name, own in changing.items()}
    for name, made in samples.items():
        if name in experiment.inputs and not _is_same(made, experiment.inputs[name]):
            raise DataError(f"{experiment.name}: the input '{name}' is given twice, in a column and as an input")
    return samples


def _is_same(one: Sampled, other: Sampled | str) -> bool:
    """Whether an input is that of a column, as it is in an experiment that was bound before."""
    pairs = () if isinstance(other, str) else ((one.times, other.times), (one.values, other.values))
    return bool(pairs) and all(np.array_equal(a, b) for a, b in pairs)


def _carried(name: str, covariate: Covariate, experiment: Experiment) -> Sampled:
    """A covariate as an input: every value holds until the next one, the first from the start."""
    if not covariate.is_number:
        word = clipped(str(covariate.values[0]))
        raise DataError(f"{experiment.name}: the column '{name}' is an input but holds words such as {word}")
    last = np.flatnonzero(np.r_[covariate.times[1:] > covariate.times[:-1], True])  # of several rows at one time
    times, values = covariate.times[last], covariate.values[last]
    begin, end = min(experiment.start, times[0]), max(experiment.end, times[-1])
    times, values = np.r_[begin, times[1:], end], np.r_[values, values[-1]]
    distinct = np.r_[True, times[1:] > times[:-1]]
    held = sampled(times[distinct], values[distinct], f"input '{name}'")
    return replace(held, joined="hold")


def _joined(given: Sampled | str, model: Model, name: str) -> Sampled | str:
    """An input with its samples joined as the model says."""
    if not isinstance(given, Sampled) or name not in model.sampling:
        return given
    return replace(given, joined=model.sampling[name])


def _check_inputs(experiment: Experiment, model: Model) -> None:
    where = f"{experiment.name}: "
    for name, expression in model.inputs.items():
        if expression is None and name not in experiment.inputs and name not in model.curves:
            raise DataError(
                f"{where}the model's input '{name}' is sampled, but there are no samples; add a column '{name}'"
            )
    for name, samples in experiment.sampled.items():
        if not samples.cover(experiment.start, experiment.end):
            raise DataError(
                f"{where}the input '{name}' is sampled from t = {samples.times[0]:g} to {samples.times[-1]:g}, but "
                f"the experiment lasts from {experiment.start:g} to {experiment.end:g}; sample the input over all of it"
            )


def _check_bounds(experiment: Experiment, model: Model) -> None:
    """Refuse a known number that contradicts the model's bounds."""
    for table, what in ((experiment.initial, "initial value"), (experiment.values, "value")):
        for name, expression in table.items():
            exact, (low, high) = constant(expression), model.bounds.get(name, (float("-inf"), float("inf")))
            if exact is not None and not low <= exact <= high:
                raise DataError(
                    f"{experiment.name}: the known {what} {float(exact):g} of '{name}' lies outside its bounds "
                    f"[{low:g}, {high:g}]; change one of them"
                )


def _stranger(name: str, model: Model) -> str:
    """Why a column is refused."""
    if name in model.states:
        return f"'{name}' is a state, not an output; measure it as an output y = \"{name}\", or remove the column"
    hint = nearest(name, [*model.outputs, *model.inputs]) or f"; it has {', '.join(list(model.outputs)[:20])}"
    return f"the model has no output '{name}'{hint}"


# --- the model of an experiment ---


def in_pieces(model: Model, experiment: Experiment) -> Model:
    """The model of an experiment, with curves as expressions in t that switch at knots, for exact arithmetic."""
    recorded = {name: experiment.inputs[name] for name in model.curves if name in experiment.inputs}
    known = model.replace(inputs={**model.to_dict()["inputs"], **dict.fromkeys(recorded)}) if recorded else model
    return of_rates(resolved(_own(written_out(known), experiment)))


def _own(model: Model, experiment: Experiment) -> Model:
    """The model with the values, the initial states and the inputs of an experiment."""
    own = given_in(model, experiment)
    # At steady state from the start, nothing is asked of what was before.
    begun = any(one.time == experiment.start and not one.added for one in own.regimens)
    steady = experiment.steady or begun
    known_here = (experiment.inputs, experiment.initial, experiment.values, steady, model.steady, own.rates)
    if not any(known_here) and own.events == model.events and not model.expressions:
        return model
    numbers = {name: value for name in experiment.values if (value := constant(experiment.values[name])) is not None}
    others = {name: value for name, value in experiment.values.items() if name not in numbers}
    for event in own.events:
        if tied := [name for name in event.set if name in others]:
            raise ModelError(f"an event sets '{tied[0]}', which is {others[tied[0]]} here; keep one of them")
    start = {} if steady else {**model.initial, **experiment.initial}
    before = {} if begun else experiment.before
    tables = {
        "states": own.states,
        "outputs": {**model.outputs, **model.expressions},  # which are predicted as outputs are
        "initial": start,
        "before": before,
        "history": model.history,
    }
    equations: dict[str, Any] = {
        table: {name: substituted(value, others) for name, value in entries.items()}
        for table, entries in tables.items()
    }
    if steady:
        equations["initial"] = entries.STEADY
    inputs = {name: None if isinstance(value, Sampled) else value for name, value in experiment.inputs.items()}
    return rewritten(
        model,
        **equations,
        inputs={**model.inputs, **inputs},
        events=[event.substituted(others) for event in own.events],
        fixed={**model.fixed, **numbers, **own.rates},
        bounds=model.bounds,
        regimens=[one.substituted(others) for one in own.regimens],
    )


def felt(model: Model, output: str) -> set[str]:
    """The unknowns of a model that an output may depend on: initial states by the state's name, and parameters."""
    seen: set[str] = set()
    waiting = list(names(model.outputs[output]))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            for table in (model.states, model.initial, model.before):
                waiting += names(table[name]) if name in table else ()
    if seen & model.states.keys():
        # What happens to one state may reach all.
        seen |= {name for event in model.events for part in event.expressions() for name in names(part)}
    return seen & set(model.unknowns)
