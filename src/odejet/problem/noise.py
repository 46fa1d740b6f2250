"""Noise: what is known of the errors of measurement before a fit.

Of most outputs it is enough to know a *level times shape*, which is the standard deviation of the measurement or of its
logarithm.  The shape is one for noise of constant size, the size of the measurement for relative noise, and the known
standard deviation where the data have one; the level is one number per output, known or to be estimated.

Any other noise is a law of `distributions` with a scale that is an expression in parameters and the output itself,
written as text: `normal(0.1 + b*y1)`, `student(s, 4)`, `poisson`.  Names that the model does not have are unknowns of
the problem, shared by all outputs that use them.  Errors that persist have a correlation beside the scale,
`ar1(s, rho)` (see `chains`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odejet.data import Series
from odejet.data.censored import Limits, written
from odejet.errors import DataError, ExpressionError, ModelError, clipped, nearest
from odejet.model import Model
from odejet.model.calls import Call, parse_call
from odejet.model.dual import differentiated
from odejet.model.expressions import TIME, Expression, Product, Symbol, names, number, substituted
from odejet.problem.chains import rho_bounds
from odejet.problem.distributions import (
    LAWS,
    Argument,
    Distribution,
    Form,
    Normal,
    is_of_squares,
)
from odejet.problem.distributions.interval import is_supported
from odejet.problem.laws import Density

RELATIVE_FLOOR = 1e-3
"""Of the largest value of a series: relative noise does not vanish where the signal crosses zero."""

TYPICAL = 0.1
"""Noise beside the size of what is measured, or on its logarithm, before anything is known."""

NORMAL = Normal()

Given = float | str | Call | Mapping[str, float | str | Call] | None
"""Noise as people write it, for all outputs or for each: 0.1, "2%", "relative" or "lognormal(s)", as text or as it is
read; None where it is to be estimated."""


@dataclass(frozen=True)
class Noise:
    """The noise of one output: a level, NaN where it is to be estimated, or a law with a scale."""

    kind: str  # "data", "constant", "relative" or "law"
    level: float = math.nan
    law: Distribution = NORMAL
    scale: Expression | None = None  # of a law that has one
    text: str = ""  # of a law, as it was written
    shapes_told: tuple[Expression, ...] = ()  # arguments that experiments or fixed values tell, such as trials
    correlation: Expression | None = None  # of errors one unit of time apart, where they persist

    def shapes(self, series: Series) -> np.ndarray:
        """The standard deviation of every measurement, or of its logarithm, where the level is one."""
        if self.kind == "data" and series.sds is not None:
            return np.broadcast_to(np.asarray(series.sds, dtype=float), series.values.shape)
        sizes = np.abs(series.values)
        if self.kind == "relative" and sizes.max() > 0:
            return np.maximum(sizes, RELATIVE_FLOOR * sizes.max())
        return np.ones(len(series.values))

    @property
    def estimated(self) -> tuple[Expression, ...]:
        """The arguments that may depend on unknowns: its scale and its correlation."""
        return tuple(part for part in (self.scale, self.correlation) if part is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """What its scale and its further arguments are made of."""
        parts = (*self.estimated, *self.shapes_told)
        return tuple(dict.fromkeys(name for part in parts for name in names(part)))

    @property
    def form(self) -> Form:
        """How its law is written."""
        return Form(*LAWS[self.text.partition("(")[0].strip()])

    def law_where(self, output: str, known: Mapping[str, Expression], model: Model) -> Distribution:
        """The law in an experiment with these known values, which tell the arguments that are no numbers."""
        if not self.shapes_told:
            return self.law
        where, fixed = f"the noise of '{output}'", {name: number(value) for name, value in model.fixed.items()}
        parts = (substituted(substituted(one, known), fixed) for one in self.shapes_told)
        return self.form.make(*(_shape(where, what, one) for what, one in zip(self.form.shapes, parts, strict=True)))

    def told(self, level: float) -> str | None:
        """The noise as text, with this level where it has one; None where it is an sd in the units of the output."""
        if self.kind == "law":
            return self.text
        return f"{self.text.partition('(')[0]}({level!r})" if self.law.logarithm else None

    def typical(self, series: Series) -> float:
        """About how large its scale is."""
        if self.law.positive:  # of logarithms, or a dispersion
            return TYPICAL
        return TYPICAL * float(np.abs(series.values).max(initial=0.0)) or 1.0


def noise_of(output: str, given: Given, series: Sequence[Series]) -> Noise:
    """The noise of an output that was measured in these series."""
    found = _noise_of(output, given, series)
    if all(one.limits is None for one in series):
        return found
    check_censored(output, found, series)
    return censored_noise(output, found, series)


def check_censored(output: str, noise: Noise, series: Sequence[Series]) -> None:
    """Refuse limits between which a law has no value, and laws that know no probabilities of intervals."""
    law, where = noise.law, f"the noise of '{output}'"
    name = noise.text.partition("(")[0].strip() or "normal"
    if noise.correlation is not None:
        raise DataError(
            f"{where} is {name}, whose errors persist, which is not known of censored values; leave these out or "
            f"choose {'lognormal' if law.logarithm else 'normal'}(s)"
        )
    if not is_supported(law):
        raise DataError(f"{where} is {name}, which has no probability of an interval for censored values")
    for one in series:
        if one.limits is None:
            continue
        hidden = one.limits.censored
        lower, upper = whole_limits(one.limits) if law.whole else (one.limits.lower, one.limits.upper)
        empty = hidden & ((upper < lower) | (law.positive & ~(upper >= 0 if law.whole else upper > 0)))
        empty |= hidden & (lower > law.largest)
        if empty.any():
            i = int(np.argmax(empty))
            limits = written(float(one.limits.lower[i]), float(one.limits.upper[i]))
            raise DataError(f"{where} is {name}, which has no value {limits} (t = {one.times[i]:g}); correct the limit")


def whole_limits(limits: Limits) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last count between limits: a single limit is no count itself, both ends of an interval are."""
    above, below = np.isinf(limits.upper), np.isinf(limits.lower)
    first = np.where(below, 0.0, np.where(above, np.floor(limits.lower) + 1, np.ceil(limits.lower)))
    last = np.where(above, np.inf, np.where(below, np.ceil(limits.upper) - 1, np.floor(limits.upper)))
    return first, last


