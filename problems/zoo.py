"""Published models with published identifiability verdicts: the known answers that `identify` must reproduce.

Each entry holds a model in our notation, the verdicts that its source states, and the source.  Verdicts are of
parameters and, by the name of the state, of initial states; "global" means one value, "local" several, "none" a
continuum.  They hold for generic parameters, for generic initial states except those that `initial` gives, for one
experiment, and for generic inputs: the text of an input only stands for some smooth function.  A quantity that the
source does not speak of, and that its statements do not decide, is left out; `note` says what was concluded rather than
read.  `solutions` counts the values that all locally identifiable quantities together can take, over the complex
numbers.  `combinations` are identifiable ones that a person would write for what is lost; `functions` are further
expressions with their verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from odejet import Model


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One model, what is known of it, and who says so."""

    name: str
    model: Model
    verdicts: Mapping[str, str]
    solutions: int | None = None
    combinations: tuple[str, ...] = ()
    functions: Mapping[str, str] = field(default_factory=dict)
    source: str
    note: str = ""


def by_name(name: str) -> Entry:
    """The entry of that name."""
    return next(entry for entry in ENTRIES if entry.name == name)


def _verdicts(globally: str = "", locally: str = "", none: str = "") -> dict[str, str]:
    """Names, separated by spaces, by their verdict."""
    kinds = {"global": globally, "local": locally, "none": none}
    return {name: kind for kind, names in kinds.items() for name in names.split()}


def _all_global(model: Model) -> dict[str, str]:
    return dict.fromkeys(model.unknowns, "global")


_TESTS = (
    "StructuralIdentifiability.jl (Dong, Goodbrake, Harrington, Pogudin, SIAM J. Appl. Algebra Geom. 7, 2023), tests"
)
_ASSESS = f"{_TESTS}: identifiability and local_identifiability"
_FUNCTIONS = f"{_TESTS}: identifiable_functions"
_KNOWN = f"{_TESTS}: known_ic"
_RESULTS = "StructuralIdentifiability.jl, benchmarking/IdentifiableFunctions, published results with states"
_SIAN = "SIAN-Julia (Hong, Ovchinnikov, Pogudin, Yap, Bioinformatics 35, 2019), tests: test_id_with_weights"
_MESHKAT = (
    "Meshkat, Eisenberg, DiStefano, Math. Biosci. 222, 2009, 'An algorithm for finding globally identifiable ...'"
)


# --- linear compartments ----------------------------------------------------------------------------------------------

two_compartments_leak = Entry(
    name="two_compartments_leak",
    model=Model(
        states={"x0": "-(a01 + a21)*x0 + a12*x1", "x1": "a21*x0 - a12*x1"},
        outputs={"y": "x0"},
    ),
    verdicts=_verdicts("x0", none="x1 a01 a21 a12"),
    solutions=1,
    combinations=("a01*a12", "a01 + a12 + a21"),
    functions={"(a01 + a12 + a21)/(a01*a12)": "global", "a12*x1 - a21*x0 - a01*x0": "global"},
    source=f"{_ASSESS}; SIAN-Julia, tests: mtk_compat",
)

