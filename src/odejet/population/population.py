"""Population: a model, subjects and the law by which their parameters differ.

The measurements y_i of subject i follow the model with parameters phi_i of its own,

    x_i = h(phi_i) ~ N(m_i(theta), Omega),       y_i | phi_i ~ the law of the noise,

where h is the scale of each random effect (see `effects`) and m_i the typical value for the subject's covariates.
Parameters without a random effect are the same function of the covariates for all.  What is looked for is theta:
typical values, coefficients of covariates, Omega and what the noise depends on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from odejet.attach import attached
from odejet.data import Data, Experiment
from odejet.data.doses import Dose
from odejet.errors import DataError, ExpressionError, ModelError, clipped, nearest
from odejet.model import Model
from odejet.model.cumulated import refuse_windows
from odejet.model.expressions import TIME, Sum, Symbol, constant, names
from odejet.model.grammar import parse
from odejet.objective.courses import flows
from odejet.population.covariates import Covariates, changing, expressions
from odejet.population.effects import EFFECTS, Effect
from odejet.population.layout import Layout
from odejet.population.occasions import Occasions
from odejet.population.subject import Subject, subjects_of
from odejet.problem.conditions import conditions, fixed_values, in_words_of
from odejet.problem.given import names_given
from odejet.problem.noise import Given, Noise, check_names, merged, new_names, noise_of
from odejet.problem.priors import Prior, Priors, priors_together
from odejet.problem.priors import read as read_prior
from odejet.problem.problem import Problem

Array = np.ndarray


class Population:
    """What a population fit is about; an experiment of the data is a subject.

    `random` gives the parameters that differ between subjects and how: "lognormal", "normal" or "logitnormal".
    `correlated` are blocks of Omega, lists of such parameters; True is one block of all.  `covariates` give typical
    values as expressions in the typical value itself, in numbers known of each subject and in coefficients, which are
    names that are new: `{"V": "V*(wt/70)^beta"}`; a covariate that changes over time makes the parameter change.
    `occasions` is a column by which parameters with random effects differ between occasions too, or such a column with
    a list of them.  `noise` and `fixed` are as for `Problem`; noise relative to the prediction is "normal(b*y)".
    `priors` are of what is estimated, by name; `lag` gives lag times of doses by state: `{"gut": "Tlag"}`.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        random: Mapping[str, str],
        correlated: bool | Sequence[Sequence[str]] = (),
        covariates: Mapping[str, str] | None = None,
        occasions: str | Mapping[str, Sequence[str]] | None = None,
        noise: Given = None,
        fixed: Mapping[str, float | str] | None = None,
        priors: Priors = None,
        lag: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ModelError(f"expected a model as oj.Model has it, not {type(model).__name__}")
        if not isinstance(data, Data):
            raise DataError(f"expected data as oj.Data has them, not {type(data).__name__}")
        refuse_windows(model, "a population")
        self.given_model, self.given_data = model, data
        self.asked: dict[str, Any] = {
            "random": random,
            "correlated": correlated,
            "covariates": covariates,
            "occasions": occasions,
            "noise": noise,
            "fixed": fixed,
            "priors": priors,
            "lag": lag,
        }
        if model.curves:
            raise ModelError(
                f"the input '{next(iter(model.curves))}' is a curve that is to be found, which a population cannot "
                "have; fit the subjects with oj.fit, or give its course"
            )
        data = in_words_of(model, lagged(data, model, lag))
        if len(data.experiments) < 2:
            raise DataError(
                "there is one subject only, so that nothing can be said of how subjects differ; give at least two, or "
                "fit it with oj.fit(model, data)"
            )
        check_names(noise, list(model.outputs))
        self.noise, self.given_fixed = merged(noise, model), dict(fixed or {})
        doses = dict.fromkeys(name for one in data.experiments for name in names_given(one))
        new_in_doses = [n for n in doses if n not in (*model.states, *model.parameters, *model.fixed, *model.inputs)]
        given = expressions(covariates, [*model.parameters, *new_in_doses])
        self.model, self.covariates = changing(given, model, data.experiments)
        model = self.model
        self.noises = _noises(self.noise, model, data)
        new = new_names(self.noises, model)
        self.fixed = fixed_values(fixed, model, [*new, *new_in_doses])
        known = [name for name in (*model.parameters, *new_in_doses) if name not in self.fixed]
        self.random = _random(random, known, model, self.fixed)
        self.blocks = _blocks(correlated, tuple(self.random))
        self.occasions = Occasions.read(occasions, tuple(self.random))
        self.own_model = self.occasions.model(model)
        self.table = Covariates(data.experiments, model)
        # Of occasions, which only the subjects' own models know, the pooled fit knows nothing.
        self.data = Data.of(_own(one, model, new_in_doses) for one in data.experiments)
        subjects = [self.occasions.subject(one) for one in data.experiments]
        own = Data.of(_own(one, model, new_in_doses) for one, _ in subjects)
        self.conditions = conditions(self.own_model, own, self.fixed, new)
        self._check_states()
        self._check_known()
        coefficients = self._coefficients(new)
        self._columns = self._needed(coefficients)
        felt = {name for one in self.conditions for name in one.model.parameters} | {*self.occasions.parameters}
        self.layout = Layout.of(
            [name for name in known if name in felt],
            self.random,
            self.blocks,
            {name: _name_of_level(name, noise) for name, noise in self.noises.items()},
            coefficients,
            [name for name in new if name not in self.fixed],
            self.covariates,
            self._columns,
            len(self.conditions),
            model.bounds,
            self.occasions.parameters,
            max((count for _, count in subjects), default=0),
        )
        self._check_noise()
        self.priors = self._priors(priors)

    @classmethod
    @attached
    def from_toml(cls, path: str | os.PathLike[str], data: Data) -> Population:
        """The population of a TOML file: a model with a table [population]."""
        raise NotImplementedError

    def _priors(self, given: Priors) -> dict[int, Prior]:
        """Priors of what is estimated, by its position in the order of names."""
        found = {}
        for name, told in priors_together(given, {}).items():
            if name not in self.layout.names:
                raise ModelError(f"priors: '{name}' is not estimated{nearest(str(name), self.layout.names)}")
            found[self.layout.names.index(name)] = read_prior(str(name), told)
        return found

    # --- what is refused ---

    def _check_states(self) -> None:
        for one in self.conditions:
            if one.model.free_states:
                state = one.model.free_states[0]
                raise ModelError(
                    f"the initial value of '{state}' is not known; give it as a number or as a parameter, such as "
                    f"initial={{'{state}': '{state}0'}}"
                )

    def _check_known(self) -> None:
        for one in self.conditions:
            for name in self.random:
                if name in one.experiment.values:
                    raise ModelError(
                        f"{one.experiment.name}: '{name}' has a random effect, but the data give its value; leave the "
                        f"column out with data.without('{name}'), or the effect"
                    )

    def _coefficients(self, noise: Collection[str]) -> list[str]:
        """Names in covariate expressions that are neither parameters nor known of any subject."""
        found = dict[str, None]()
        for parameter, expression in self.covariates.items():
            for name in names(expression):
                if name in self.table or name in self.model.parameters:
                    continue
                if name in noise:
                    raise ModelError(f"covariates of '{parameter}': '{name}' belongs to the noise; choose another name")
                self.table.check_new(name, f"covariates of '{parameter}'")
                found[name] = None
        return list(found)

    def _needed(self, coefficients: Collection[str]) -> dict[str, Any]:
        """The numbers of all subjects that expressions need."""
        found = {}
        for parameter, expression in self.covariates.items():
            for name in names(expression):
                # A parameter of the model whose value the data give is known of each subject too.
                if (name not in self.model.parameters or name in self.table) and name not in coefficients:
                    found[name] = self.table.column(name, f"'{parameter}'")
        return found

    def _check_noise(self) -> None:
        for output, noise in self.noises.items():
            for name in noise.names:
                if name in self.layout.typical:
                    raise ModelError(
                        f"the noise of '{output}' depends on '{name}', a parameter of the model; give it one of its own"
                    )

    # --- what it answers ---

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names of the subjects."""
        return tuple(one.experiment.name for one in self.conditions)

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that is estimated, in the order of theta."""
        return self.layout.names

    @property
    def points(self) -> int:
        """The number of measurements."""
        return sum(one.experiment.points for one in self.conditions)

    @cached_property
    def members(self) -> tuple[Subject, ...]:
        """The subjects with their simulations and measurements."""
        return subjects_of(self.conditions, flows(self.conditions), self.noises, self.layout, self.own_model)

    @cached_property
    def pooled(self) -> Problem:
        """All subjects as if they did not differ, but for their covariates."""
        known: dict[str, dict[str, Any]] = {}
        for place, condition in enumerate(self.conditions):
            numbers = {name: column[place] for name, column in self._columns.items()}
            known[condition.experiment.name] = {
                name: self.layout.expression_for(name, numbers)
                for name in self.covariates
                if name in (*condition.model.parameters, *self.occasions.parameters)
            }
        bounds = dict(self.model.bounds)
        for name, effect in self.random.items():
            low, high = bounds.get(name, effect.limits)
            bounds[name] = max(low, effect.limits[0]), min(high, effect.limits[1])
        used = {name: pair for name, pair in bounds.items() if name in self.layout.typical}
        return Problem(
            self.model, self.data.knowing(known), bounds=used or None, noise=self.noise, fixed=self.given_fixed
        )

    def alone(self, subject: str | None = None) -> Problem:
        """Return the problem of one subject by itself, by default of the first with the most measurements."""
        if subject is not None and subject not in self.subjects:
            raise ModelError(f"there is no subject '{subject}'{nearest(subject, self.subjects)}")
        points = [one.experiment.points for one in self.conditions]
        place = points.index(max(points)) if subject is None else self.subjects.index(subject)
        return Problem(self.model, Data.of([self.data.experiments[place]]), noise=self.noise, fixed=self.given_fixed)

    def penalty(self, layout: Layout) -> Callable[[Array], tuple[float, Array]] | None:
        """Return the negative logarithm of the priors as a function of u, with its gradient; None without priors."""
        if not self.priors:
            return None

        def cost(u: Array) -> tuple[float, Array]:
            values = layout.natural(u)
            terms = {j: prior.at(float(values[j])) for j, prior in self.priors.items()}
            gradient = np.zeros(len(u))
            for k, row in enumerate(np.eye(len(u)) * 1e-6):
                slopes = (layout.natural(u + row) - layout.natural(u - row)) / 2e-6
                gradient[k] = sum(term.slope * slopes[j] for j, term in terms.items())
            return sum(term.cost for term in terms.values()), gradient

        return cost

    def without(self, name: str) -> Population:
        """Return the population in which a parameter has no random effect."""
        kept = {other: effect.name for other, effect in self.random.items() if other != name}
        blocks = [[other for other in block if other != name] for block in self.blocks]
        others = [other for other in self.occasions.parameters if other != name]
        gone = (f"omega_{name}", f"gamma_{name}", f"corr_{name}_")
        priors = {
            key: told
            for key, told in (self.asked["priors"] or {}).items()
            if not key.startswith(gone) and not (key.startswith("corr_") and key.endswith(f"_{name}"))
        }
        changed = {
            "random": kept,
            "correlated": [block for block in blocks if len(block) > 1],
            "occasions": {self.occasions.column: others} if others else None,
            "priors": priors,
        }
        return Population(self.given_model, self.given_data, **{**self.asked, **changed})

    def __repr__(self) -> str:
        effects = ", ".join(f"{name} {effect.name}" for name, effect in self.random.items())
        return (
            f"Population {self.model.name}: {len(self.subjects)} subjects, {self.points} measurements\n"
            f"  random effects: {effects}\n  estimated: {', '.join(self.names)}"
        )