def limits_in(law: Distribution, series: Series) -> Limits | None:
    """The limits of a series as its law has them: the first and the last count, where it is one of counts."""
    if series.limits is None or not law.whole:
        return series.limits
    return Limits(*(np.where(series.censored, one, series.values) for one in whole_limits(series.limits)))


def censored_noise(output: str, noise: Noise, series: Sequence[Series]) -> Noise:
    """The noise of an output of which some values are censored: a law, since squares know no limits.

    A level that is to be estimated becomes an unknown, sd_ and the name of the output; what is relative to a
    measurement is relative to its prediction.
    """
    if noise.kind == "law":
        return noise
    name = noise.text.partition("(")[0].strip() or "normal"
    level: Expression = Symbol(f"sd_{output}") if math.isnan(noise.level) else number(noise.level)
    if noise.kind == "data" and not math.isnan(noise.level):
        sds = np.unique(np.concatenate([one.sds for one in series if one.sds is not None]))
        if len(sds) > 1:
            raise DataError(
                f"'{output}' has censored values, so that its known sd must be one number; give it as noise"
            )
        level = number(float(sds[0]))
    if noise.kind == "relative":
        level = Product(((1, level), (1, Symbol(output))))
    return Noise("law", 1.0, noise.law, level, f"{name}({level})")


def _noise_of(output: str, given: Given, series: Sequence[Series]) -> Noise:
    told = given.get(output) if isinstance(given, Mapping) else given
    if told is None:
        with_sds = {one.sds is not None for one in series}
        if len(with_sds) > 1:
            raise DataError(f"only some of the measurements of '{output}' have a known sd; give it for all or for none")
        return Noise("data", 1.0 if with_sds == {True} else math.nan)
    if isinstance(told, Call):
        return _law(output, _read(output, told), str(told), series)
    if not isinstance(told, str):
        return Noise("constant", _positive(output, told, 1.0))
    text = told.strip()
    if text == "relative":
        return Noise("relative")
    if text.endswith("%"):
        return Noise("relative", _positive(output, text[:-1], 0.01))
    if text[:1].isalpha():
        return _law(output, _read(output, text), text, series)
    return Noise("constant", _positive(output, text, 1.0))


