"""Published: small data sets that people measured, each with a model that is usual for it and where it comes from.

They stand for what users bring: few points, models that explain them more or less.  The gallery shows them, and
benchmarks measure how long their fits take to end.  Those of NIST have certified least-squares estimates, which are
for tests to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import odejet as oj

EXAMPLES = Path(__file__).parents[1] / "examples"

LOGISTIC = oj.Model({"N": "r*N*(1 - N/K)"}, {"y": "N"}, name="logistic growth")
TWO_COMPARTMENTS = oj.Model(
    {"c": "-(k10 + k12)*c + k21*p", "p": "k12*c - k21*p"}, {"y": "c"}, initial={"p": 0}, name="two compartments"
)
APPROACH = oj.Model({"y": "k*(A - y)"}, {"d": "y"}, initial={"y": 0}, name="first-order approach")


@dataclass(frozen=True)
class Published:
    """A data set with its model: where it is from, what is asked, how to read the parameters, and what came out."""

    title: str
    field: str
    source: str
    question: str
    pose: Callable[[], oj.Problem] = field(repr=False)
    meaning: str = ""


def _example(name: str, **options: object) -> Callable[[], oj.Problem]:
    def pose() -> oj.Problem:
        data = oj.Data.from_csv(EXAMPLES / f"{name}.csv")
        return oj.Problem(oj.Model.from_toml(EXAMPLES / f"{name}.toml"), data, **options)

    return pose


def _several(times: Sequence[float], rows: Sequence[Sequence[float]], name: str) -> oj.Data:
    return oj.Data.join(oj.Data(times, {"y": row}, name=f"{name}{i}", start=0) for i, row in enumerate(rows, 1))


def _orange(**options: object) -> oj.Problem:
    ages = [118, 484, 664, 1004, 1231, 1372, 1582]
    trees = [
        [30, 58, 87, 115, 120, 142, 145],
        [33, 69, 111, 156, 172, 203, 203],
        [30, 51, 75, 108, 115, 139, 140],
        [32, 62, 112, 167, 179, 209, 214],
        [30, 49, 81, 125, 142, 174, 177],
    ]
    return oj.Problem(LOGISTIC, _several(ages, trees, "tree"), **options)


INDOMETHACIN_TIMES = [0.25, 0.5, 0.75, 1, 1.25, 2, 3, 4, 5, 6, 8]
INDOMETHACIN = [
    [1.50, 0.94, 0.78, 0.48, 0.37, 0.19, 0.12, 0.11, 0.08, 0.07, 0.05],
    [2.03, 1.63, 0.71, 0.70, 0.64, 0.36, 0.32, 0.20, 0.25, 0.12, 0.08],
    [2.72, 1.49, 1.16, 0.80, 0.80, 0.39, 0.22, 0.12, 0.11, 0.08, 0.08],
    [1.85, 1.39, 1.02, 0.89, 0.59, 0.40, 0.16, 0.11, 0.10, 0.07, 0.07],
    [2.05, 1.04, 0.81, 0.39, 0.30, 0.23, 0.13, 0.11, 0.08, 0.10, 0.06],
    [2.31, 1.44, 1.03, 0.84, 0.64, 0.42, 0.24, 0.17, 0.13, 0.10, 0.09],
]


def _indomethacin() -> oj.Problem:
    return oj.Problem(TWO_COMPARTMENTS, _several(INDOMETHACIN_TIMES, INDOMETHACIN, "subject"))


def _first_indomethacin() -> oj.Problem:
    return oj.Problem(TWO_COMPARTMENTS, oj.Data(INDOMETHACIN_TIMES, {"y": INDOMETHACIN[0]}, start=0))


def _oxygen() -> oj.Problem:
    return oj.Problem(APPROACH, oj.Data([1, 2, 3, 4, 5, 7], {"d": [8.3, 10.3, 19.0, 16.0, 15.6, 19.8]}, start=0))


def _puromycin() -> oj.Problem:
    rates = [[76, 47], [97, 107], [123, 139], [159, 152], [191, 201], [207, 200]]
    model = oj.Model({"v": "Vm*K/(K + t)**2"}, {"y": "v"}, initial={"v": 0}, name="Michaelis-Menten")
    return oj.Problem(
        model, oj.Data(np.repeat([0.02, 0.06, 0.11, 0.22, 0.56, 1.10], 2), {"y": np.ravel(rates)}, start=0)
    )


def _chick() -> oj.Problem:
    weights = [42, 51, 59, 64, 76, 93, 106, 125, 149, 171, 199, 205]
    return oj.Problem(LOGISTIC, oj.Data([*range(0, 21, 2), 21], {"y": weights}))


def _census() -> oj.Problem:
    millions = [3.93, 5.31, 7.24, 9.64, 12.90, 17.10, 23.20, 31.40, 39.80, 50.20, 62.90, 76.00, 92.00, 105.70, 122.80]
    return oj.Problem(LOGISTIC, oj.Data(np.arange(19.0), {"y": [*millions, 131.70, 151.30, 179.30, 203.20]}))


def _vapour() -> oj.Problem:
    pressures = [
        2e-4,
        1.2e-3,
        6e-3,
        0.03,
        0.09,
        0.27,
        0.75,
        1.85,
        4.2,
        8.8,
        17.3,
        32.1,
        57,
        96,
        157,
        247,
        376,
        558,
        806,
    ]
    model = oj.Model({"p": "a*p/(t + c)**2"}, {"y": "p"}, name="Antoine's law")
    return oj.Problem(model, oj.Data(20.0 * np.arange(19), {"y": pressures}), noise="relative")


def _yeast() -> oj.Problem:
    amounts = [9.6, 18.3, 29.0, 47.2, 71.1, 119.1, 174.6, 257.3, 350.7, 441.0, 513.3, 559.7, 594.8, 629.4, 640.8]
    return oj.Problem(LOGISTIC, oj.Data(np.arange(19.0), {"y": [*amounts, 651.1, 655.9, 659.6, 661.8]}))


def _bombay() -> oj.Problem:
    deaths = [4, 10, 15, 18, 21, 31, 51, 53, 97, 125, 183, 292, 390, 448, 641, 771, 701, 696, 867, 925, 801, 580]
    deaths += [409, 351, 210, 113, 65, 52, 51, 39, 33]
    model = oj.Model({"S": "-b*S*I", "I": "b*S*I - g*I"}, {"deaths": "g*I"}, name="plague in Bombay")
    data = oj.Data(np.arange(31.0), {"deaths": deaths})
    return oj.Problem(model, data, positive=True, noise="negbinomial(a)", bounds={"S": (0, 1e6)})  # the city's people


def _eyam() -> oj.Problem:
    model = oj.Model({"S": "-b*S*I", "I": "b*S*I - g*I"}, {"susceptible": "S", "ill": "I"}, name="plague in Eyam")
    months = [0, 0.5, 1, 1.5, 2, 2.5, 3, 4]
    susceptible = [254, 235, 201, 153.5, 121, 108, 97, 83]
    return oj.Problem(
        model, oj.Data(months, {"susceptible": susceptible, "ill": [7, 14.5, 22, 29, 21, 8, 8, 0]}), positive=True
    )


def _pine() -> oj.Problem:
    model = oj.Model({"h": "k*(A - h)"}, {"height": "h"}, name="growth of a pine")
    return oj.Problem(model, oj.Data([3, 5, 10, 15, 20, 25], {"height": [4.51, 10.89, 28.72, 41.74, 52.70, 60.92]}))


def _misra() -> oj.Problem:
    pressure = [77.6, 114.9, 141.1, 190.8, 239.9, 289.0, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760.0]
    volume = [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.40, 75.47, 81.78]
    return oj.Problem(APPROACH, oj.Data(pressure, {"d": volume}, start=0))


def _box() -> oj.Problem:
    return oj.Problem(APPROACH, oj.Data([1, 2, 3, 5, 7, 10], {"d": [109, 149, 149, 191, 213, 224]}, start=0))


def _pasture() -> oj.Problem:
    days = [9, 14, 21, 28, 42, 57, 63, 70, 79]
    return oj.Problem(LOGISTIC, oj.Data(days, {"y": [8.93, 10.80, 18.59, 22.33, 39.35, 56.11, 61.73, 64.62, 67.08]}))


def _onions() -> oj.Problem:
    weights = [16.08, 33.83, 65.80, 97.20, 191.55, 326.20, 386.87, 520.53, 590.03, 651.92, 724.93, 699.56, 689.96]
    model = oj.Model({"w": "r/m*w*(1 - (w/A)**m)"}, {"weight": "w"}, name="Richards growth")
    return oj.Problem(model, oj.Data(np.arange(1.0, 16.0), {"weight": [*weights, 637.56, 717.41]}), positive=True)


def _pinene() -> oj.Problem:
    model = oj.Model(
        {
            "P": "-(k1 + k2)*P",
            "D": "k1*P",
            "A": "k2*P - (k3 + k4)*A + k5*Q",
            "Y": "k3*A",
            "Q": "k4*A - k5*Q",
        },
        {"pinene": "P", "dipentene": "D", "allo_ocimene": "A", "pyronene": "Y", "dimer": "Q"},
        initial={"P": 100, "D": 0, "A": 0, "Y": 0, "Q": 0},
        name="alpha-pinene",
    )
    minutes = [1230, 3060, 4920, 7800, 10680, 15030, 22620, 36420]
    percent = {
        "pinene": [88.35, 76.4, 65.1, 50.4, 37.5, 25.9, 14.0, 4.5],
        "dipentene": [7.3, 15.6, 23.1, 32.9, 42.7, 49.1, 57.4, 63.1],
        "allo_ocimene": [2.3, 4.5, 5.3, 6.0, 6.0, 5.9, 5.1, 3.8],
        "pyronene": [0.4, 0.7, 1.1, 1.5, 1.9, 2.2, 2.6, 2.9],
        "dimer": [1.75, 2.8, 5.8, 9.3, 12.0, 17.0, 21.0, 25.7],
    }
    return oj.Problem(model, oj.Data(minutes, percent, start=0), positive=True)


def _methanol() -> oj.Problem:
    model = oj.Model(
        {
            "A": "-(2*k2 - k1*B/((k2 + k5)*A + B) + k3 + k4)*A",
            "B": "k1*A*(k2*A - B)/((k2 + k5)*A + B) + k3*A",
            "C": "k1*A*(B + k5*A)/((k2 + k5)*A + B) + k4*A",
        },
        {"oxygenates": "A", "olefins": "B", "aromatics": "C"},
        initial={"A": 1, "B": 0, "C": 0},
        name="methanol to hydrocarbons",
    )
    times = [0.050, 0.065, 0.080, 0.123, 0.233, 0.273, 0.354, 0.397, 0.418, 0.502, 0.553, 0.681, 0.750, 0.916, 0.937]
    parts = {
        "oxygenates": [0.7085, 0.5971, 0.5537, 0.3684, 0.1712, 0.1198, 0.0747, 0.0529, 0.0415, 0.0261, 0.0208, 0.0085],
        "olefins": [0.1621, 0.1855, 0.1989, 0.2845, 0.3491, 0.3098, 0.3576, 0.3347, 0.3388, 0.3557, 0.3483, 0.3836],
        "aromatics": [0.0811, 0.0965, 0.1198, 0.1535, 0.2097, 0.2628, 0.2467, 0.2884, 0.2757, 0.3167, 0.2954, 0.2950],
    }
    parts["oxygenates"] += [0.0053, 0.0019, 0.0018, 0.0006]
    parts["olefins"] += [0.3611, 0.3609, 0.3485, 0.3698]
    parts["aromatics"] += [0.2937, 0.2831, 0.2846, 0.2899]
    return oj.Problem(model, oj.Data([*times, 1.122], parts, start=0), positive=True)


def _gas_oil() -> oj.Problem:
    model = oj.Model(
        {"A": "-(k1 + k3)*A**2", "Q": "k1*A**2 - k2*Q"},
        {"gas_oil": "A", "gasoline": "Q"},
        initial={"A": 1, "Q": 0},
        name="catalytic cracking",
    )
    times = [0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.225, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.65, 0.75]
    oil = [0.8105, 0.6208, 0.5258, 0.4345, 0.3903, 0.3342, 0.3034, 0.2735, 0.2405, 0.2283, 0.2071, 0.1669, 0.1530]
    oil += [0.1339, 0.1265, 0.1200, 0.0990, 0.0870, 0.0770, 0.0690]
    gasoline = [0.2000, 0.2886, 0.3010, 0.3215, 0.3123, 0.2716, 0.2551, 0.2258, 0.1959, 0.1789, 0.1457, 0.1198, 0.0909]
    gasoline += [0.0719, 0.0561, 0.0460, 0.0280, 0.0190, 0.0140, 0.0100]
    return oj.Problem(
        model, oj.Data([*times, 0.85, 0.95], {"gas_oil": oil, "gasoline": gasoline}, start=0), positive=True
    )


def _nitric_oxide() -> oj.Problem:
    model = oj.Model(
        {"y": "k1*(126.2 - y)*(91.9 - y)**2 - k2*y**2"}, {"d": "y"}, initial={"y": 0}, name="oxidation of nitric oxide"
    )
    minutes = [1, 2, 3, 4, 5, 6, 7, 9, 11, 14, 19, 24, 29, 39]
    drop = [1.4, 6.3, 10.5, 14.2, 17.6, 21.4, 23.0, 27.0, 30.5, 34.4, 38.8, 41.6, 43.5, 45.3]
    return oj.Problem(model, oj.Data(minutes, {"d": drop}, start=0), positive=True)


def _barnes() -> oj.Problem:
    model = oj.Model({"x": "k1*x - k2*x*y", "y": "k2*x*y - k3*y"}, {"prey": "x", "predators": "y"}, name="Barnes")
    prey = [1.0, 1.1, 1.3, 1.1, 0.9, 0.7, 0.5, 0.6, 0.7, 0.8, 1.0]
    predators = [0.3, 0.35, 0.4, 0.5, 0.5, 0.4, 0.3, 0.25, 0.25, 0.3, 0.35]
    return oj.Problem(model, oj.Data(0.5 * np.arange(11.0), {"prey": prey, "predators": predators}), positive=True)


_NIST = "NIST Statistical Reference Datasets"

PUBLISHED: dict[str, Published] = {
    "theophylline": Published(
        "Theophylline after one oral dose, twelve subjects pooled",
        "pharmacology",
        "A. J. Boeckmann, L. B. Sheiner and S. L. Beal, NONMEM Users Guide, part V (1994); R's `Theoph`",
        "How fast is the drug absorbed (`ka`) and eliminated (`ke`), and into which volume (`V`)? One set of values "
        "for twelve people cannot explain all of them, and the second answer says so.",
        _example("theophylline"),
        meaning="Half of the drug is eliminated in nine hours (log 2/`ke`) and absorbed in half an hour. But these "
        "are the values of nobody: people differ, and [a population](tutorials/theophylline.md) says how "
        "much.",
    ),
    "indomethacin": Published(
        "Indomethacin after an injection, six subjects pooled",
        "pharmacology",
        "K. C. Kwan and others, J. Pharmacokinet. Biopharm. 4 (1976) 255; R's `Indometh`",
        "A fast phase, in which the drug spreads into tissue (`k12`, `k21`), and a slow one, in which it is eliminated "
        "(`k10`).",
        _indomethacin,
        meaning="Somewhat more than half of what leaves the blood is eliminated (`k10` against `k12`); the rest goes "
        "into tissue and comes back slowly, which makes the late part of the curve.",
    ),
    "influenza": Published(
        "Influenza in a boarding school",
        "epidemiology",
        "British Medical Journal, 4 March 1978, p. 587",
        "How contagious was it, and for how long was a boy in bed?",
        _example("influenza"),
        meaning="A boy was contagious for two days (1/`gamma`) and at the beginning infected four others "
        "(`beta/gamma`).",
    ),
    "bombay": Published(
        "Plague in Bombay, deaths per week",
        "epidemiology",
        "W. O. Kermack and A. G. McKendrick, Proc. R. Soc. A 115 (1927) 700",
        "The epidemic that the first SIR model was fitted to: `b` is the rate of infection, `g` that of removal, and "
        "`S` at the start how many could fall ill.",
        _bombay,
        meaning="Deaths determine `b` and the ratio `S/g`, but neither `S` nor `g`: with a million people at risk the"
        " curve asks for an illness of two hours (1/`g` of a week), which nobody believes. The curve is right"
        " and the values are not, as N. Bacaër showed (J. Math. Biol. 64 (2012) 403).",
    ),
    "eyam": Published(
        "Plague in Eyam, 1666",
        "epidemiology",
        "G. F. Raggett, Bull. Inst. Math. Appl. 18 (1982) 221",
        "A village that closed itself off: `b` from person to person, `g` the rate of dying.",
        _eyam,
        meaning="An ill person lived for ten days (1/`g` of a month) and at the beginning infected 1.6 others "
        "(`b*S/g`); a third of the village was left.",
    ),
    "hares": Published(
        "Hares and lynxes, pelts of the Hudson's Bay Company",
        "ecology",
        "E. P. Odum, Fundamentals of Ecology (1953), after D. A. MacLulich (1937)",
        "The cycle of predators and prey from twenty-one years of trade.",
        _example("hare_lynx"),
        meaning="Without lynxes hares would multiply by 1.7 a year; without hares lynxes would be half as many after "
        "ten months (log 2/`gamma`). Counts scatter by a fifth.",
    ),
    "barnes": Published(
        "Predators and prey, the problem of Barnes",
        "ecology",
        "J. M. Varah, SIAM J. Sci. Stat. Comput. 3 (1982) 28",
        "Eleven samples with one significant digit of a cycle that is hardly over.",
        _barnes,
        meaning="The rates are known to about a tenth if the model holds; but the prey swing more than it allows, so "
        "that these intervals promise too much.",
    ),
    "yeast": Published(
        "Growth of yeast",
        "ecology",
        "T. Carlson, Biochem. Z. 57 (1913) 313, after R. Pearl (1927)",
        "The classical example of logistic growth: rate `r` and capacity `K`.",
        _yeast,
        meaning="The yeast doubles in 1.3 hours at first (log 2/`r`) and ends at 663.",
    ),
    "census": Published(
        "Population of the United States, 1790 to 1970",
        "demography",
        "U.S. Census; R's `uspop`",
        "A logistic curve that looks right for a century and is not: the residuals tell.",
        _census,
        meaning="The country passed this capacity about 2012: a curve that runs through a century and a half says "
        "little about the next.",
    ),
    "orange": Published(
        "Circumference of five orange trees",
        "agriculture",
        "N. R. Draper and H. Smith, Applied Regression Analysis (1998); R's `Orange`",
        "One rate and one capacity for five trees that differ from the start.",
        _orange,
        meaning="One rate and one capacity are enough for all five trees once each may begin at a size of its own. "
        "The capacity is known to a fourth only, since no tree has reached it.",
    ),
    "chick": Published(
        "Weight of a chick",
        "agriculture",
        "M. Crowder and D. Hand, Analysis of Repeated Measures (1990); R's `ChickWeight`, chick 1",
        "Growth that is not yet bounded: the capacity is only just determined.",
        _chick,
        meaning="The chick grows by 9 % a day at first. How heavy it will become cannot be told from three weeks.",
    ),
    "pine": Published(
        "Height of a loblolly pine",
        "forestry",
        "F. H. Kung, Proc. Stat. Comput. Section, ASA (1986); R's `Loblolly`, seed 301",
        "Growth towards a final height `A`.",
        _pine,
        meaning="The tree will be 77 to 114 feet high, and is half as high after 18 years.",
    ),
    "pasture": Published(
        "Regrowth of a pasture",
        "agriculture",
        f"D. Ratkowsky, Nonlinear Regression Modeling (1983); {_NIST}, Rat42",
        "Logistic growth; NIST certifies the least-squares values.",
        _pasture,
        meaning="These are the estimates of NIST, without its starting values.",
    ),
    "onions": Published(
        "Growth of onions",
        "agriculture",
        f"D. Ratkowsky, Nonlinear Regression Modeling (1983); {_NIST}, Rat43",
        "Richards' curve, whose exponent `m` says where growth is fastest; NIST ranks it as hard.",
        _onions,
        meaning="These are the estimates of NIST. Fifteen points say when onions stop growing and how heavy they are,"
        " but hardly on which of many curves: `m` may be a third or three times as large.",
    ),
    "oxygen": Published(
        "Biochemical oxygen demand",
        "chemistry",
        "D. M. Bates and D. G. Watts, Nonlinear Regression Analysis (1988); R's `BOD`",
        "Six points that leave a wide, curved range for rate and final demand.",
        _oxygen,
        meaning="Six points leave both values vague, and vague together: a fast rate goes with a small demand. Look "
        "at both at once, not at two intervals.",
    ),
    "box": Published(
        "Biochemical oxygen demand, another river",
        "chemistry",
        f"G. P. Box, W. G. Hunter and J. S. Hunter, Statistics for Experimenters (1978); {_NIST}, BoxBOD",
        "Known for ending in wrong minima; NIST ranks it as hard.",
        _box,
        meaning="These are the estimates of NIST. From its first start many programs end elsewhere; here no start is "
        "asked for.",
    ),
    "misra": Published(
        "Adsorption in a dental study",
        "chemistry",
        f"D. Misra, NIST (1978); {_NIST}, Misra1a",
        "Volume against pressure, far from saturation: rate and capacity are nearly one.",
        _misra,
        meaning="Only a third of the capacity was reached, and still both values are known to 3 %. But the residuals "
        "bend: the law of first order is not the whole truth.",
    ),
    "vapour": Published(
        "Vapour pressure of mercury",
        "physics",
        "CRC Handbook of Chemistry and Physics; R's `pressure`",
        "Over seven powers of ten with errors in proportion.",
        _vapour,
        meaning="This is Antoine's law, differentiated: it holds over seven powers of ten.",
    ),
    "pinene": Published(
        "Isomerisation of alpha-pinene",
        "chemistry",
        "R. E. Fuguitt and J. E. Hawkins, J. Am. Chem. Soc. 69 (1947) 319; G. E. P. Box and others (1973)",
        "Five species, five rates, measured together.",
        _pinene,
        meaning="The first two rates are known to 4 %, those of the reversible step to a third. Pyronene does not "
        "follow the curve, so that something is missing in the model or wrong in its measurements.",
    ),
    "methanol": Published(
        "Methanol to hydrocarbons",
        "chemistry",
        "C. D. Maria and others (1989), as problem of COPS, E. D. Dolan and others (2004)",
        "Five rates, of which some end at zero: reactions that the data do not need.",
        _methanol,
        meaning="`k5` ends at zero: the data do not need this reaction, and say how fast it may be at most.",
    ),
    "gas_oil": Published(
        "Catalytic cracking of gas oil",
        "chemistry",
        "I. B. Tjoa and L. T. Biegler, Ind. Eng. Chem. Res. 30 (1991) 376; COPS",
        "Second-order cracking into gasoline, which is cracked in turn.",
        _gas_oil,
        meaning="Of what is cracked, 92 % becomes gasoline (`k1/(k1 + k3)`), which is cracked in turn nearly as fast.",
    ),
    "nitric_oxide": Published(
        "Oxidation of nitric oxide",
        "chemistry",
        "M. Bodenstein (1922), after R. Bellman and others, Math. Biosci. 1 (1967) 71",
        "A reaction of the third order and its way back, by the drop of pressure.",
        _nitric_oxide,
        meaning="The curve passes close to all points, but the first ones lie off it systematically: the mechanism is"
        " not quite this one.",
    ),
}
"""Those of the gallery, by a short name."""

FURTHER: dict[str, Callable[[], oj.Problem]] = {
    "theophylline, all local": _example("theophylline", local=["ka", "ke", "V"]),
    "orange trees, all local": lambda: _orange(local=["r", "K"]),
    "indomethacin, first": _first_indomethacin,
    "puromycin": _puromycin,
}
"""The same data posed in other ways."""