def _noises(given: Given, model: Model, data: Data) -> dict[str, Noise]:
    """What is known of the noise of every output that was measured."""
    series = {name: [e.outputs[name] for e in data.experiments if name in e.outputs] for name in model.outputs}
    found = {name: noise_of(name, given, measured) for name, measured in series.items() if measured}
    if not found:
        raise DataError(f"none of the outputs {', '.join(list(model.outputs)[:20])} was measured in any subject")
    for name, noise in found.items():
        if noise.kind == "relative":
            raise ModelError(
                f"the noise of '{name}' in a population is relative to the prediction; write 'normal(b*{name})'"
            )
        if noise.correlation is not None:
            raise ModelError(
                f"the noise of '{name}' is {clipped(noise.text)}, and errors that persist are not known in a "
                f"population; write '{'lognormal' if noise.law.logarithm else 'normal'}(s)'"
            )
    return found


def _name_of_level(output: str, noise: Noise) -> str | None:
    """The name of a noise level that is to be estimated; None where there is none."""
    return f"sigma_{output}" if noise.kind != "law" and noise.level != noise.level else None


def _random(given: object, known: Sequence[str], model: Model, fixed: Mapping[str, Any]) -> dict[str, Effect]:
    if not isinstance(given, Mapping) or not given:
        raise ModelError("random must name at least one parameter, such as {'V': 'lognormal'}")
    found = {}
    for name, kind in given.items():
        if name in model.fixed or name in fixed:
            raise ModelError(f"random: '{name}' has a known value, so that it cannot differ between subjects")
        if name not in known:
            raise ModelError(f"random: the model has no parameter '{name}'{nearest(str(name), known)}")
        if kind not in EFFECTS:
            kinds = ", ".join(EFFECTS)
            hint = nearest(str(kind), EFFECTS) or f"; there are {kinds}"
            raise ModelError(f"random: the law of '{name}' is {kind!r}, which is not known{hint}")
        found[str(name)] = EFFECTS[str(kind)]
    return {name: found[name] for name in known if name in found}