def check_names(given: Given, outputs: Sequence[str]) -> None:
    """Refuse noise of an output that the model does not have."""
    for name in given if isinstance(given, Mapping) else ():
        if isinstance(name, tuple):
            shown = " and ".join(map(str, name))
            raise ModelError(
                f"noise: errors that {shown} share are not known; give each output noise of its own, or measure their "
                "difference as a further output"
            )
        if name not in outputs:
            raise ModelError(f"noise: the model has no output '{name}'{nearest(str(name), outputs)}")


def merged(given: Given, model: Model) -> Given:
    """What is given, and beside it what the model's file tells."""
    if not model.noise or not (given is None or isinstance(given, Mapping)):
        return given
    return {**model.noise, **(given or {})}


def new_names(noises: Mapping[str, Noise], model: Model) -> tuple[str, ...]:
    """Names in scales that are unknowns of the problem and nothing to the model; what may not stand there is
    refused."""
    known, found = (*model.parameters, *model.fixed), dict[str, None]()
    for output, noise in noises.items():
        for name in noise.names:
            reason = _why_not(name, output, model)
            if reason:
                raise ModelError(
                    f"the noise of '{output}' depends on {reason}; it may depend on parameters and on '{output}' only"
                )
            if name not in known and name != output:
                found[name] = None
    return tuple(found)


def densities_of(
    noise: Noise,
    output: str,
    known: Mapping[str, Expression],
    places: Mapping[str, int],
    model: Model,
    censored: bool = False,
) -> Density | None:
    """The law of an output in an experiment with these known values; None where noise is a level times a shape."""
    if noise.kind != "law":
        return None
    scale = number(1) if noise.scale is None else substituted(noise.scale, known)
    correlation = None if noise.correlation is None else substituted(noise.correlation, known)
    used = list(dict.fromkeys(name for one in (scale, correlation) if one is not None for name in names(one)))
    own = {name: places[name] for name in used if name in places}
    numbers = {name: float(value) for name, value in model.fixed.items() if name in used}
    law = noise.law_where(output, known, model)
    found = Density(law, scale, output, own, numbers, censored, correlation)
    if correlation is not None and not any(name in own for name in names(correlation)):
        _check_correlation(f"the noise of '{output}'", found.memory(np.zeros(max(places.values(), default=0) + 1))[0])
    return found


def check_measured(output: str, text: str, law: Distribution, values: np.ndarray) -> None:
    """Refuse measurements that a law cannot produce."""
    if reason := law.refusal(values):
        name = text.partition("(")[0].strip()
        raise DataError(
            f"the noise of '{output}' is {name}, so its measurements {reason}; correct them or choose another law"
        )


def _why_not(name: str, output: str, model: Model) -> str:
    if name == TIME:
        return "the time"
    for table, kind in ((model.states, "the state"), (model.inputs, "the input"), (model.outputs, "the output")):
        if name in table and name != output:
            return f"{kind} '{name}'"
    return ""


# --- texts ---


def _read(output: str, told: str | Call) -> Call:
    try:
        return told.checked if isinstance(told, Call) else parse_call(told)
    except ExpressionError as error:
        raise error.at(f"the noise of '{output}'") from None
    except ModelError:
        raise _refused(output, told) from None


