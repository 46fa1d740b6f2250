"""Drawn: small models that nobody has chosen, and what exhaustive search over a small field tells of them."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import numpy as np

from odejet import Event, Model

PRIME = 31
"""With roots of unity of order 2, 3 and 5, so that most conjugates of a solution are in the field."""

INVERSE = np.array([0, *(pow(i, -1, PRIME) for i in range(1, PRIME))])

ORDER = 10
"""Derivatives that are compared."""


def model(seed: int) -> Model:
    """Two to four states, polynomial and rational rates, one or two outputs; some with inputs and known values."""
    draw = random.Random(f"models/{seed}")
    states = [f"x{i}" for i in range(1, draw.choice([2, 2, 2, 3, 3, 4]) + 1)]
    parameters = [f"p{i}" for i in range(1, draw.choice([2, 3, 3, 4, 5]) + 1)]
    inputs = {"u": "exp(-t)"} if draw.random() < 0.3 else {}

    def parameter() -> str:
        return draw.choice(parameters)

    def term() -> str:
        p, q, x, z = parameter(), parameter(), draw.choice(states), draw.choice(states)
        forms = [f"{p}*{x}"] * 5 + [f"{p}*{x}*{z}"] * 3 + [f"{p}*{x}/({q} + {z})", p, x, f"{p}**2*{x}", f"{p}*{q}*{x}"]
        return draw.choice(forms)

    def rate(place: int) -> str:
        text = draw.choice(["-", ""]) + term()
        for _ in range(draw.choice([0, 1, 1, 2])):
            text += draw.choice([" - ", " + "]) + term()
        if draw.random() < 0.6 and place + 1 < len(states):
            text += f" + {parameter()}*{states[place + 1]}"
        if inputs and (place == 0 or draw.random() < 0.2):
            text += draw.choice([" + u", f" + {parameter()}*u", f" + u*{states[place]}"])
        return text

    def output() -> str:
        x, z = draw.choice(states), draw.choice(states)
        return draw.choice(
            [x, x, states[0], f"{x} + {z}", f"{parameter()}*{x}", f"{x}*{z}", f"{x}/(1 + {z})", f"{x}**2"]
        )

    rates = {state: rate(i) for i, state in enumerate(states)}
    outputs = {f"y{j}": output() for j in range(draw.choice([1, 1, 2]))}
    used = set(re.findall(r"p\d+", " ".join([*rates.values(), *outputs.values()])))
    some = draw.random() < 0.5
    initial = {state: draw.choice([0, 1, 2, "1/3"]) for state in states if some and draw.random() < 0.4}
    fixed = {p: draw.choice([1, 2, "3/2"]) for p in sorted(used) if draw.random() < 0.15}
    return Model(rates, outputs, inputs, initial=initial, fixed=fixed)


def switching(seed: int) -> Model:
    """One to three states whose rates or outputs switch, some with events at known and unknown times."""
    draw = random.Random(f"switching/{seed}")
    states = [f"x{i}" for i in range(1, draw.choice([1, 1, 2, 2, 3]) + 1)]
    parameters = [f"p{i}" for i in range(1, draw.choice([2, 3, 3, 4, 5]) + 1)]

    def switch() -> str:
        p, q, r, x, z = *(draw.choice(parameters) for _ in range(3)), draw.choice(states), draw.choice(states)
        return draw.choice([
            f"{p}*max({x}, 0)", f"{p}*sqrt(max({x}, 0))", f"{p}*sqrt(abs({x}))", f"{p}*abs({x})",
            f"max({p}*{x}, {q}*{z})", f"min({p}, {q}*{x})", f"piecewise({p}*{x}, {x} > {q}, {r}*{x})",
            f"piecewise({p}, {x} > 1, {q})", f"piecewise({p}*{x}, t < 2, {q}*{z})", f"{p}*sign({x} - {q})",
            f"piecewise({p}*{q}*{x}, t < {r}, {x})", f"{p}*max({x} - {q}, 0)**2", f"{p}*{q}*max({x}, 0.5)",
            f"{p}*max({x} - {q}, 0)/({r} + max({x} - {q}, 0))", f"{p}*max({x}, 0)**1.5",
            f"{p}*log(max({x}, 0.3))", f"{p}*sqrt(max(1 - {x}, 0))",
        ])  # fmt: skip

    def rate(state: str) -> str:
        text = f"-{draw.choice(parameters)}*{state}"
        if draw.random() < 0.75:
            text += draw.choice([" - ", " + "]) + switch()
        if draw.random() < 0.4:
            text += f" + {draw.choice(parameters)}*{draw.choice(states)}"
        return text + (f" + {draw.choice(parameters)}" if draw.random() < 0.25 else "")

    def output() -> str:
        x, z, p = draw.choice(states), draw.choice(states), draw.choice(parameters)
        return draw.choice([x, x, x, states[0], f"{p}*{x}", f"{x}/{p}", f"abs({x})", f"max({x}, {p})", f"{x} + {z}"])

    rates = {state: rate(state) for state in states}
    outputs = {f"y{j}": output() for j in range(draw.choice([1, 1, 2]))}
    events, held = [], {}
    for i in range(draw.choice([0, 0, 0, 1, 2])):
        x, p, q = draw.choice(states), draw.choice(parameters), draw.choice(parameters)
        match draw.choice(["lag", "amount", "infusion", "every", "known"]):
            case "lag":
                events.append(Event(at=p, set={x: f"{x} + 2"}))
            case "amount":
                events.append(Event(at=1.3, set={x: f"{x} + {p}*{q}"}))
            case "known":
                events.append(Event(at=1.3, set={x: f"{x} + 2"}))
            case "every":
                events.append(Event(at=0.4, every=p, set={x: f"{x} + {q}"}))
            case "infusion":
                r = f"r{i}"
                held[r], rates[x] = 0, f"{rates[x]} + {r}"
                events += [
                    Event(at=0.3, set={r: f"{r} + 3/{p}"}),
                    Event(at=f"0.3 + {p}", set={r: f"{r} - 3/{p}"}),
                ]
    used = set(re.findall(r"p\d+", " ".join([*rates.values(), *outputs.values(), *map(repr, events)])))
    initial = {state: draw.choice([0, 1, 2, -1]) for state in states if draw.random() < 0.3}
    fixed = {p: draw.choice([1, 2, 0.5]) for p in sorted(used) if draw.random() < 0.15}
    return Model(rates, outputs, initial=initial, fixed=fixed | held, events=events)


class Series:
    """Truncated power series modulo the prime, at many points at once; `invalid` marks those with a zero divisor."""

    def __init__(self, terms: list[np.ndarray], invalid: np.ndarray) -> None:
        self.terms, self.invalid = terms, invalid

    def of(self, other: Series | int) -> Series:
        if isinstance(other, Series):
            return other
        zero = np.zeros_like(self.terms[0])
        return Series([zero + other % PRIME, *([zero] * (len(self.terms) - 1))], self.invalid)

    def __add__(self, other: Series | int) -> Series:
        return Series([(a + b) % PRIME for a, b in zip(self.terms, self.of(other).terms, strict=True)], self.invalid)

    def __neg__(self) -> Series:
        return Series([-a % PRIME for a in self.terms], self.invalid)

    def __sub__(self, other: Series) -> Series:
        return self + (-other)

    def __mul__(self, other: Series | int) -> Series:
        a, b = self.terms, self.of(other).terms
        return Series([sum(a[i] * b[k - i] for i in range(k + 1)) % PRIME for k in range(len(a))], self.invalid)

    def __truediv__(self, other: Series) -> Series:
        below = other.terms
        self.invalid |= below[0] == 0
        found: list[np.ndarray] = []
        for k in range(len(below)):
            rest = self.terms[k] - sum((below[j] * found[k - j] for j in range(1, k + 1)), np.zeros_like(below[0]))
            found.append(rest * INVERSE[below[0]] % PRIME)
        return Series(found, self.invalid)

    def __pow__(self, times: int) -> Series:
        return self if times == 1 else self * self ** (times - 1)

    __radd__, __rmul__ = __add__, __mul__


def residue(value: object) -> int:
    fraction = Fraction(str(value))
    return fraction.numerator * pow(fraction.denominator, -1, PRIME) % PRIME


def jets(model: Model, points: dict[str, np.ndarray], draw: random.Random) -> tuple[np.ndarray, np.ndarray]:
    """Taylor coefficients of all outputs at all points, one row each, and which points are valid."""
    zero = np.zeros_like(next(iter(points.values())))
    invalid = zero != 0
    inputs = {name: [zero + draw.randrange(PRIME) for _ in range(ORDER + 1)] for name in model.inputs}
    states = {s: [points[s] if s in points else zero + residue(model.initial[s])] for s in model.states}
    numbers = {name: zero + residue(value) for name, value in model.fixed.items()}
    numbers |= {name: points[name] for name in model.parameters}
    for k in range(ORDER + 1):
        known = {s: Series(list(terms), invalid) for s, terms in states.items()}
        known |= {name: Series([value, *([zero] * k)], invalid) for name, value in numbers.items()}
        known |= {name: Series(terms[: k + 1], invalid) for name, terms in inputs.items()}
        if k == ORDER:
            outputs = [eval(str(text), {}, known) for text in model.outputs.values()]
            return np.stack([term for output in outputs for term in output.terms]), ~invalid
        for state, text in model.states.items():
            states[state].append(eval(str(text), {}, known).terms[k] * INVERSE[k + 1] % PRIME)
    raise AssertionError


def values(model: Model, seed: int, points: int = 15) -> dict[str, list[int]]:
    """For every unknown the numbers of values that share the outputs with those of random points, in order."""
    draw = random.Random(seed)
    names = model.unknowns
    grid = np.indices((PRIME,) * len(names)).reshape(len(names), -1)
    outputs, valid = jets(model, dict(zip(names, grid, strict=True)), draw)
    counts: dict[str, list[int]] = {name: [] for name in names}
    for _ in range(10 * points):
        place = draw.randrange(grid.shape[1])
        if not valid[place] or not grid[:, place].all() or len(counts[names[0]]) == points:
            continue
        alike = grid[:, valid & (outputs == outputs[:, [place]]).all(axis=0)]
        for name, row in zip(names, alike, strict=True):
            counts[name].append(len(set(row.tolist())))
    return {name: sorted(found) for name, found in counts.items()}