def _blocks(given: Any, random: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Blocks of Omega; parameters in none have one of their own."""
    if given is True:
        return (random,)
    blocks: list[tuple[str, ...]] = []
    for block in given or ():
        if isinstance(block, str) or not isinstance(block, Sequence):
            raise ModelError("correlated must be a list of lists of parameters, such as [['V', 'Cl']], or True")
        for name in block:
            if name not in random:
                raise ModelError(f"correlated: '{name}' has no random effect{nearest(str(name), random)}")
            if any(name in other for other in blocks) or list(block).count(name) > 1:
                raise ModelError(f"correlated: '{name}' stands twice; a parameter belongs to one block")
        blocks.append(tuple(name for name in random if name in block))
    alone = [(name,) for name in random if not any(name in block for block in blocks)]
    return tuple(sorted([*blocks, *alone], key=lambda block: random.index(block[0])))


def lagged(data: Data, model: Model, lag: Mapping[str, str] | None) -> Data:
    """Return data in which doses to some states begin later, by parameters or expressions in them."""
    if not lag:
        return data
    if not isinstance(lag, Mapping):
        raise ModelError("lag must be a dictionary of states and lag times, such as {'gut': 'Tlag'}")
    states, delays = list(model.states), {}
    for state, told in lag.items():
        if state not in states:
            raise ModelError(f"lag: the model has no state '{state}'{nearest(str(state), states)}")
        try:
            delays[state] = parse(str(told), None, {TIME: "a lag time cannot depend on the time"})
        except ExpressionError as error:
            raise error.at(f"lag of '{state}'") from None

    def later(dose: Dose) -> Dose:
        place = int(dose.state) - 1 if dose.state.isdecimal() else -1
        state = states[place] if 0 <= place < len(states) else dose.state
        if state not in delays or dose.amount is None:
            return dose
        if dose.steady:
            raise DataError(f"{dose.where or 'doses'}: a dose at steady state cannot have a lag time; write doses out")
        return replace(dose, time=Sum(((1, dose.time), (1, delays[state]))))

    return Data.of(replace(one, doses=tuple(map(later, one.doses))) for one in data.experiments)


def _own(experiment: Experiment, model: Model, more: Sequence[str]) -> Experiment:
    """An experiment without what only covariates know."""
    known = (*model.parameters, *model.fixed, *model.states, *more)
    values = {
        name: value
        for name, value in experiment.values.items()
        if name in known and not (isinstance(value, Symbol) and constant(value) is None and value.name not in known)
    }
    outputs = {
        name: series
        for name, series in experiment.outputs.items()
        if name in (*model.outputs, *model.inputs, *model.parameters, *model.fixed)
    }
    if not any(name in model.outputs for name in outputs):
        raise DataError(f"{experiment.name}: none of the outputs {', '.join(list(model.outputs)[:20])} was measured")
    return replace(experiment, values=values, outputs=outputs)