def _law(output: str, call: Call, text: str, series: Sequence[Series]) -> Noise:
    """The law that a call names, checked against what was measured."""
    where, (name, arguments) = f"the noise of '{output}'", call
    if name not in LAWS and arguments is None and not nearest(name, LAWS, cutoff=0.7):
        raise _refused(output, text)
    if name not in LAWS:
        raise ModelError(f"{where}: there is no law '{name}'{nearest(name, LAWS) or '; known are ' + ', '.join(LAWS)}")
    form, bare, given = Form(*LAWS[name]), arguments is None, list(arguments or ())
    if len(given) != form.arguments and not (bare and _can_be_bare(name)):
        raise ModelError(f"{where}: {clipped(text)} has not the arguments of {_form(name)}")
    if form.correlation is not None:
        return _persistent(output, name, form, given, series)
    scale = given.pop(form.scale) if form.scale is not None and given else None
    told = any(next(names(one), None) is not None for one in given)
    law = form.make(
        *(math.nan if told else _shape(where, what, one) for what, one in zip(form.shapes, given, strict=True))
    )
    if not told:
        for one in series:
            check_measured(output, text, law, one.observed.values)
    further = tuple(given) if told else ()
    if not law.has_scale:
        return Noise("law", 1.0, law, None, text, further)
    if bare or scale is None:
        return Noise("constant", math.nan, law, None, text)
    if next(names(scale), None) is not None:
        return Noise("law", 1.0, law, scale, text, further)
    value = _number(scale)
    if not (math.isfinite(value) and value > 0):
        raise ModelError(f"{where}: the scale of {clipped(text)} must be positive, not {value:g}")
    if is_of_squares(law):
        return Noise("constant", value, law, None, text)
    return Noise("law", 1.0, law, scale, text, further)


def _can_be_bare(name: str) -> bool:
    """Whether a law may stand without its scale, which is then one level to be estimated."""
    return name in ("normal", "lognormal", "log10normal") or Form(*LAWS[name]).correlation is not None


def _persistent(output: str, name: str, form: Form, given: list[Expression], series: Sequence[Series]) -> Noise:
    """The noise of an output whose errors persist; a scale and a correlation that are not given are unknowns."""
    where, law = f"the noise of '{output}'", form.make()
    scale, correlation = given or (Symbol(f"sd_{output}"), Symbol(f"rho_{output}"))
    text = f"{name}({scale}, {correlation})"
    for one in series:
        check_measured(output, text, law, one.observed.values)
    if output in (*names(scale), *names(correlation)):
        remedy = "" if law.logarithm else "; errors that grow with it are logar1(s, rho)"
        raise ModelError(f"{where}: the arguments of {clipped(text)} may not depend on '{output}' itself{remedy}")
    if next(names(scale), None) is None and not (math.isfinite(value := _number(scale)) and value > 0):
        raise ModelError(f"{where}: the scale of {clipped(text)} must be positive, not {value:g}")
    if next(names(correlation), None) is None:
        _check_correlation(where, _number(correlation))
    if isinstance(correlation, Symbol) and len(series) and rho_bounds([one.times for one in series]) is None:
        raise ModelError(
            f"{where}: errors between measurements so close together, or without any that follow each other, have no "
            f"correlation after one unit of time that is a number; write {name}(s, exp(-1/tau)) with the time tau in "
            "which they are forgotten, or choose another unit of time"
        )
    return Noise("law", 1.0, law, scale, text, correlation=correlation)


def _check_correlation(where: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ModelError(
            f"{where}: the correlation of errors one unit of time apart must be at least 0 and below 1, not {value:g}"
        )


def _form(name: str) -> str:
    form = Form(*LAWS[name])
    return form.written or (f"{name}(scale)" if form.arguments else f"{name}, which has none")


def _number(expression: Expression) -> float:
    return float(differentiated(expression, {}, {}, 0).value)


def _shape(where: str, argument: Argument, expression: Expression) -> float:
    """An argument of a law that is no scale, which must be known."""
    if next(names(expression), None) is not None:
        raise ModelError(
            f"{where}: {argument.what} must be a number, such as {argument.example}, not {expression}; it may be "
            "a name that fixed or the values of each experiment tell"
        )
    value = _number(expression)
    if not (math.isfinite(value) and value > 0):
        raise ModelError(f"{where}: {argument.what} must be positive, not {value:g}")
    if argument.whole and value != round(value):
        raise ModelError(f"{where}: {argument.what} must be a whole number, not {value:g}")
    return value


def _positive(name: str, value: Any, unit: float) -> float:
    try:
        level = float(value) * unit
    except (TypeError, ValueError):
        level = math.nan
    if isinstance(value, bool) or not (math.isfinite(level) and level > 0):
        raise _refused(name, value)
    return level


def _refused(name: str, value: Any) -> ModelError:
    return ModelError(
        f"the noise of '{name}' must be a positive number, a percentage, 'relative' or a law, such as 'lognormal(s)', "
        f"not {value!r}"
    )
