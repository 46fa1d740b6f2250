"""Semantics: from the elements of an SBML document to a `Network`."""

from __future__ import annotations

import keyword
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from odejet.errors import ModelError, nearest
from odejet.io.sbml.algebraic import solve
from odejet.io.sbml.document import lib
from odejet.io.sbml.formulas import ONE, ZERO, Formula, negative, over, plus, times
from odejet.io.sbml.network import Happening, Network
from odejet.model.entries import MAX_ENTRIES
from odejet.model.expressions import MAX_NAME, RESERVED, Expression, Number, Symbol, fresh, number


def network(document: Any, where: str, title: str) -> Network:
    """What the model of a document says."""
    return _Reader(document.getModel(), where, title).read()


def plain_names(ids: Iterable[str]) -> dict[str, str]:
    """A name that the language accepts for every id: almost always the id itself."""
    taken: set[str] = set()
    found: dict[str, str] = {}
    for id_ in ids:
        reserved = id_ in RESERVED or keyword.iskeyword(id_) or id_ == "pi"
        found[id_] = fresh(f"{id_}_" if reserved else id_[: MAX_NAME - 20], taken)
    return found


def _has_math(element: Any) -> bool:
    return element is not None and element.isSetMath() and element.getMath() is not None


def _own_parameters(reaction: Any) -> Any:
    """The parameters of a reaction that nothing else sees."""
    law = reaction.getKineticLaw()
    if law is None:
        return ()
    return law.getListOfLocalParameters() if law.getLevel() > 2 else law.getListOfParameters()