two_compartments_leak_input = Entry(
    name="two_compartments_leak_input",
    model=Model(
        states={"x0": "-(a01 + a21)*x0 + a12*x1 + u", "x1": "a21*x0 - a12*x1"},
        outputs={"y": "x0"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x0 x1 a01 a21 a12"),
    solutions=1,
    source="Cobelli, DiStefano, Am. J. Physiol. 239, 1980, R7-R24, two compartments, leak, input and output in 1",
    note="Not re-read; follows from y'' + (a01 + a12 + a21) y' + a01 a12 y = u' + a12 u.",
)

bellman_astrom_two = Entry(
    name="bellman_astrom_two",
    model=Model(
        states={"x1": "-(k1 + k2)*x1 + k3*x2 + u", "x2": "k2*x1 - (k3 + k4)*x2"},
        outputs={"y": "x1"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x1", none="x2 k1 k2 k3 k4"),
    solutions=1,
    combinations=("k1 + k2", "k3 + k4", "k2*k3"),
    functions={"k3*x2": "global"},
    source=f"Bellman, Astrom, Math. Biosci. 7, 1970, 'On structural identifiability', Example 2; {_FUNCTIONS}",
)

two_compartments_volume = Entry(
    name="two_compartments_volume",
    model=Model(
        states={"x1": "-(k01 + k21)*x1 + k12*x2 + u", "x2": "k21*x1 - (k02 + k12)*x2"},
        outputs={"y": "x1/v"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x1 v", none="x2 k01 k21 k12 k02"),
    solutions=1,
    combinations=("k01 + k21", "k02 + k12", "k12*k21"),
    functions={"k12*x2": "global"},
    source=f"{_MESHKAT}, Section 6; {_FUNCTIONS}",
)

cholesterol = Entry(
    name="cholesterol",
    model=Model(
        states={"x1": "k11*x1 + k12*x2 + u", "x2": "k21*x1 + k22*x2"},
        outputs={"y": "x1/V"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x1 k11 k22 V", none="x2 k12 k21"),
    solutions=1,
    combinations=("k12*k21",),
    functions={"k12*x2": "global"},
    source="Meshkat, Kuo, DiStefano, PLoS ONE 9, 2014, e110261 (COMBOS); StructuralIdentifiability.jl 0.5 announcement",
)

catenary_three = Entry(
    name="catenary_three",
    model=Model(
        states={
            "x1": "-a1*x1 + b1*x2 + u",
            "x2": "-(a2 + b1)*x2 + a1*x1 + b2*x3",
            "x3": "-b2*x3 + a2*x2",
        },
        outputs={"y": "x1"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("a1 a2 b1 b2 x1 x2 x3"),
    solutions=1,
    source=f"{_FUNCTIONS}, 3 compartments, observe x1 and control x1",
    note="The source states the parameters; the states follow, as the system is observable.",
)

bellman_astrom_three = Entry(
    name="bellman_astrom_three",
    model=Model(
        states={
            "x1": "-a1*x1 + b1*x2",
            "x2": "-(a2 + b1)*x2 + a1*x1 + b2*x3",
            "x3": "-b2*x3 + a2*x2 + u",
        },
        outputs={"y": "x1"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x1", none="x2 x3 a1 a2 b1 b2"),
    solutions=1,
    combinations=("b1*b2", "a1 + a2 + b1 + b2", "a1*a2 + a1*b2"),
    source=f"Bellman, Astrom, Math. Biosci. 7, 1970, 'On structural identifiability', Example 3; {_FUNCTIONS}",
)

bilirubin = Entry(
    name="bilirubin",
    model=Model(
        states={
            "x1": "-(k21 + k31 + k41 + k01)*x1 + k12*x2 + k13*x3 + k14*x4 + u",
            "x2": "k21*x1 - k12*x2",
            "x3": "k31*x1 - k13*x3",
            "x4": "k41*x1 - k14*x4",
        },
        outputs={"y1": "x1"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x1 k01", "x2 x3 x4 k12 k13 k14 k21 k31 k41"),
    solutions=6,
    functions={
        "k12 + k13 + k14": "global",
        "k12*k13 + k12*k14 + k13*k14": "global",
        "k12*k13*k14": "global",
        "k21 + k31 + k41": "global",
        "k21*k31 + k21*k41 + k31*k41": "global",
        "k21*k31*k41": "global",
        "k12*k31 + k12*k41 + k13*k21 + k13*k41 + k14*k21 + k14*k31": "global",
        "k12*k21": "local",
    },
    source=f"{_FUNCTIONS}, Bilirubin2_io",
    note="The peripheral compartments can be exchanged in 3! ways; the states follow from this.",
)

three_compartments_leak = Entry(
    name="three_compartments_leak",
    model=Model(
        states={
            "x1": "-(a01 + a21 + a31)*x1 + a12*x2 + a13*x3 + u1",
            "x2": "a21*x1 - (a12 + a32)*x2 + a23*x3 + u2",
            "x3": "a31*x1 + a32*x2 - (a13 + a23)*x3",
        },
        outputs={"y": "x3"},
        inputs={"u1": "exp(-t)", "u2": "sin(t)"},
    ),
    verdicts=_verdicts("x1 x2 x3 a01 a21 a31 a12 a32 a13 a23"),
    solutions=1,
    source=f"{_TESTS}: linear_compartment, complete graph, leak in 1, inputs in 1 and 2, output in 3",
    note="The source states the parameters; the states follow.",
)

three_compartments_closed = Entry(
    name="three_compartments_closed",
    model=Model(
        states={
            "x1": "-(a21 + a31)*x1 + a12*x2 + a13*x3 + u1",
            "x2": "a21*x1 - (a12 + a32)*x2 + a23*x3 + u2",
            "x3": "a31*x1 + a32*x2 - (a13 + a23)*x3",
        },
        outputs={"y": "x3"},
        inputs={"u1": "exp(-t)", "u2": "sin(t)"},
    ),
    verdicts=_verdicts("x3 a31 a32", none="a21 a12 a13 a23"),
    solutions=1,
    source=f"{_TESTS}: linear_compartment, complete graph, no leak, inputs in 1 and 2, output in 3",
)

three_compartments_mixed = Entry(
    name="three_compartments_mixed",
    model=Model(
        states={
            "x1": "-a21*x1 + a12*x2 + a13*x3",
            "x2": "a21*x1 - (a12 + a32)*x2 + a23*x3 + u",
            "x3": "a32*x2 - (a13 + a23)*x3",
        },
        outputs={"y": "x1"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x1 a12", "a21", "a32 a13 a23"),
    solutions=2,
    source=f"{_TESTS}: linear_compartment, edges 1-2 both ways, 2-3 both ways and 3 to 1, input in 2, output in 1",
)

meshkat_four_compartments = Entry(
    name="meshkat_four_compartments",
    model=Model(
        states={
            "x1": "-a31*x1 + a13*x3 + u",
            "x2": "-a42*x2 + a24*x4",
            "x3": "a31*x1 - (a03 + a13 + a43)*x3",
            "x4": "a42*x2 + a43*x3 - (a04 + a24)*x4",
        },
        outputs={"y1": "x1", "y2": "x2"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x1 x2 x3 a31 a13", none="x4 a03 a43 a24 a42 a04"),
    solutions=1,
    combinations=("a03 + a43", "a24*a43"),
    functions={"a04 + a24 + a42": "global", "a04*a42": "global", "x2*a42 - x4*a24": "global"},
    source=f"{_MESHKAT}, Example 3; {_FUNCTIONS}",
)

daisy_example_3 = Entry(
    name="daisy_example_3",
    model=Model(
        states={
            "x1": "-p1*x1 + x2 + u0",
            "x2": "p3*x1 - p4*x2 + x3",
            "x3": "p6*x1 - p7*x3",
            "u0": "1",
        },
        outputs={"y1": "x1", "y2": "u0"},
    ),
    verdicts=_verdicts("x1 x2 u0 p1 p3", "x3 p4 p6 p7"),
    solutions=2,
    source="DAISY (Bellu, Saccomani, Audoly, D'Angio, Comput. Methods Programs Biomed. 88, 2007), example ex3",
    note="Equations as in the SIAN examples; the verdicts were derived (p4 and p7 can be exchanged), not read.",
)

pharmacokinetics_1 = Entry(
    name="pharmacokinetics_1",
    model=Model(
        states={
            "x1": "u1 - (k1 + k2)*x1",
            "x2": "k1*x1 - (k3 + k6 + k7)*x2 + k5*x4",
            "x3": "k2*x1 + k3*x2 - k4*x3",
            "x4": "k6*x2 - k5*x4",
        },
        outputs={"y1": "s2*x2", "y2": "s3*x3"},
        inputs={"u1": "exp(-t)"},
    ),
    verdicts=_verdicts("x1 k4 k5 k6", none="x2 x3 x4 k1 k2 k3 k7 s2 s3"),
    solutions=1,
    combinations=("k1 + k2", "k3 + k7", "k1*s2", "k2*s3"),
    functions={"s2*x2": "global", "s3*x3": "global", "s2*x4": "global", "k3*s3*x4": "global"},
    source=f"{_RESULTS}, PK1",
)

bruno_carotenoids = Entry(
    name="bruno_carotenoids",
    model=Model(
        states={
            "beta": "-kbeta*beta",
            "cry": "-cry*kcrybeta - cry*kcryOH",
            "zea": "-zea*kzea",
            "beta10": "cry*kcryOH - beta10*kbeta10 + kbeta*beta",
            "OHbeta10": "cry*kcrybeta + zea*kzea - OHbeta10*kOHbeta10",
            "betaio": "cry*kcrybeta + beta10*kbeta10 + kbeta*beta",
            "OHbetaio": "cry*kcryOH + zea*kzea + OHbeta10*kOHbeta10",
        },
        outputs={"y1": "beta", "y2": "beta10"},
    ),
    verdicts=_verdicts(
        "beta beta10 kbeta kbeta10",
        none="cry zea OHbeta10 betaio OHbetaio kcrybeta kcryOH kzea kOHbeta10",
    ),
    solutions=1,
    combinations=("cry*kcryOH", "kcrybeta + kcryOH"),
    source=f"Bruno et al., J. Exp. Bot. 67, 2016; {_FUNCTIONS}, Bruno2016",
)

slow_fast = Entry(
    name="slow_fast",
    model=Model(
        states={
            "xA": "-k1*xA",
            "xB": "k1*xA - k2*xB",
            "xC": "k2*xB",
            "eA": "0",
            "eC": "0",
        },
        outputs={"y1": "xC", "y2": "eA*xA + eB*xB + eC*xC", "y3": "eA", "y4": "eC"},
    ),
    verdicts=_verdicts("xC eA eC", "xA xB k1 k2 eB"),
    solutions=2,
    functions={"k1*k2": "global", "k1 + k2": "global"},
    source=f"Vajda, Rabitz, J. Phys. Chem. 92, 1988 (slow-fast ambiguity); {_SIAN}",
)


bateman = Entry(
    name="bateman",
    model=Model(
        states={"A": "-ka*A", "C": "ka*A/V - ke*C"},
        outputs={"y": "C"},
        initial={"A": 1, "C": 0},
    ),
    verdicts=_verdicts(locally="ka ke V"),
    solutions=2,
    functions={"ka + ke": "global", "ka*ke": "global", "ka/V": "global"},
    source="Bateman, Proc. Camb. Philos. Soc. 15, 1910; flip-flop: Yanez et al., Ther. Deliv. 2, 2011",
    note="Derived: (ka, ke, V) and (ke, ka, V ke/ka) give the same concentration after a known dose.",
)


# --- enzymes, predators, growth ---------------------------------------------------------------------------------------

michaelis_menten = Entry(
    name="michaelis_menten",
    model=Model(
        states={"x": "-Vm*x/(km + x) + k01*x"},
        outputs={"y": "c*x"},
    ),
    verdicts=_verdicts("k01", none="x Vm km c"),
    solutions=1,
    combinations=("c*km", "Vm*c"),
    functions={"Vm/km": "global", "c*x": "global"},
    source=f"Ljung, Glad, Automatica 30, 1994, 'On global identifiability ...', Example 4; {_FUNCTIONS}",
)

michaelis_menten_dose = Entry(
    name="michaelis_menten_dose",
    model=Model(
        states={"x": "-Vm*x/(km + x) + k01*x + u"},
        outputs={"y": "c*x"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x Vm km c k01"),
    solutions=1,
    source="Ljung, Glad, Automatica 30, 1994, Example 4, with a known dose",
    note="Derived: the known input fixes the scale of x that the model without it leaves free.",
)

meshkat_two_compartments_mm = Entry(
    name="meshkat_two_compartments_mm",
    model=Model(
        states={
            "x1": "-(k21 + VM/(KM + x1))*x1 + k12*x2 + b1*u",
            "x2": "k21*x1 - (k02 + k12)*x2",
        },
        outputs={"y": "c*x1"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("k21 k12 k02", none="x1 x2 VM KM b1 c"),
    solutions=1,
    combinations=("b1*c", "VM*c", "KM*c"),
    functions={"c*x1": "global", "c*x2": "global"},
    source=f"{_MESHKAT}, Example 1; {_FUNCTIONS}",
)

meshkat_saturable_split = Entry(
    name="meshkat_saturable_split",
    model=Model(
        states={
            "x1": "-(a1 + a2)*x1*Vm/(Km + x1) + k21*x2 + b1*u",
            "x2": "a2*x1*Vm/(Km + x1) - (k02 + k12)*x2",
        },
        outputs={"y": "c*x1"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts(none="x1 x2 a1 a2 Vm Km k21 k02 k12 b1 c"),
    combinations=("k02 + k12", "b1*c", "Km*c"),
    functions={"Vm*a1*c + Vm*a2*c": "global", "a2*k21/(a1 + a2)": "global", "c*k21*x2": "global"},
    source=f"Meshkat, Anderson, DiStefano, Math. Biosci. 233, 2011, Section 6; {_FUNCTIONS}",
)

lotka_volterra_prey = Entry(
    name="lotka_volterra_prey",
    model=Model(
        states={"x1": "a*x1 - b*x1*x2", "x2": "-c*x2 + d*x1*x2"},
        outputs={"y": "x1"},
    ),
    verdicts=_verdicts("x1 a c d", none="x2 b"),
    solutions=1,
    combinations=("b*x2",),
    source=_SIAN,
)

lotka_volterra_prey_known_predator = Entry(
    name="lotka_volterra_prey_known_predator",
    model=Model(
        states={"x1": "a*x1 - b*x1*x2", "x2": "-c*x2 + d*x1*x2"},
        outputs={"y": "x1"},
        initial={"x2": 0.5},
    ),
    verdicts=_verdicts("x1 a b c d"),
    solutions=1,
    source=_KNOWN,
    note="The known initial predator makes b identifiable; the source takes it as known and generic.",
)

lotka_volterra_stocked = Entry(
    name="lotka_volterra_stocked",
    model=Model(
        states={"x1": "a*x1 - b*x1*x2 + u", "x2": "-c*x2 + d*x1*x2"},
        outputs={"y": "x1"},
        inputs={"u": "sin(t)"},
    ),
    verdicts=_verdicts("x1 a c d", none="x2 b"),
    solutions=1,
    combinations=("b*x2",),
    source=f"StructuralIdentifiability.jl documentation, tutorial 'Identifiability of Differential Models'; {_ASSESS}",
)

lotka_volterra_scaled_prey = Entry(
    name="lotka_volterra_scaled_prey",
    model=Model(
        states={"x1": "a*x1 - b*x1*x2", "x2": "-c*x2 + d*x1*x2"},
        outputs={"y": "k*x1"},
    ),
    verdicts=_verdicts("a c", none="x1 x2 b d k"),
    solutions=1,
    combinations=("b*x2", "k*x1", "d/k"),
    source=f"{_SIAN}, lotka_volterra_prey with an unknown scale of the output",
    note="Derived: both populations can be scaled.",
)

predator_prey_logistic = Entry(
    name="predator_prey_logistic",
    model=Model(
        states={"x1": "p1*x1 - p2*x1*x2", "x2": "p3*x2*(1 - p4*x2) + p5*x1*x2"},
        outputs={"y": "x1"},
    ),
    verdicts=_verdicts("x1 p1 p3 p5", none="x2 p2 p4"),
    solutions=1,
    combinations=("p2/p4", "p4*x2"),
    source=f"{_MESHKAT}, Example 5; {_FUNCTIONS}",
)

quadratic_pair = Entry(
    name="quadratic_pair",
    model=Model(
        states={"x1": "p1*x1**2 + p2*x1*x2", "x2": "p3*x1**2 + p4*x1*x2"},
        outputs={"y": "x1"},
    ),
    verdicts=_verdicts("x1", none="p1 p2 p3 p4 x2"),
    solutions=1,
    combinations=("p1 + p4", "p1*p4 - p2*p3"),
    source=f"Walter, Pronzato, Math. Comput. Simul. 42, 1996, Example 3; {_FUNCTIONS}",
)

square_of_growth = Entry(
    name="square_of_growth",
    model=Model(states={"x": "alpha*x**2"}, outputs={"y": "x**2"}),
    verdicts=_verdicts(locally="x alpha"),
    solutions=2,
    functions={"alpha**2": "global", "alpha*x": "global"},
    source=f"{_FUNCTIONS}, the model x' = alpha x^2, y = x^2",
)

two_term_fraction = Entry(
    name="two_term_fraction",
    model=Model(
        states={"x1": "-a*x1 + x2*b/(x1 + b/(c**2 - x2))", "x2": "x2*c**2 + x1"},
        outputs={"y": "x2"},
    ),
    verdicts=_verdicts("x1 x2 a b", "c"),
    solutions=2,
    functions={"c**2": "global"},
    source="SIAN-Julia and StructuralIdentifiability.jl, tests: mtk_compat",
    note="The source states a, b and c; x1 follows.",
)

ruminal_lipolysis = Entry(
    name="ruminal_lipolysis",
    model=(
        model := Model(
            states={
                "x1": "-x1*x5/(k2 + x1)",
                "x2": "2*x1*x5/(3*(k2 + x1)) - k4*x2",
                "x3": "k4*x2/2 - k4*x3",
                "x4": "x1*x5/(3*(k2 + x1)) + k4*x2/2 + k4*x3",
                "x5": "-k3*x5",
            },
            outputs={"y1": "x1", "y2": "x2 + x3", "y3": "x4"},
        )
    ),
    verdicts=_all_global(model),
    solutions=1,
    source=f"Moate et al., J. Dairy Sci. 91, 2008; {_RESULTS}, Ruminal lipolysis",
)

biohydrogenation_two_outputs = Entry(
    name="biohydrogenation_two_outputs",
    model=Model(
        states={
            "x4": "-k5*x4/(k6 + x4)",
            "x5": "k5*x4/(k6 + x4) - k7*x5/(k8 + x5 + x6)",
            "x6": "k7*x5/(k8 + x5 + x6) - k9*x6*(k10 - x6)/k10",
            "x7": "k9*x6*(k10 - x6)/k10",
        },
        outputs={"y1": "x4", "y2": "x5"},
    ),
    verdicts=_verdicts("x4 x5 k5 k6 k7", "x6 k8 k9 k10", "x7"),
    solutions=2,
    functions={"k9**2": "global", "k9*k10": "global", "k10 + 2*k8": "global"},
    source=f"{_FUNCTIONS}, Biohydrogenation_io; ModelingToolkit documentation, 'Parameter identifiability'",
)

oral_glucose = Entry(
    name="oral_glucose",
    model=Model(
        states={
            "G": "-(p1 + X)*G + p1*Gb + v*R",
            "X": "-p2*X + p3*(u - Ib)",
            "R": "k",
            "Ib": "0",
            "Gb": "0",
        },
        outputs={"y1": "G", "y2": "Ib", "y3": "Gb"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("G X Ib Gb p1 p2 p3", none="R v k"),
    solutions=1,
    combinations=("k*v", "R*v"),
    source="Dalla Man, Caumo, Cobelli, IEEE Trans. Biomed. Eng. 49, 2002; equations of the SIAN examples",
    note="The verdicts were derived (R and v can be scaled against each other), not read.",
)


# --- epidemics --------------------------------------------------------------------------------------------------------

sir_prevalence = Entry(
    name="sir_prevalence",
    model=Model(
        states={"S": "-b*I*S", "I": "b*I*S - g*I", "R": "g*I"},
        outputs={"y": "I"},
    ),
    verdicts=_verdicts("S I b g", none="R"),
    solutions=1,
    functions={"b/g": "global"},
    source="SIAN examples, SIR_R0 (b/g); Tuncer, Le, Math. Biosci. 299, 2018, SIR with prevalence",
    note="b and g were derived; the first source states b/g.",
)

sir_incidence = Entry(
    name="sir_incidence",
    model=Model(states={"S": "-b*I*S", "I": "b*I*S - g*I"}, outputs={"y": "b*S*I"}),
    verdicts=_verdicts("S I b g"),
    solutions=1,
    source="Tuncer, Le, Math. Biosci. 299, 2018, SIR with incidence",
    note="The verdicts were derived, not read.",
)

sir_births_unknown_population = Entry(
    name="sir_births_unknown_population",
    model=Model(
        states={"S": "mu*N - S*(mu + beta/N*I)", "I": "I*(beta/N*S - mu - nu)"},
        outputs={"y": "k*I"},
    ),
    verdicts=_verdicts("nu mu beta", none="S I N k"),
    solutions=1,
    combinations=("N*k", "S*k", "I*k"),
    source=f"{_MESHKAT}, Example 4; {_FUNCTIONS}",
)

seir_known_population = Entry(
    name="seir_known_population",
    model=Model(
        states={"S": "-b*S*In/N", "E": "b*S*In/N - nu*E", "In": "nu*E - a*In", "N": "0"},
        outputs={"y1": "In", "y2": "N"},
    ),
    verdicts=_verdicts("b In N", "nu a S E"),
    solutions=2,
    functions={"a + nu": "global", "a*nu": "global"},
    source=_SIAN,
)

seir_quarantine = Entry(
    name="seir_quarantine",
    model=Model(
        states={
            "S": "-beta*S*I",
            "E": "beta*S*I - v*E",
            "I": "v*E - psi*I - (1 - psi)*gamma*I",
            "R": "gamma*Q + (1 - psi)*gamma*I",
            "Q": "-gamma*Q + psi*I",
        },
        outputs={"y1": "Q"},
    ),
    verdicts=_verdicts("Q gamma", "beta psi v S E I", "R"),
    solutions=2,
    functions={"gamma*psi - psi*v": "global", "beta/psi": "global", "psi*v - psi - v": "global"},
    source=f"{_FUNCTIONS}, SEIR_1_io",
    note="beta, psi and v each follow from the stated functions up to a quadratic equation, and the states with them.",
)

seuir = Entry(
    name="seuir",
    model=Model(
        states={
            "S": "-b*(U + I)*S/N",
            "E": "b*(U + I)*S/N - g*E",
            "U": "(1 - a)*g*E - d*U",
            "I": "a*g*E - d*I",
        },
        outputs={"y": "I"},
    ),
    verdicts=_verdicts("I d g", none="S E U a b N"),
    solutions=1,
    combinations=("S*a", "E*a", "a*(U + I)", "N*a/b"),
    source=f"StructuralIdentifiability.jl documentation, tutorial 'Reparametrizations'; {_FUNCTIONS}, SEUIR",
)

sirt_treatment = Entry(
    name="sirt_treatment",
    model=Model(
        states={
            "S": "-b*S*In/N - d*b*S*Tr/N",
            "In": "b*S*In/N + d*b*S*Tr/N - (a + g)*In",
            "Tr": "g*In - nu*Tr",
            "N": "0",
        },
        outputs={"y1": "Tr", "y2": "N"},
    ),
    verdicts=_verdicts("Tr N", "nu", "S In a b d g"),
    solutions=2,
    functions={
        "S*g": "global",
        "b*S": "global",
        "nu + d*g": "global",
        "nu*Tr - In*g": "global",
        "nu*(a + g)": "global",
        "nu + a + g": "global",
        "a + g": "local",
        "b/g": "global",
    },
    source=f"{_RESULTS}, Treatment_io; equations of the SIAN examples, Treatment (SIRT)",
)

siwr = Entry(
    name="siwr",
    model=(
        model := Model(
            states={
                "S": "mu - bi*S*I - bw*S*W - mu*S + a*R",
                "I": "bw*S*W + bi*S*I - (gam + mu)*I",
                "W": "xi*(I - W)",
                "R": "gam*I - (mu + a)*R",
            },
            outputs={"y": "k*I"},
        )
    ),
    verdicts=_all_global(model),
    solutions=1,
    functions={"gam + mu": "global"},
    source=f"{_ASSESS}, SIWR (cholera; Lee et al., J. Theor. Biol. 420, 2017); {_RESULTS}, SIWR original",
)

siwr_population = Entry(
    name="siwr_population",
    model=siwr.model.replace(outputs={"y": "k*I", "y2": "S + I + R"}),
    verdicts=_all_global(siwr.model),
    solutions=1,
    source=f"{_RESULTS}, SIWR with extra output",
)

sirs_forced = Entry(
    name="sirs_forced",
    model=Model(
        states={
            "s": "mu - mu*s - b0*(1 + b1*x1)*i*s + g*r",
            "i": "b0*(1 + b1*x1)*i*s - (nu + mu)*i",
            "r": "nu*i - (mu + g)*r",
            "x1": "-M*x2",
            "x2": "M*x1",
        },
        outputs={"y1": "i", "y2": "r"},
    ),
    verdicts=_verdicts("s i r mu b0 g nu", "M", "b1 x1 x2"),
    solutions=2,
    combinations=("b1*x1",),
    functions={"M**2": "global"},
    source=f"Capistran, Moreles, Lara, Bull. Math. Biol. 71, 2009; {_FUNCTIONS}, SIRS forced",
    note="The source states the parameters; the states follow.",
)

seaijrc = Entry(
    name="seaijrc",
    model=Model(
        states={
            "S": "-b*S*(I + J + q*A)*Ninv",
            "E": "b*S*(I + J + q*A)*Ninv - k*E",
            "A": "k*(1 - r)*E - g1*A",
            "I": "k*r*E - (alpha + g1)*I",
            "J": "alpha*I - g2*J",
            "C": "alpha*I",
            "Ninv": "0",
        },
        outputs={"y": "C", "y2": "Ninv"},
    ),
    verdicts=_verdicts("C J I Ninv b k alpha g1 g2", none="S E A q r"),
    solutions=1,
    combinations=("E*r", "S*r", "A*q"),
    functions={"A/(E*r - E)": "global", "q*(1 - r)/r": "global"},
    source=f"Roosa, Chowell, Theor. Biol. Med. Model. 16, 2019, Model 2; {_RESULTS}, SEAIJRC Covid model",
)

sliqr = Entry(
    name="sliqr",
    model=Model(
        states={
            "S": "-b*In*S*Ninv - S*Ninv*u",
            "In": "-In*g + s*Q + a*L",
            "L": "b*In*S*Ninv - a*L",
            "Q": "-e*In*g + In*g - s*Q",
        },
        outputs={"y": "In*Ninv"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("b s Ninv In", "a g e S L Q"),
    solutions=3,
    functions={"a + g": "global", "a*e*g": "global", "a*g + e*g*s - g*s": "global"},
    source=f"{_FUNCTIONS}, SLIQR",
    note="a, g and e follow from the stated functions by a cubic equation; the states were derived.",
)


# --- infection within a host ------------------------------------------------------------------------------------------

hiv_immune_response = Entry(
    name="hiv_immune_response",
    model=Model(
        states={
            "x": "lm - d*x - beta*x*v",
            "y": "beta*x*v - a*y",
            "v": "k*y - u*v",
            "w": "c*x*y*w - c*q*y*w - b*w",
            "z": "c*q*y*w - h*z",
        },
        outputs={"y1": "w", "y2": "z"},
    ),
    verdicts=_verdicts("w z a u d h b", none="x y v lm beta k c q"),
    solutions=1,
    combinations=("beta*v", "beta*k*y", "beta*k*x", "beta*k*q", "beta*k*lm", "c*y**2"),
    source=f"Wodarz, Nowak, PNAS 96, 1999; {_RESULTS}, HIV; SciML documentation, 'Global identifiability'",
)

hiv_latent = Entry(
    name="hiv_latent",
    model=Model(
        states={
            "x1": "-b*x1*x4 - d*x1 + s",
            "x2": "b*q1*x1*x4 - k1*x2 - w1*x2",
            "x3": "b*q2*x1*x4 + k1*x2 - w2*x3",
            "x4": "-c*x4 + k2*x3",
        },
        outputs={"y1": "x1", "y2": "x4"},
    ),
    verdicts=_verdicts("x1 x4 s d b", "c w2", "x2 x3 q1 q2 k1 k2 w1"),
    solutions=6,
    combinations=("k2*q2",),
    functions={
        "k1 + w1": "local",
        "c + k1 + w1 + w2": "global",
        "c*w2*(k1 + w1)": "global",
        "c*x4 - k2*x3": "global",
        "(q1*k1 + w1*q2 + k1*q2)/q2": "global",
    },
    source=f"{_MESHKAT}, Example 6; {_RESULTS}, HIV2_io",
)

hiv_viral_load = Entry(
    name="hiv_viral_load",
    model=Model(
        states={
            "T": "lam - rho*T - beta*T*V",
            "Ts": "beta*T*V - delta*Ts",
            "V": "N*delta*Ts - c*V",
        },
        outputs={"y": "V"},
    ),
    verdicts=_verdicts("V rho beta", "c delta", "T Ts lam N"),
    solutions=2,
    combinations=("T/lam",),
    functions={
        "c + delta": "global",
        "c*delta": "global",
        "N*delta*lam": "global",
        "Ts*N*delta + V*delta": "global",
        "N*lam": "local",
    },
    source=f"Meshkat, Anderson, DiStefano, Math. Biosci. 233, 2011, Section 11; {_FUNCTIONS}",
)

cd8_t_cells = Entry(
    name="cd8_t_cells",
    model=Model(
        states={
            "N": "-N*mu_N - N*P*delta_NE",
            "E": "N*P*delta_NE - E**2*mu_EE - E*delta_EL + E*P*rho_E",
            "S": "S*delta_EL - S*delta_LM - S**2*mu_LL - E*S*mu_LE",
            "M": "S*delta_LM - mu_M*M",
            "P": "P**2*rho_P - P*mu_P - E*P*mu_PE - S*P*mu_PL",
        },
        outputs={"y1": "N", "y2": "E + S", "y3": "M"},
    ),
    verdicts=_verdicts(
        "N E S M mu_N mu_EE delta_EL delta_LM mu_LL mu_LE mu_M mu_P mu_PE mu_PL",
        none="P delta_NE rho_E rho_P",
    ),
    solutions=1,
    combinations=("P*delta_NE", "P*rho_E", "P*rho_P"),
    source=f"Crauste et al., Cell Systems 4, 2017; {_RESULTS}, CD8 T cell differentiation",
)


# --- signalling and chemistry -----------------------------------------------------------------------------------------

goodwin = Entry(
    name="goodwin",
    model=Model(
        states={
            "x1": "-b*x1 + 1/(c + x4)",
            "x2": "alpha*x1 - beta*x2",
            "x3": "gama*x2 - delta*x3",
            "x4": "sigma*x4*(gama*x2 - delta*x3)/x3",
        },
        outputs={"y": "x1"},
    ),
    verdicts=_verdicts("x1 x4 b c sigma", "beta delta", "x2 x3 alpha gama"),
    solutions=2,
    functions={"beta + delta": "global", "beta*delta": "global"},
    source=f"StructuralIdentifiability.jl documentation, tutorial 'Identifiability of Differential Models'; {_ASSESS}",
)

goodwin_known_intermediates = Entry(
    name="goodwin_known_intermediates",
    model=goodwin.model.replace(initial={"x2": 0.5, "x3": 0.3}),
    verdicts=_verdicts("x1 x4 b c sigma", "alpha gama beta delta"),
    solutions=2,
    functions={"alpha*gama": "global", "beta + delta": "global", "beta*delta": "global"},
    source=_KNOWN,
    note="The source takes x2(0) and x3(0) as known and generic; it states alpha and the functions.",
)

goodwin_three = Entry(
    name="goodwin_three",
    model=Model(
        states={"M": "pm/(1 + P) - dm*M", "E": "pe*M - de*E", "P": "pp*E - dp*P"},
        outputs={"y": "M"},
    ),
    verdicts=_verdicts("M P pm dm", "de dp", "E pe pp"),
    solutions=2,
    combinations=("pe*pp",),
    source="Catalyst.jl documentation, 'Structural identifiability analysis', Goodwin oscillator with M measured",
)

chemical_reaction_network = Entry(
    name="chemical_reaction_network",
    model=(
        model := Model(
            states={
                "x1": "-k1*x1*x2 + k2*x4 + k4*x6",
                "x2": "k1*x1*x2 + k2*x4 + k3*x4",
                "x3": "k3*x4 + k5*x6 - k6*x3*x5",
                "x4": "k1*x1*x2 - k2*x4 - k3*x4",
                "x5": "k4*x6 + k5*x6 - k6*x3*x5",
                "x6": "-k4*x6 - k5*x6 + k6*x3*x5",
            },
            outputs={"y1": "x3", "y2": "x2"},
        )
    ),
    verdicts=_all_global(model),
    solutions=1,
    source=f"Conradi, Shiu, Bull. Math. Biol. 77, 2015, as in the SIAN examples; {_RESULTS}, Chemical reaction network",
    note="The sign of k1*x1*x2 in x2' is that of the source.",
)

akt_pathway = Entry(
    name="akt_pathway",
    model=Model(
        states={
            "EGFR": "turnover*pro - EGFR*turnover + EGF_EGFR*k12 - EGF_EGFR*k11",
            "pEGFR": "EGF_EGFR*k91 - pEGFR*k41 + pEGFR_Akt*k22 + pEGFR_Akt*k31 - Akt*pEGFR*k21",
            "pEGFR_Akt": "Akt*pEGFR*k21 - pEGFR_Akt*k31 - pEGFR_Akt*k22",
            "Akt": "pAkt*k71 + pEGFR_Akt*k22 - Akt*pEGFR*k21",
            "pAkt": "pAkt_S6*k52 - pAkt*k71 + pAkt_S6*k61 + pEGFR_Akt*k31 - S6*pAkt*k51",
            "S6": "pAkt_S6*k52 + pS6*k81 - S6*pAkt*k51",
            "pAkt_S6": "S6*pAkt*k51 - pAkt_S6*k61 - pAkt_S6*k52",
            "pS6": "pAkt_S6*k61 - pS6*k81",
            "EGF_EGFR": "EGF_EGFR*k11 - EGF_EGFR*k91 - EGF_EGFR*k12",
        },
        outputs={"y1": "a1*(pEGFR + pEGFR_Akt)", "y2": "a2*(pAkt + pAkt_S6)", "y3": "a3*pS6"},
        inputs={"pro": "exp(-t)"},
    ),
    verdicts=_verdicts(
        "k22 k31 k41 k52 k61 k71 k81",
        none="EGFR pEGFR pEGFR_Akt Akt pAkt S6 pAkt_S6 pS6 EGF_EGFR turnover k11 k12 k91 k21 k51 a1 a2 a3",
    ),
    solutions=1,
    combinations=("a1/k51", "a2/k51", "a3/k51", "k21/k51", "k11 - k12 - k91"),
    functions={"pAkt*k51": "global", "S6*k51": "global", "pS6*k51": "global", "EGF_EGFR*k51*k91": "global"},
    source=f"Fujita et al., Sci. Signal. 3, 2010; {_FUNCTIONS}, Fujita (kij is reaction_i_kj)",
)

_MAPK = Model(
    states={
        "KS00": "-a00*K*S00 + b00*KS00 + g0100*FS01 + g1000*FS10 + g1100*FS11",
        "KS01": "-a01*K*S01 + b01*KS01 + c0001*KS00 - al01*F*S01 + be01*FS01 + g1101*FS11",
        "KS10": "-a10*K*S10 + b10*KS10 + c0010*KS00 - al10*F*S10 + be10*FS10 + g1110*FS11",
        "FS01": "-al11*F*S11 + be11*FS11 + c0111*KS01 + c1011*KS10 + c0011*KS00",
        "FS10": "a00*K*S00 - (b00 + c0001 + c0010 + c0011)*KS00",
        "FS11": "a01*K*S01 - (b01 + c0111)*KS01",
        "K": "a10*K*S10 - (b10 + c1011)*KS10",
        "F": "al01*F*S01 - (be01 + g0100)*FS01",
        "S00": "al10*F*S10 - (be10 + g1000)*FS10",
        "S01": "al11*F*S11 - (be11 + g1101 + g1110 + g1100)*FS11",
        "S10": "-a00*K*S00 + (b00 + c0001 + c0010 + c0011)*KS00 - a01*K*S01 + (b01 + c0111)*KS01"
        " - a10*K*S10 + (b10 + c1011)*KS10",
        "S11": "-al01*F*S01 + (be01 + g0100)*FS01 - al10*F*S10 + (be10 + g1000)*FS10 - al11*F*S11"
        " + (be11 + g1101 + g1110 + g1100)*FS11",
    },
    outputs={"y0": "K", "y1": "F", "y2": "S00", "y3": "S01", "y4": "S10", "y5": "S11"},
)
_MAPK_NOTE = "As in the source, whose right-hand sides are those of the network but assigned to other species."

mapk_six_outputs = Entry(
    name="mapk_six_outputs",
    model=_MAPK,
    verdicts=_all_global(_MAPK),
    solutions=1,
    source=f"Manrai, Gunawardena, Biophys. J. 95, 2008; {_RESULTS}, MAPK model (6 outputs)",
    note=_MAPK_NOTE,
)

mapk_five_outputs = Entry(
    name="mapk_five_outputs",
    model=_MAPK.replace(outputs={name: text for name, text in _MAPK.outputs.items() if name != "y0"}),
    verdicts=_all_global(_MAPK),
    solutions=1,
    source=f"Manrai, Gunawardena, Biophys. J. 95, 2008; {_RESULTS}, MAPK model (5 outputs), logs",
    note=_MAPK_NOTE,
)

nfkb = Entry(
    name="nfkb",
    model=Model(
        states={
            "x1": "k_prod - k_deg*x1 - k1*x1*u",
            "x2": "-k3*x2 - k_deg*x2 - a2*x2*x10 + t1*x4 - a3*x2*x13 + t2*x5 + (k1*x1 - k2*x2*x8)*u",
            "x3": "k3*x2 - k_deg*x3 + k2*x2*x8*u",
            "x4": "a2*x2*x10 - t1*x4",
            "x5": "a3*x2*x13 - t2*x5",
            "x6": "c6a*x13 - a1*x6*x10 + t2*x5 - i1*x6",
            "x7": "i1*kv*x6 - a1*x11*x7",
            "x8": "c4*x9 - c5*x8",
            "x9": "c1*x7 - c3*x9",
            "x10": "-a2*x2*x10 - a1*x10*x6 + c4a*x12 - c5a*x10 - i1a*x10 + e1a*x11",
            "x11": "-a1*x11*x7 + i1a*kv*x10 - e1a*kv*x11",
            "x12": "c1a*x7 - c3a*x12",
            "x13": "a1*x10*x6 - c6a*x13 - a3*x2*x13 + e2a*x14",
            "x14": "a1*x11*x7 - e2a*kv*x14",
            "x15": "c1c*x7 - c3c*x15",
        },
        outputs={"y1": "x2", "y2": "x10 + x13", "y3": "x9", "y4": "x1 + x2 + x3", "y5": "x12", "y6": "x7"},
        inputs={"u": "exp(-t)"},
        fixed={
            "a1": "1/2",
            "a2": "1/5",
            "a3": 1,
            "c1a": "5e-7",
            "c5a": "1e-4",
            "c6a": "2e-5",
            "c1": "5e-7",
            "c3": "4e-4",
            "c4": "1/2",
            "kv": 5,
            "e1a": "5e-4",
            "c1c": "5e-7",
            "c3c": "4e-4",
        },
    ),
    verdicts=_verdicts("x2 x7 x9 x12 c3a", none="x15"),
    source="Lipniacki et al., J. Theor. Biol. 228, 2004; Balsa-Canto, Alonso, Banga, BMC Syst. Biol. 4, 2010",
    note="Equations and known values as in the SIAN examples.  Only what is evident is stated: measured states, the "
    "decay of x12, and x15, on which nothing depends; all other unknowns are at least locally identifiable.",
)

pharm = Entry(
    name="pharm",
    model=(
        model := Model(
            states={
                "x0": "a1*(x1 - x0) - ka*n*x0/(kc*ka + kc*x2 + ka*x0)",
                "x1": "a2*(x0 - x1)",
                "x2": "b1*(x3 - x2) - kc*n*x2/(kc*ka + kc*x2 + ka*x0)",
                "x3": "b2*(x2 - x3)",
            },
            outputs={"y1": "x0"},
        )
    ),
    verdicts=_all_global(model),
    solutions=1,
    source=f"Demignot, Domurado, Drug Des. Deliv. 1, 1987; {_RESULTS}, Pharm, logs",
)

stat5 = Entry(
    name="stat5",
    model=Model(
        states={
            "x1": "-k1*x1*EpoR",
            "x2": "k1*x1*EpoR - k2*x2**2",
            "x3": "-k3*x3 + 0.5*k2*x2**2",
            "x4": "k3*x3",
        },
        outputs={"y1": "k5*(x2 + 2*x3)", "y2": "k6*(x1 + x2 + 2*x3)", "y3": "k7*EpoR"},
    ),
    verdicts=_verdicts("k3", none="x1 x2 x3 x4 k1 k2 k5 k6 k7 EpoR"),
    solutions=1,
    combinations=("k2/k6", "k5/k6", "EpoR*k7", "EpoR*k1"),
    source=f"Timmer, Mueller, Swameye, Sandra, Klingmueller, Int. J. Bifurc. Chaos 14, 2004; {_FUNCTIONS}, STAT-5",
)

tumour_targeting = Entry(
    name="tumour_targeting",
    model=Model(
        states={
            "x1": "-(k3 + k7)*x1 + k4*x2",
            "x2": "k3*x1 - (k4 + a*k5 + b*d*k5)*x2 + k6*x3 + k6*x4 + k5*x2*x3 + k5*x2*x4",
            "x3": "a*k5*x2 - k6*x3 - k5*x2*x3",
            "x4": "b*d*k5*x2 - k6*x4 - k5*x2*x4",
            "x5": "k7*x1",
            "a": "0",
            "b": "0",
            "d": "0",
        },
        outputs={"y1": "x5", "y2": "a", "y3": "b", "y4": "d"},
    ),
    verdicts=_verdicts("x1 x2 x5 a b d k3 k4 k5 k6 k7", none="x3 x4"),
    solutions=1,
    combinations=("x3 + x4",),
    source="SIAN examples, Tumor (equations)",
    note="The verdicts were derived (x3 and x4 act through their sum), not read.",
)

cgv1990 = Entry(
    name="cgv1990",
    model=Model(
        states={
            "q1": "k4*q3 - (k3 + k7)*q1 + u",
            "q3": "k3*q1 - k4*q3 - k5*q3*(R*V3 - q35) + k6*q35 - 5*k5*q3*V36/V3*(S*V36 - q36) + k6*q36",
            "q35": "k5*q3*(R*V3 - q35) - k6*q35",
            "q36": "5*k5*q3*V36/V3*(S*V36 - q36) - k6*q36",
            "q7": "k7*q1",
        },
        outputs={"y1": "q7"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("q7 q3 q1 k7 k6 k4 k3", "q35 q36 k5", "R S V3 V36"),
    solutions=2,
    functions={
        "q35 + q36": "global",
        "q35*q36": "global",
        "S*V36 + R*V3": "global",
        "(V36 + V3/5)/(k5*V36)": "global",
        "(k5*V36 + k5*V3/5)/V3": "global",
        "(S**2 + 25*R**2)/(S*R)": "global",
        "(q35 - q36)/(S*V3 - 25*V36*R)": "global",
    },
    source=f"Chappell, Godfrey, Vajda, Math. Biosci. 102, 1990; {_RESULTS}, CGV1990",
    note="k5 and V3/V36 follow from the stated functions by a quadratic equation.",
)

high_dimensional_nonlinear = Entry(
    name="high_dimensional_nonlinear",
    model=(
        model := Model(
            states={
                "x1": "-vm*x1/(km + x1) - p1*x1 + u",
                **{f"x{i}": f"p{i - 1}*x{i - 1} - p{i}*x{i}" for i in range(2, 21)},
            },
            outputs={f"y{i}": f"x{i}" for i in range(1, 21)},
            inputs={"u": "exp(-t)"},
        )
    ),
    verdicts=_all_global(model),
    solutions=1,
    source=f"Saccomani, Audoly, Bellu, D'Angio 2010 (DAISY, 20 states); {_RESULTS}, HighDimNonLin",
)

qwwc = Entry(
    name="qwwc",
    model=Model(
        states={
            "x": "a*(y - x) + y*z",
            "y": "b*(x + y) - x*z",
            "z": "-c*z - d*w + x*y",
            "w": "e*z - f*w + x*y",
        },
        outputs={"g": "x"},
    ),
    verdicts=_verdicts("x", none="w c d e f"),
    source="Qi, van Wyk, van Wyk, Chen, Chaos Solitons Fractals 40, 2009; equations as in the SIAN benchmarks, QWWC",
    note="The verdicts were derived, not read: w -> p*w + (1 - p)*z keeps the form of the equations.",
)


# --- made to show one thing -------------------------------------------------------------------------------------------

llw1987 = Entry(
    name="llw1987",
    model=Model(
        states={
            "x1": "-p1*x1 + p2*u",
            "x2": "-p3*x2 + p4*u",
            "x3": "-(p1 + p3)*x3 + (p4*x1 + p2*x2)*u",
        },
        outputs={"y1": "x3"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x3", "p1 p3", "x1 x2 p2 p4"),
    solutions=2,
    combinations=("p2*p4", "x1*x2"),
    functions={
        "p1 + p3": "global",
        "p1*p3": "global",
        "p2*x2 + p4*x1": "global",
        "x1*p1*p4 + x2*p2*p3": "global",
    },
    source="Lecourtier, Lamnabhi-Lagarrigue, Walter, CDC 1987; StructuralIdentifiability.jl documentation, 'Globally "
    "Identifiable Functions'",
)

llw1987_known_state = Entry(
    name="llw1987_known_state",
    model=llw1987.model.replace(initial={"x1": 0.5}),
    verdicts=_verdicts("x2 x3", "p1 p3 p2 p4"),
    solutions=2,
    functions={"p2*p4": "global", "p1 + p3": "global"},
    source="StructuralIdentifiability.jl documentation, 'Globally Identifiable Functions', known_ic = [x1]",
    note="The source takes x1(0) as known and generic and states x2; p2 and p4 follow from the functions.",
)

ljung_glad_square = Entry(
    name="ljung_glad_square",
    model=Model(
        states={"x1": "theta*x2**2", "x2": "u"},
        outputs={"y": "x1"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("theta x1 x2"),
    solutions=1,
    source=f"Ljung, Glad, Automatica 30, 1994, 'On global identifiability ...', Example 2; {_FUNCTIONS}",
    note="The source states theta; x2 follows from y''.",
)

first_order_gain = Entry(
    name="first_order_gain",
    model=Model(states={"x": "a*x + b*u"}, outputs={"y": "c*x"}, inputs={"u": "exp(-t)"}),
    verdicts=_verdicts("a", none="x b c"),
    solutions=1,
    combinations=("b*c", "c*x"),
    source=_FUNCTIONS,
)

parallel_modes = Entry(
    name="parallel_modes",
    model=(
        model := Model(
            states={"x1": "l1*x1 + b1*u1", "x2": "l2*x2 + b2*u2", "x3": "l3*x3 + b3*u3"},
            outputs={"y": "x1 + x2 + x3"},
            inputs={"u1": "exp(-t)", "u2": "sin(t)", "u3": "cos(2*t)"},
        )
    ),
    verdicts=_all_global(model),
    solutions=1,
    source=f"{_FUNCTIONS}, diagonal with simple spectrum and observable states",
)

cascade = Entry(
    name="cascade",
    model=Model(
        states={"x1": "-a1*x1 + a21*x2", "x2": "-a2*x2 - a21*x2"},
        outputs={"y1": "x1"},
    ),
    verdicts=_verdicts("x1", "a1", "x2 a2 a21"),
    solutions=2,
    functions={"a2 + a21": "local", "a21*x2": "local", "a1 + a2 + a21": "global", "a1*(a2 + a21)": "global"},
    source=_ASSESS,
    note="The two rates can be exchanged.  The source states the parameters.",
)

cascade_input = Entry(
    name="cascade_input",
    model=Model(
        states={"x1": "-a1*x1 + a21*x2", "x2": "-a2*x2 - a21*x2 + u"},
        outputs={"y1": "x1"},
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts("x1 a21", "x2 a1 a2"),
    solutions=2,
    functions={"a1 + a2": "global", "a2*(a1 - a21)": "global"},
    source=_ASSESS,
    note="The source states the parameters.",
)

rotation = Entry(
    name="rotation",
    model=Model(
        states={"x1": "alpha*(x1 - x2)", "x2": "alpha*(x1 + x2)"},
        outputs={"y": "(x1**2 + x2**2)/2"},
    ),
    verdicts=_verdicts("alpha", none="x1 x2"),
    solutions=1,
    combinations=("x1**2 + x2**2",),
    source=_FUNCTIONS,
    note="The rotation of (x1, x2) is a symmetry.",
)

drift = Entry(
    name="drift",
    model=Model(
        states={"x1": "alpha*x2", "x2": "x3", "x3": "C"},
        outputs={"y": "x1"},
    ),
    verdicts=_verdicts("x1", none="x2 x3 alpha C"),
    solutions=1,
    combinations=("alpha*x2", "alpha*x3", "alpha*C"),
    source=_FUNCTIONS,
)

nothing_but_the_sum = Entry(
    name="nothing_but_the_sum",
    model=Model(states={"x1": "a", "x2": "-a"}, outputs={"y": "x1 + x2"}),
    verdicts=_verdicts(none="x1 x2 a"),
    combinations=("x1 + x2",),
    source=_FUNCTIONS,
    note="The source states that no function of a is identifiable; x1 + x2 is the output.",
)

known_initial_sum = Entry(
    name="known_initial_sum",
    model=Model(
        states={"x1": "a + x2 + x3", "x2": "b**2 + c", "x3": "-c"},
        outputs={"y": "x1"},
        initial={"x2": 0.5, "x3": 0.3},
    ),
    verdicts=_verdicts("x1 a", "b", "c"),
    solutions=2,
    functions={"b**2": "global"},
    source=_KNOWN,
)

reciprocal_pair = Entry(
    name="reciprocal_pair",
    model=Model(states={"x1": "a*x1", "x2": "x1 + 1/x1"}, outputs={"y": "x2"}),
    verdicts=_verdicts("x2", "x1 a"),
    solutions=2,
    functions={"a**2": "global", "x1 + 1/x1": "global"},
    source=f"{_KNOWN}, the same model without the known initial state",
    note="Derived: (x1, a) and (1/x1, -a) give the same output.",
)

reciprocal_pair_known_initial = Entry(
    name="reciprocal_pair_known_initial",
    model=reciprocal_pair.model.replace(initial={"x1": 0.5}),
    verdicts=_verdicts("x2 a"),
    solutions=1,
    source=_KNOWN,
)

riccati_from_zero = Entry(
    name="riccati_from_zero",
    model=Model(states={"S": "1 + a*S**2"}, outputs={"y": "S"}, initial={"S": 0}),
    verdicts=_verdicts("a"),
    solutions=1,
    source="strike-goldd, issue 7, 'Identifiability with known initial conditions'",
    note="y'''(0) = 2 a is the first derivative that depends on a: more orders are needed than unknowns suggest.",
)

exponential_of_state = Entry(
    name="exponential_of_state",
    model=Model(states={"x": "a*exp(x)"}, outputs={"y": "x"}),
    verdicts=_verdicts("x a"),
    solutions=1,
    source="StructuralIdentifiability.jl, issue 144, 'Rationalizing input model'",
    note="Taking exp(x) for a free new state would wrongly lose a.",
)

stirred_tank_reactor = Entry(
    name="stirred_tank_reactor",
    model=Model(
        states={
            "Ca": "u1*(Ca0 - Ca)/V - k0*exp(-E/(R*T))*Ca",
            "Cb": "-u1*Cb/V + k0*exp(-E/(R*T))*Ca",
            "T": "u1*(Ta - T)/V - k0*exp(-E/(R*T))*Ca*DH/(ro*cp) + UA*(T - Tj)/(V*ro*cp)",
            "Tj": "u2*(Th - Tj)/Vh + UA*(T - Tj)/(cph*Vh*roh)",
        },
        outputs={"y1": "Cb", "y2": "T"},
        inputs={"u1": "exp(-t)", "u2": "sin(t)"},
    ),
    verdicts=_verdicts("Ca Cb T Tj Ta Ca0 V Vh Th k0", none="E R DH UA ro cp cph roh"),
    combinations=("E/R", "DH/UA", "DH/(ro*cp)", "cph*roh/DH"),
    source=f"{_RESULTS}, KD1999, with the rate exp(-E/(R T)) itself in the place of the extra state Arr",
    note="Stated with Arr free: k0*Arr, R/E and T are global, so k0 is global once Arr is exp(-E/(R T)).",
)

stirred_tank_reactor_recast = Entry(
    name="stirred_tank_reactor_recast",
    model=Model(
        states={
            "Ca": "u1*(Ca0 - Ca)/V - k0*Arr*Ca",
            "Cb": "-u1*Cb/V + k0*Arr*Ca",
            "T": "u1*(Ta - T)/V - k0*Arr*Ca*DH/(ro*cp) + UA*(T - Tj)/(V*ro*cp)",
            "Tj": "u2*(Th - Tj)/Vh + UA*(T - Tj)/(cph*Vh*roh)",
            "Arr": "E*Arr/(R*T**2)*(u1*(Ta - T)/V - k0*Arr*Ca*DH/(ro*cp) + UA*(T - Tj)/(V*ro*cp))",
        },
        outputs={"y1": "Cb", "y2": "T"},
        inputs={"u1": "exp(-t)", "u2": "sin(t)"},
    ),
    verdicts=_verdicts("Ca Cb T Tj Ta Ca0 V Vh Th", none="Arr k0 E R DH UA ro cp cph roh"),
    solutions=1,
    combinations=("k0*Arr", "E/R", "DH/UA", "DH/(ro*cp)", "cph*roh/DH"),
    source=f"{_RESULTS}, KD1999",
    note="stirred_tank_reactor with exp(-E/(R T)) as a free state, which loses k0.",
)

sine_of_state = Entry(
    name="sine_of_state",
    model=Model(states={"x1": "1", "x2": "cos(x1)"}, outputs={"y1": "sin(x1)/b", "y2": "x2"}),
    verdicts=_verdicts("x2 b"),
    source=f"{_ASSESS}, sine_of_state_rational with x1 -> tan(x1/2) undone",
    note="b = y2'/y1'; the angle x1 is known but for whole turns, which the source does not state.",
)

sine_of_state_rational = Entry(
    name="sine_of_state_rational",
    model=Model(
        states={"x1": "(1 + x1**2)/2", "x2": "(1 - x1**2)/(1 + x1**2)"},
        outputs={"y1": "2*x1/(b*(1 + x1**2))", "y2": "x2"},
    ),
    verdicts=_verdicts("x1 x2 b"),
    solutions=1,
    source=_ASSESS,
    note="The source states b; x1 = sin/(1 + cos) follows.",
)


# --- further models of the benchmark collections ----------------------------------------------------------------------

lotka_volterra_symmetric = Entry(
    name="lotka_volterra_symmetric",
    model=Model(
        states={"x1": "(a + b)*x1 - c*x1*x2", "x2": "-a*b*x2 + d*x1*x2"},
        outputs={"y1": "x1"},
    ),
    verdicts=_verdicts("d x1", "a b", "c x2"),
    solutions=2,
    combinations=("c*x2",),
    functions={"a + b": "global", "a*b": "global"},
    source=f"{_RESULTS}, Modified LV for testing",
)

sir_reported = Entry(
    name="sir_reported",
    model=Model(
        states={"S": "-beta*I*S/N", "I": "beta*I*S/N - gamma*I"},
        outputs={"y1": "I*K", "y2": "N"},
    ),
    verdicts=_verdicts("gamma N", none="K beta I S"),
    solutions=1,
    combinations=("K/beta", "I*beta", "S*beta"),
    source=f"Massonis, Banga, Villaverde, Annu. Rev. Control 51, 2021, model 6; {_RESULTS}, SIR 6",
)

sir_confined = Entry(
    name="sir_confined",
    model=(
        model := Model(
            states={
                "S": "-beta*S*I/N - pp*S + q*C",
                "I": "beta*S*I/N - (r + mu)*I",
                "C": "pp*S - q*C",
                "D": "mu*I",
            },
            outputs={"y1": "N", "y2": "D", "y3": "C"},
        )
    ),
    verdicts=_all_global(model),
    solutions=1,
    source=f"Massonis, Banga, Villaverde, Annu. Rev. Control 51, 2021, model 19; {_RESULTS}, SIR 19",
)

sir_confined_recovered = Entry(
    name="sir_confined_recovered",
    model=sir_confined.model.replace(states={**sir_confined.model.states, "R": "r*I"}),
    verdicts={**sir_confined.verdicts, "R": "none"},
    solutions=1,
    source=f"Massonis, Banga, Villaverde, Annu. Rev. Control 51, 2021, model 21; {_RESULTS}, SIR 21",
)

sir_treated = Entry(
    name="sir_treated",
    model=Model(
        states={
            "A": "0",
            "S": "A - mu + S - c*phi*I*S/(I + S)",
            "I": "-mu*I + c*phi*I*S/(I + S) - gamma*I - I*u1/(S + I)",
            "R": "-mu*R + gamma*I + I*u1/(S + I)",
        },
        outputs={"y1": "K*I"},
        inputs={"u1": "exp(-t)"},
    ),
    verdicts=_verdicts("K I S", none="gamma mu c phi A R"),
    solutions=1,
    combinations=("gamma + mu", "c*phi", "A - mu"),
    source=f"Massonis, Banga, Villaverde, Annu. Rev. Control 51, 2021, model 24; {_RESULTS}, SIR 24",
    note="The sign of S in its own equation is that of the source.",
)

seir_births = Entry(
    name="seir_births",
    model=Model(
        states={
            "A": "0",
            "S": "A - r*beta*S*I/N - mu*S",
            "E": "r*beta*S*I/N - epsilon*E - mu*E",
            "I": "epsilon*E - gamma*I - mu*I",
        },
        outputs={"y1": "K*I", "y2": "A", "y3": "N"},
    ),
    verdicts=_verdicts("mu S N A", "epsilon gamma K I E", "beta r"),
    solutions=2,
    functions={"epsilon + gamma": "global", "K*epsilon": "global", "beta*epsilon*r": "global", "E + I": "global"},
    source=f"Massonis, Banga, Villaverde, Annu. Rev. Control 51, 2021, model 34; {_RESULTS}, SEIR 34",
)

seir_detected = Entry(
    name="seir_detected",
    model=(
        model := Model(
            states={
                "S": "-beta*S*I/N - q*beta_d*S*Di/N + nu*N - mu_0*S",
                "E": "beta*S*I/N + q*beta_d*S*Di/N - s*E - phi_e*E - mu_0*E",
                "I": "s*E - gamma*I - mu_i*I - phi*I - mu_0*I",
                "De": "phi_e*E - s_d*De - mu_0*De",
                "Di": "phi*I + s_d*De - gamma_d*Di - mu_d*Di - mu_0*Di",
                "F": "mu_i*I + mu_d*Di",
            },
            outputs={"y1": "De", "y2": "Di", "y5": "F", "y3": "N", "y4": "nu", "y6": "q"},
        )
    ),
    verdicts=_all_global(model),
    solutions=1,
    source=f"Massonis, Banga, Villaverde, Annu. Rev. Control 51, 2021, model 36; {_RESULTS}, SEIR 36 ref",
)

seir_cumulative = Entry(
    name="seir_cumulative",
    model=(
        model := Model(
            states={"S": "-b*S*In/N", "E": "b*S*In/N - nu*E", "In": "nu*E - a*In", "Cu": "nu*E"},
            outputs={"y1": "Cu", "y2": "N"},
        )
    ),
    verdicts=_all_global(model),
    solutions=1,
    source=f"{_RESULTS}, SEIR2T",
)

seir_prevalence = Entry(
    name="seir_prevalence",
    model=Model(
        states={"S": "-beta*I*S/N", "E": "beta*I*S/N - alpha*E", "I": "alpha*E - lam*I"},
        outputs={"y1": "I", "y2": "N"},
    ),
    verdicts=_verdicts("beta N I", "alpha lam S E"),
    solutions=2,
    functions={"alpha + lam": "global", "alpha*lam": "global", "S*alpha": "global"},
    source=f"{_RESULTS}, SEIRT",
)

pitavastatin = Entry(
    name="pitavastatin",
    model=Model(
        states={
            "x1": "k3*x3 - r3*x1 - k1*x1*(T0 - x2) + r1*x2",
            "x2": "k1*x1*(T0 - x2) - (r1 + k2)*x2",
            "x3": "r3*x1 - (k3 + k4)*x3 + k2*x2",
        },
        outputs={"y1": "k*(x2 + x3)"},
    ),
    verdicts=_verdicts("r1 r3 k2 k3 k4", none="T0 k k1 x1 x2 x3"),
    solutions=1,
    combinations=("T0*k1", "T0*k", "k1*x1", "k1*x2", "k1*x3"),
    source=f"Grandjean, Chappell, Yates, Evans, Comput. Methods Programs Biomed. 114, 2014; {_RESULTS}, Pivastatin",
)

p53 = Entry(
    name="p53",
    model=(
        model := Model(
            states={
                "x1": "p1*x4 - p3*x1 - p4*x1**2/(p5 + x1)*(1 + p6*u1/(p7 + u1))",
                "x2": "p8 - p9*x2 - p10*x1*x2/(p11 + x2)*(1 + p12*u1/(p13 + u1))",
                "x3": "p14 - p15*x3 - p16*x1*x3*(1 - p18*u1)/(p17 + x3)",
                "x4": "p20 - p21*(1 - p24)*(1 - p25)/(p22**4 + 1) - p20*x4 + p21*x3**4"
                " + (1 + p23*u1)*(1 - p24*x1)*(1 - p25*x2)/(p22**4 + x3**4)",
            },
            outputs={f"y{i}": f"x{i}" for i in range(1, 5)},
            inputs={"u1": "exp(-t)"},
        )
    ),
    verdicts={**_all_global(model), "p22": "local"},
    solutions=4,
    functions={"p22**4": "global"},
    source=f"Hat, Kochanczyk, Bogdal, Lipniacki, PLoS Comput. Biol. 12, 2016, reduced; {_RESULTS}, p53",
)

qy = Entry(
    name="qy",
    model=Model(
        states={
            "P0": "P1",
            "P1": "P2",
            "P2": "P3",
            "P3": "P4",
            "P4": (
                _change := "-(Ks*M*siga1*siga2*P1 + (Ks*M*siga1 + Ks*M*siga2 + Ks*siga1*siga2 + siga1*siga2*M)*P2"
                " + (Ks*M + Ks*siga1 + Ks*siga2 + M*siga1 + M*siga2 + siga1*siga2)*P3 + (Ks + M + siga1 + siga2)*P4)"
            )
            + " - (Mar*P5 + "
            + (
                _force := "beta + beta_SA/(siga2*M)*(P3 + P2*(Ks + M + Mar) + P1*(Ks*M + Ks*Mar + M*Mar) + P0*Ks*M*Mar)"
                " + beta_SI/M*(P2 + P1*(Ks + Mar) + P0*Ks*Mar) + beta_SA*phi/((1 - phi)*siga2*M)*(P3"
                " + P2*(Ks + M + siga2) + P1*(Ks*M + Ks*siga2 + M*siga2) + P0*Ks*M*siga2)"
            )
            + ")*(alpa + Ks*M*siga1*siga2*P0 + (Ks*M*siga1 + Ks*M*siga2 + Ks*siga1*siga2 + siga1*siga2*M)*P1"
            " + (Ks*M + Ks*siga1 + Ks*siga2 + M*siga1 + M*siga2 + siga1*siga2)*P2 + (Ks + M + siga1 + siga2)*P3 + P4)",
            "P5": f"-Mar*P5 - ({_force})",
        },
        outputs={"y": "P0"},
    ),
    verdicts=_verdicts("P0 P1 P2 P3 P4 alpa Mar Ks", "M siga1 siga2 phi beta_SA", "P5 beta"),
    functions={"M*siga1*siga2": "global", "M + siga1 + siga2": "global", "P5*Mar + beta": "global"},
    source=f"{_RESULTS}, QY",
    note="phi and beta_SA follow from siga1, a root of a cubic, by the stated functions.",
)

jak_stat = Entry(
    name="jak_stat",
    model=Model(
        states={
            "x1": "-2*t1*x1*u - t5*x1 + t6*x2",
            "x2": "t5*x1 - t6*x2",
            "x3": "2*t1*u*x1 - t2*x3*(3 - x6)",
            "x4": "t2*x3*(3 - x6) - t3*x4",
            "x5": "t3*x4 - t4*x5",
            "x6": "-t7*x3*x6/(1 + t13*x1) - t7*x4*x6/(1 + t13*x10) + 92*t8*(3 - x6)",
            "x7": "-t9*x7*(3 - x6) + 92*t10*(165 - x7)",
            "x8": "t11*(165 - x7)",
            "x9": "-2*t12*u*x9",
            "x10": "x8*t14/(t15 + x8) - t16*x10",
        },
        outputs={
            "y1": "x1 + x3 + x4",
            "y2": "t18*(x3 + x4 + x5 + (1/3 - x9))",
            "y3": "t19*(x4 + x5)",
            "y4": "t20*(3 - x6)",
            "y5": "t21*x8",
            "y6": "t22*x8*t17/t11",
            "y7": "x10",
            "y8": "165 - x7",
        },
        inputs={"u": "exp(-t)"},
    ),
    verdicts=_verdicts(
        "t1 t2 t3 t4 t5 t6 t7 t8 t9 t10 t12 t13 t14 t16 t18 t19 t20 x1 x2 x3 x4 x5 x6 x7 x9 x10",
        none="t11 t15 t17 t21 t22 x8",
    ),
    solutions=1,
    combinations=("t17*t22", "t15*t21", "t11*t21", "t21*x8"),
    source=f"Raia et al., Cancer Res. 71, 2011; {_RESULTS}, JAK-STAT 1",
)

compositional_lotka_volterra = Entry(
    name="compositional_lotka_volterra",
    model=Model(
        states={
            f"pi{i}": f"pi{i}*((g{i} + A{i}1*pi1 + A{i}2*pi2 + A{i}3*pi3 + B{i}1*u1)"
            " - pi1*(g1 + A11*pi1 + A12*pi2 + A13*pi3 + B11*u1) + pi2*(g2 + A21*pi1 + A22*pi2 + A23*pi3 + B21*u1))"
            for i in (1, 2, 3)
        },
        outputs={"y1": "pi1", "y2": "pi2"},
        inputs={"u1": "exp(-t)"},
    ),
    verdicts=_verdicts("g1 g2 g3 B11 B21 B31 A11 A12 A21 A22 A31 A32 pi1 pi2", none="A13 A23 A33 pi3"),
    solutions=1,
    combinations=("A13/A33", "A23/A33", "A33*pi3"),
    source=f"Joseph, Shenhav, Xavier, Halperin, Pe'er, PLoS Comput. Biol. 16, 2020; {_RESULTS}, cLV1 (2o)",
)

generalised_lotka_volterra = Entry(
    name="generalised_lotka_volterra",
    model=Model(
        states={"x1": "r1*x1 + beta11*x1**2 + beta12*x1*x2", "x2": "r2*x2 + beta21*x1*x2 + beta22*x2**2"},
        outputs={"y1": "x1"},
    ),
    verdicts=_verdicts("r1 r2 beta11 beta21 x1", none="beta12 beta22 x2"),
    solutions=1,
    combinations=("beta12/beta22", "beta22*x2"),
    source=f"Remien, Eckwright, Ridenhour, R. Soc. Open Sci. 8, 2021; {_RESULTS}, generalizedLoktaVolterra (1o)",
)

generalised_lotka_volterra_two_outputs = Entry(
    name="generalised_lotka_volterra_two_outputs",
    model=(model := generalised_lotka_volterra.model.replace(outputs={"y1": "x1", "y2": "x2"})),
    verdicts=_all_global(model),
    solutions=1,
    source=f"Remien, Eckwright, Ridenhour, R. Soc. Open Sci. 8, 2021; {_RESULTS}, generalizedLoktaVolterra (2o)",
)

transfection = Entry(
    name="transfection",
    model=Model(
        states={
            "mRNA": "-d1*mRNA - d2*mRNA*enz",
            "GFP": "kTL*mRNA - b*GFP",
            "enz": "d3*mRNAenz - d2*mRNA*enz",
            "mRNAenz": "-d3*mRNAenz + d2*mRNA*enz",
        },
        outputs={"y1": "GFP"},
    ),
    verdicts=_verdicts("d1 d3 b GFP", none="d2 kTL mRNA enz mRNAenz"),
    solutions=1,
    combinations=("d2/kTL", "kTL*mRNA", "kTL*enz", "kTL*mRNAenz"),
    source=f"{_RESULTS}, Transfection_4State",
)

resistant_bacteria = Entry(
    name="resistant_bacteria",
    model=Model(
        states={
            "S": "r*S - (e + a*W)*S - d*W*S + g*R",
            "R": "rR*R + (e + a*W)*S - dr*W*R - g*R",
            "W": "Dd*(T - W)",
        },
        outputs={"y1": "S + R", "y2": "T"},
    ),
    verdicts=_verdicts("T Dd"),
    functions={"S + R": "global", "T*a + T*d + T*dr + e + g - r - rR": "global", "(d*rR - dr*r)/(d - dr)": "global"},
    source=f"{_RESULTS}, St",
    note="Stated functions only; five of them for seven rates.",
)

tumour_hu = Entry(
    name="tumour_hu",
    model=Model(
        states={
            "x": "(r1 + b1*y)*x*(1 - b1*x) - d1*x*z/(m1 + w)",
            "y": "(r2 + b2*w/(k2 + w))*y*(1 - b2*y) - mu2*y",
            "z": "b3*z*v/((k3 + v)*(m3 + w)) - mu3*z + r3",
            "w": "b4*x*z/(k4 + x) - mu4*w + r4*x*y/(m4 + v)",
            "v": "b5*x*z/(k5 + x) - mu5*v",
        },
        outputs={"y1": "z"},
    ),
    verdicts=_verdicts("z"),
    source="Hu, Ke, Jang, Bull. Math. Biol. 81, 2019, as in StructuralIdentifiability.jl, benchmarks, TumorHu2019",
    note="No tool decides it; the output itself is evident.",
)

ENTRIES: tuple[Entry, ...] = tuple(value for value in globals().copy().values() if isinstance(value, Entry))

HARD = {
    "siwr",
    "seaijrc",
    "sirs_forced",
    "mapk_six_outputs",
    "mapk_five_outputs",
    "nfkb",
    "pharm",
    "qwwc",
    "qy",
    "jak_stat",
    "resistant_bacteria",
    "tumour_hu",
}
"""Models that take longer than a test may."""
