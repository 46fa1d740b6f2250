"""Small SBML documents, written here part by part."""

from __future__ import annotations

MATHML = "http://www.w3.org/1998/Math/MathML"
TIME = '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/time">t</csymbol>'
ONE_LITRE = '<compartment id="cell" spatialDimensions="3" size="1" constant="true"/>'


def document(
    compartments: str = ONE_LITRE,
    species: str = "",
    parameters: str = "",
    reactions: str = "",
    rules: str = "",
    starts: str = "",
    events: str = "",
    functions: str = "",
    attributes: str = "",
    version: int = 2,
) -> str:
    """A document of Level 3 with these elements."""
    lists = {
        "listOfFunctionDefinitions": functions,
        "listOfCompartments": compartments,
        "listOfSpecies": species,
        "listOfParameters": parameters,
        "listOfInitialAssignments": starts,
        "listOfRules": rules,
        "listOfReactions": reactions,
        "listOfEvents": events,
    }
    inner = "".join(f"<{name}>{told}</{name}>" for name, told in lists.items() if told)
    core = f"http://www.sbml.org/sbml/level3/version{version}/core"
    return f'<sbml xmlns="{core}" level="3" version="{version}"><model id="m" {attributes}>{inner}</model></sbml>'


def math(inner: str) -> str:
    return f'<math xmlns="{MATHML}">{inner}</math>'


def ci(name: str) -> str:
    return TIME if name == "t" else f"<ci>{name}</ci>"


def cn(value: float) -> str:
    return f"<cn>{value}</cn>"


def apply(operator: str, *arguments: str) -> str:
    return f"<apply><{operator}/>{''.join(arguments)}</apply>"


def parameter(name: str, value: float | None = None, constant: bool = True) -> str:
    number = "" if value is None else f'value="{value}"'
    return f'<parameter id="{name}" {number} constant="{str(constant).lower()}"/>'


def species(name: str, start: str, where: str = "cell", amounts: bool = False, boundary: bool = False, more="") -> str:
    """A species; `start` is such as initialAmount="2"."""
    told = f'hasOnlySubstanceUnits="{str(amounts).lower()}" boundaryCondition="{str(boundary).lower()}"'
    return f'<species id="{name}" compartment="{where}" {start} {told} constant="false" {more}/>'


def reaction(name: str, reactants: str, products: str, law: str, more: str = "") -> str:
    """A reaction; reactants and products are such as "S" or "2 S", separated by commas."""
    sides = []
    for kind, side in (("Reactants", reactants), ("Products", products)):
        references = ""
        for part in filter(None, (part.strip() for part in side.split(","))):
            many, _, id_ = part.rpartition(" ")
            references += f'<speciesReference species="{id_}" stoichiometry="{many or 1}" constant="true"/>'
        sides.append(f"<listOf{kind}>{references}</listOf{kind}>" if references else "")
    law = f"<kineticLaw>{math(law)}</kineticLaw>"
    return f'<reaction id="{name}" reversible="false" {more}>{"".join(sides)}{law}</reaction>'


def function(name: str, body: str) -> str:
    """A function of x."""
    inner = f"<lambda><bvar>{ci('x')}</bvar>{body}</lambda>"
    return f'<functionDefinition id="{name}">{math(inner)}</functionDefinition>'


def rate_rule(name: str, inner: str) -> str:
    return f'<rateRule variable="{name}">{math(inner)}</rateRule>'


def assignment_rule(name: str, inner: str) -> str:
    return f'<assignmentRule variable="{name}">{math(inner)}</assignmentRule>'


def start(name: str, inner: str) -> str:
    return f'<initialAssignment symbol="{name}">{math(inner)}</initialAssignment>'


def event(
    name: str,
    trigger: str,
    assignments: dict[str, str],
    delay: str = "",
    priority: str = "",
    persistent: bool = True,
    initial: bool = True,
    from_trigger: bool = True,
) -> str:
    truth = {True: "true", False: "false"}
    told = "".join(
        f'<eventAssignment variable="{key}">{math(inner)}</eventAssignment>' for key, inner in assignments.items()
    )
    return (
        f'<event id="{name}" useValuesFromTriggerTime="{truth[from_trigger]}">'
        f'<trigger initialValue="{truth[initial]}" persistent="{truth[persistent]}">{math(trigger)}</trigger>'
        + (f"<priority>{math(priority)}</priority>" if priority else "")
        + (f"<delay>{math(delay)}</delay>" if delay else "")
        + f"<listOfEventAssignments>{told}</listOfEventAssignments></event>"
    )