class _Reader:
    """One model: what determines each of its ids, and the network as it grows."""

    def __init__(self, sbml: Any, where: str, title: str) -> None:
        self.sbml, self.where = sbml, where
        self.references = [
            reference
            for reaction in sbml.getListOfReactions()
            for reference in (*reaction.getListOfReactants(), *reaction.getListOfProducts())
        ]
        rules = [rule for rule in sbml.getListOfRules() if _has_math(rule)]
        self.assignments = {rule.getVariable(): rule.getMath() for rule in rules if rule.isAssignment()}
        self.rates = {rule.getVariable(): rule.getMath() for rule in rules if rule.isRate()}
        self.constraints = [rule.getMath() for rule in rules if rule.isAlgebraic()]
        self.starts = {a.getSymbol(): a.getMath() for a in sbml.getListOfInitialAssignments() if _has_math(a)}
        self.eventful = {
            assignment.getVariable()
            for event in sbml.getListOfEvents()
            for assignment in event.getListOfEventAssignments()
            if _has_math(assignment)
        }
        self.reacting = {
            reference.getSpecies()
            for reference in self.references
            if not (self.species(reference).getBoundaryCondition() or self.species(reference).getConstant())
        }
        self.functions = {function.getId(): function for function in sbml.getListOfFunctionDefinitions()}
        self.local = self.local_parameters()
        self.check_ids()
        self.network = Network(where, title, plain_names(self.ids()))
        self.implicit = self.undetermined() if self.constraints else set()

    def check_ids(self) -> None:
        """Refuse at once what would be refused after long work, and ids with two meanings."""
        count = len({*self.rates, *self.reacting, *self.eventful})
        if count > MAX_ENTRIES:
            raise ModelError(f"{self.where}: the model has {count} states, and {MAX_ENTRIES} is the limit")
        id_, times_ = next(iter(Counter(self.ids()).most_common(1)), ("", 0))
        if times_ > 1:
            raise ModelError(f"{self.where}: the id '{id_}' is given twice; rename one of them")

    def ids(self) -> Iterator[str]:
        yield from self.named_ids()
        for promoted in self.local.values():
            yield from promoted.values()

    def named_ids(self) -> Iterator[str]:
        """The ids that the document gives to what has a value."""
        sbml = self.sbml
        for elements in (
            sbml.getListOfSpecies(),
            sbml.getListOfCompartments(),
            sbml.getListOfParameters(),
            sbml.getListOfReactions(),
            [reference for reference in self.references if reference.isSetId()],
        ):
            for element in elements:
                yield element.getId()

    def local_parameters(self) -> dict[str, dict[str, str]]:
        """An id for every parameter of a single reaction, by reaction and its own id."""
        found: dict[str, dict[str, str]] = {}
        taken: set[str] = set()
        for reaction in self.sbml.getListOfReactions():
            own = [parameter.getId() for parameter in _own_parameters(reaction)]
            if own:
                taken = taken or set(self.named_ids())
                found[reaction.getId()] = {id_: fresh(f"{reaction.getId()}_{id_}", taken) for id_ in own}
        return found

    def species(self, reference: Any) -> Any:
        found = self.sbml.getSpecies(reference.getSpecies())
        if found is None:
            raise ModelError(
                f"{self.where}: a reaction names the species '{reference.getSpecies()}', which is not there"
            )
        return found

    def read(self) -> Network:
        for compartment in self.sbml.getListOfCompartments():
            self.quantity(compartment, compartment.getSize() if compartment.isSetSize() else math.nan)
        for parameter in self.sbml.getListOfParameters():
            self.quantity(parameter, parameter.getValue() if parameter.isSetValue() else math.nan)
        for reference in self.references:
            if reference.isSetId():
                self.quantity(reference, reference.getStoichiometry() if reference.isSetStoichiometry() else math.nan)
        for reaction in self.sbml.getListOfReactions():
            for parameter in _own_parameters(reaction):
                self.own_parameter(reaction, parameter)
            self.network.meanings[self.name(reaction.getId())] = self.law(reaction)
        changes = self.changes()
        for species in self.sbml.getListOfSpecies():
            self.substance(species, changes.get(species.getId(), ZERO))
        for event in self.sbml.getListOfEvents():
            if _has_math(event.getTrigger()):
                self.network.happenings.append(self.happening(event))
        if self.constraints:
            rules = [self.formula(node, f"algebraic rule {i + 1}") for i, node in enumerate(self.constraints)]
            solve(self.network, rules, {self.name(id_) for id_ in self.implicit})
        return self.network

    # --- formulas

    def name(self, id_: str) -> str:
        return self.network.name_of[id_]

    def symbol(self, id_: str, where: str) -> Expression:
        if id_ not in self.network.name_of:
            raise ModelError(f"{where}: there is no '{id_}'{nearest(id_, self.network.name_of)}")
        return Symbol(self.name(id_))

    def reader(self, whose: str, reaction: str = "") -> Formula:
        """A reader of formulas, where a reaction is named with its own parameters."""
        local = self.local.get(reaction, {})

        def named(id_: str, where: str) -> Expression:
            return self.symbol(local.get(id_, id_), where)

        return Formula(f"{self.where}: {whose}", named, self.functions)

    def formula(self, node: Any, whose: str, reaction: str = "") -> Expression:
        return self.reader(whose, reaction).expression(node)

    def value(self, value: float, whose: str) -> Expression:
        if not math.isfinite(value):
            raise ModelError(f"{self.where}: {whose} is {'infinite' if math.isinf(value) else 'not a number'}")
        return number(value)

    # --- quantities: compartments, parameters, stoichiometries

    def quantity(self, element: Any, value: float) -> None:
        """What is one number: constant, or moved by a rule or by events."""
        id_, found = element.getId(), self.network
        name, whose = self.name(id_), f"{element.getElementName()} '{id_}'"
        if id_ in self.assignments:
            found.meanings[name] = self.formula(self.assignments[id_], f"the rule of {whose}")
            found.rules.append(name)
            return
        start = self.formula(self.starts[id_], f"the initial value of {whose}") if id_ in self.starts else None
        if start is None and math.isinf(value):
            start = self.value(value, f"the value of {whose}")
        if id_ in self.rates or id_ in self.eventful:
            rate = self.formula(self.rates[id_], f"the rule of {whose}") if id_ in self.rates else ZERO
            self.state(name, rate, number(value) if start is None and not math.isnan(value) else start)
        elif start is not None:
            found.assigned[name] = start
        else:
            found.parameters[name] = None if math.isnan(value) else Fraction(repr(value))

    def own_parameter(self, reaction: Any, parameter: Any) -> None:
        """A parameter of a single reaction."""
        name = self.name(self.local[reaction.getId()][parameter.getId()])
        value = parameter.getValue() if parameter.isSetValue() else math.nan
        if math.isinf(value):
            self.value(value, f"the value of parameter '{parameter.getId()}' of reaction '{reaction.getId()}'")
        self.network.parameters[name] = None if math.isnan(value) else Fraction(repr(value))

    def state(self, name: str, rate: Expression, start: Expression | None) -> None:
        self.network.states[name] = rate
        if start is not None:
            self.network.initial[name] = start

    def varies(self, compartment: str) -> bool:
        return any(compartment in some for some in (self.assignments, self.rates, self.eventful, self.implicit))

    # --- reactions

    def law(self, reaction: Any) -> Expression:
        """The rate of a reaction, in substance per time; one that says nothing does not happen."""
        law, id_ = reaction.getKineticLaw(), reaction.getId()
        return self.formula(law.getMath(), f"the rate of reaction '{id_}'", id_) if _has_math(law) else ZERO

    def changes(self) -> dict[str, Expression]:
        """The change of the amount of each species by all reactions."""
        terms: dict[str, list[Expression]] = {}
        for reaction in self.sbml.getListOfReactions():
            rate = self.network.meanings[self.name(reaction.getId())]
            for consumed, references in ((True, reaction.getListOfReactants()), (False, reaction.getListOfProducts())):
                for reference in references:
                    if reference.getSpecies() in self.reacting:
                        term = times(self.stoichiometry(reaction, reference), rate)
                        terms.setdefault(reference.getSpecies(), []).append(negative(term) if consumed else term)
        return {id_: times(self.conversion(self.sbml.getSpecies(id_)), plus(*found)) for id_, found in terms.items()}

    def stoichiometry(self, reaction: Any, reference: Any) -> Expression:
        moved = (self.assignments, self.rates, self.eventful, self.starts, self.implicit)
        if reference.isSetId() and any(reference.getId() in some for some in moved):
            return Symbol(self.name(reference.getId()))
        whose = f"the stoichiometry of '{reference.getSpecies()}' in reaction '{reaction.getId()}'"
        if reference.getLevel() > 2 and not reference.isSetStoichiometry():
            return ONE  # level 3 has no default: writers that leave it out mean that of level 2
        return self.value(reference.getStoichiometry(), whose)

    def conversion(self, species: Any) -> Expression:
        owner = species if species.isSetConversionFactor() else self.sbml
        return Symbol(self.name(owner.getConversionFactor())) if owner.isSetConversionFactor() else ONE

    # --- species

    def substance(self, species: Any, change: Expression) -> None:
        """A species: which of its amount and its concentration moves, and what the other one is."""
        id_, found = species.getId(), self.network
        name, whose = self.name(id_), f"species '{id_}'"
        size = species.getCompartment()
        compartment = self.sbml.getCompartment(size)
        if compartment is None:
            raise ModelError(f"{self.where}: {whose} is in no compartment")
        # A compartment without dimensions may have a size from Level 3 on, and is then like any other.
        flat = compartment.isSetSpatialDimensions() and compartment.getSpatialDimensionsAsDouble() == 0
        flat = flat and not compartment.isSetSize() and not self.varies(size) and size not in self.starts
        space = ONE if flat else Symbol(self.name(compartment.getId()))
        counted = species.getHasOnlySubstanceUnits() or flat  # in formulas it is an amount
        found.amounts[name] = Symbol(name) if counted else times(Symbol(name), space)
        found.concentrations[name] = over(Symbol(name), space) if counted else Symbol(name)
        if id_ in self.assignments:
            found.meanings[name] = self.formula(self.assignments[id_], f"the rule of {whose}")
            found.rules.append(name)
            return
        start = self.initial(species, counted, space)
        if id_ in self.implicit:
            found.parameters[name] = start.value if isinstance(start, Number) else None
            return
        by_amount = not counted and self.varies(size) and (id_ not in self.rates or size in self.eventful)
        if by_amount:
            self.by_amount(species, change, start)
        elif id_ in self.rates:
            self.state(name, self.formula(self.rates[id_], f"the rule of {whose}"), start)
        elif id_ in self.reacting:
            self.state(name, change if counted else over(change, space), start)
        elif id_ in self.eventful:
            self.state(name, ZERO, start)
        elif start is not None and (id_ in self.starts or not isinstance(start, Number)):
            found.assigned[name] = start
        else:
            found.parameters[name] = None if start is None else start.value

    def by_amount(self, species: Any, change: Expression, start: Expression | None) -> None:
        """A species whose compartment changes: its amount is a state of its own."""
        id_, found = species.getId(), self.network
        name, space = self.name(id_), self.name(species.getCompartment())
        amount = fresh(f"{name}_amount", set(found.name_of.values()))
        found.name_of[f"amount of {id_}"] = amount
        found.within[name] = amount, space
        found.meanings[name] = over(Symbol(amount), Symbol(space))
        found.amounts[name] = Symbol(amount)
        if id_ in self.rates:
            rule = self.formula(self.rates[id_], f"the rule of species '{id_}'")
            grown = over(times(Symbol(amount), found.rate(space)), Symbol(space))
            change = plus(times(rule, Symbol(space)), grown)
        self.state(amount, change, None if start is None else times(start, Symbol(space)))

    def initial(self, species: Any, counted: bool, space: Expression) -> Expression | None:
        """What a species begins with, as formulas mean it."""
        id_ = species.getId()
        if id_ in self.starts:
            return self.formula(self.starts[id_], f"the initial value of species '{id_}'")
        if species.isSetInitialAmount() and not math.isnan(species.getInitialAmount()):
            amount = self.value(species.getInitialAmount(), f"the initial amount of species '{id_}'")
            return amount if counted else over(amount, space)
        if species.isSetInitialConcentration() and not math.isnan(species.getInitialConcentration()):
            level = self.value(species.getInitialConcentration(), f"the initial concentration of species '{id_}'")
            return times(level, space) if counted else level
        return None

    # --- events

    def happening(self, event: Any) -> Happening:
        trigger, id_ = event.getTrigger(), event.getId() or f"number {len(self.network.happenings) + 1}"
        reader = self.reader(f"event '{id_}'")
        assignments = {
            assignment.getVariable(): reader.expression(assignment.getMath())
            for assignment in event.getListOfEventAssignments()
            if _has_math(assignment)
        }
        delay, priority = (
            reader.expression(part.getMath()) if _has_math(part) else None
            for part in (event.getDelay(), event.getPriority())
        )
        told, sizes = self.sizes(assignments)
        return Happening(
            id_,
            reader.condition(trigger.getMath()),
            told,
            sizes,
            delay,
            priority,
            initial_value=trigger.getInitialValue() if trigger.isSetInitialValue() else True,
            persistent=trigger.getPersistent() if trigger.isSetPersistent() else True,
            from_trigger=event.getUseValuesFromTriggerTime() if event.isSetUseValuesFromTriggerTime() else True,
        )

    def sizes(self, assignments: dict[str, Expression]) -> tuple[dict[str, Expression], dict[str, Expression]]:
        """What an event sets, as states; and by which size, as it is then, a concentration becomes the amount."""
        found: dict[str, Expression] = {}
        sizes: dict[str, Expression] = {}
        for id_, value in assignments.items():
            self.symbol(id_, self.where)
            name = self.name(id_)
            if name in self.network.within:
                name, space = self.network.within[name]
                sizes[name] = Symbol(space)
            found[name] = value
        return found, sizes

    # --- what algebraic rules determine

    def undetermined(self) -> set[str]:
        """Ids in algebraic rules, and in what these refer to, that may move and that nothing else determines."""
        seen: set[str] = set()
        laws = {reaction.getId(): reaction.getKineticLaw() for reaction in self.sbml.getListOfReactions()}
        laws = {id_: law.getMath() for id_, law in laws.items() if _has_math(law)}
        stack = list(self.constraints)
        while stack:
            node = stack.pop()
            stack += [node.getChild(i) for i in range(node.getNumChildren())]
            if node.getType() == lib().AST_NAME and node.getName() not in seen:
                seen.add(node.getName())
                further = self.assignments.get(node.getName()) or laws.get(node.getName())
                stack += [further] if further is not None else []
        taken = {*self.assignments, *self.rates, *self.eventful, *self.reacting, *laws}
        return {id_ for id_ in seen - taken if (element := self.element(id_)) is not None and not element.getConstant()}

    def element(self, id_: str) -> Any:
        found = self.sbml.getCompartment(id_) or self.sbml.getParameter(id_) or self.sbml.getSpecies(id_)
        return found or next((reference for reference in self.references if reference.getId() == id_), None)
