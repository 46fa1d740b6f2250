"""Text: a fit as a table and a few lines, for terminals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

from odejet.attach import attach
from odejet.decide.answer import NO_SEARCH
from odejet.decide.statistics import TOLD, OutputCheck
from odejet.errors import DataError, ModelError
from odejet.model.expressions import names
from odejet.numerals import between, duration, measured, short, significant, spread, whole
from odejet.report.combinations import readable
from odejet.result import Estimate, Fit
from odejet.result.intervals import asked_of
from odejet.tables import table
from odejet.uncertainty.doubts import Doubt
from odejet.uncertainty.practical import DETERMINED, UNDETERMINED, Practical, kind

MAX_ROWS = 200
"""Unknowns that a table shows."""

BESIDE = 6
"""Solutions that a table shows side by side."""

HEAD = ("quantity", "value", "± stderr", "95 % interval", "verdict")


@attach(Fit.summary)
def summary(fit: Fit, verbose: bool = False) -> str:
    """The table of estimates, then the certificate and how the fit came about."""
    with suppress(ModelError, DataError):  # there may be no fit, or one that cannot be simulated
        fit.glance, fit._doubted  # noqa: B018 - what they find is known from now on
    return _text(fit, verbose)


@attach(Fit.__str__)
def shown(fit: Fit) -> str:
    """Summarise from what was computed already."""
    return _text(fit, verbose=False)


def _text(fit: Fit, verbose: bool) -> str:
    rows = [HEAD, *(row(fit, label) for label in ordered(fit)[:MAX_ROWS])]
    more = [f"... and {len(fit.labels) - MAX_ROWS} more"] if len(fit.labels) > MAX_ROWS else []
    told = [f"{subject}: {words}" for subject, words in notes(fit, verbose).items()]
    told[0:1] = verdicts(fit)
    several = [*side_by_side(fit, "solution", fit.solutions), *side_by_side(fit, "rival", fit.rivals, answer=True)]
    lines = [headline(fit), "", *table(rows, right=(1, 2)), *more, "", *told, *several]
    return "\n".join(f"  {line}".rstrip() if i else line for i, line in enumerate(lines))


def verdicts(fit: Fit) -> list[str]:
    """The certificate; where there is none, the two answers that it would take, with their reasons, and advice."""
    if fit.certified or not (fit.search.reasons or fit.adequacy.reasons):
        return [f"certificate: {fit.certificate.sentence}"]
    against = [*fit.search.reasons, *(reason.sentence for reason in fit.adequacy.reasons)]
    others = [reason for reason in fit.certificate.reasons if reason not in against]
    lines = [f"certificate: not granted{': ' * bool(others)}{'; '.join(others)}"]
    for subject, answer, reasons in (
        ("is it the best fit?", fit.search, fit.search.reasons),
        ("does the model explain the data?", fit.adequacy, [one.sentence for one in fit.adequacy.reasons]),
    ):
        lines.append(f"{subject} {answer}{', since' * (len(reasons) > 1)}{': ' * (len(reasons) == 1)}")
        if len(reasons) == 1:
            lines[-1] += reasons[0]
        else:
            lines += [f"- {reason}" for reason in reasons]
    return lines + [f"what to do: {words}" for words in fit.adequacy.advice]


def headline(fit: Fit) -> str:
    """What the fit is, in one line."""
    count, points = len(fit.labels), fit.points
    what = f"{count} unknown{'s' * (count != 1)} from {points} measurement{'s' * (points != 1)}"
    return f"{fit.model.name}: {state(fit)}, {what} in {duration(fit.seconds)}"


def state(fit: Fit) -> str:
    if not fit.found:
        return "no fit"
    if fit.provenance == NO_SEARCH:
        return "no search led to these values"
    if not fit.certificate.granted:
        return "fitted, not certified"
    return "certified as far as data can tell" if "none" in map(fit.kind, fit.labels) else "certified"


def ordered(fit: Fit) -> list[str]:
    """The labels of all unknowns: what holds in every experiment comes before what each has for itself."""
    return [one.label for one in sorted(fit.unknowns, key=lambda one: len(fit.sds) > 1 and one.experiment is not None)]


def row(fit: Fit, label: str) -> tuple[str, str, str, str, str]:
    """One unknown: digits are shown as far as the standard error lets them mean something."""
    value, error = fit.values[label], fit.stderr[label]
    if label in fit.without_error:
        return label, short(value), "unknown", "unknown", remark(fit, label)
    if not math.isfinite(error):
        ends = fit.interval(label)
        bounded = between(*ends, math.inf) if any(map(math.isfinite, ends)) else "any value"
        return label, short(value, 3), "unknown", bounded, remark(fit, label)
    ends, known = interval(fit, label), error
    if label in doubted(fit):
        known = spread(*ends) or error
    # Digits of what is not determined would say what nobody knows.
    shown = roughly(value) if grade(fit, label) == UNDETERMINED else measured(value, known)
    return label, shown, significant(error, 2), between(*ends, known, value), remark(fit, label)


def doubted(fit: Fit) -> Mapping[str, Doubt]:
    """Intervals by curvature that are not to be trusted, if they have been looked at."""
    return vars(fit).get("_doubted") or {}


def interval(fit: Fit, label: str) -> tuple[float, float]:
    """The interval that a table shows: by curvature, or where that is wrong about the one that the likelihood has."""
    own = doubted(fit).get(label)
    return fit.interval(label) if own is None else own.interval


def roughly(value: float) -> str:
    """A value of which only the size means something."""
    return f"≈ {short(value, 1)}"


def remark(fit: Fit, label: str) -> str:
    """The verdict, and what else is to be known of an estimate."""
    notes = [fit.kind(label), "at its bound" if fit.at_bound(label) else ""]
    if not notes[0] and label in fit.undetermined:
        notes.append("not determined")
    elif label in fit.without_error:
        notes.append("of unknown accuracy")
    elif anywhere(fit, label):
        notes.append("anywhere in its bounds")
    elif label not in fit.undetermined and not fit.at_bound(label) and grade(fit, label) not in ("", DETERMINED):
        notes.append(grade(fit, label))
    return ", ".join(note for note in notes if note)


def grade(fit: Fit, label: str) -> str:
    """How well the data determine an unknown, by its interval; empty without a fit."""
    if not fit.found:
        return ""
    return kind(fit.values[label], interval(fit, label))


def facts(fit: Fit) -> dict[str, str]:
    """The numbers of a fit as a whole, by what they are."""
    spent = compiled(fit)
    told = {
        "unknowns": str(len(fit.labels)),
        "measurements": f"{fit.points:,}",
        "experiments": str(len(fit.data.experiments)),
        "χ² / d.o.f.": f"{whole(fit.chi_square)} / {whole(fit.degrees_of_freedom)}",
        "AIC": f"{fit.aic:.2f}",
        "BIC": f"{fit.bic:.2f}",
        "best fit": str(fit.search),
        "explains the data": str(fit.adequacy),
        "agreeing starts": str(fit.certificate.agreeing or ""),
        "time": duration(fit.seconds),
        "of which compiling": duration(spent) if spent else "",
    }
    return {name: value for name, value in told.items() if value and "nan" not in value}


def compounds(fit: Fit) -> str:
    """What the data determine of unknowns that they leave loose one by one, if it has been looked for."""
    known: Practical | None = vars(fit).get("practical") or vars(fit).get("glance")
    return "; ".join(one.sentence for one in known.compounds) if known else ""


def named(fit: Fit, most: int = 8) -> str:
    """The values of named expressions that do not change in time, with their intervals."""
    told = []
    constants = {*fit.model.parameters, *fit.model.fixed}
    for name in [name for name, value in fit.model.expressions.items() if constants.issuperset(names(value))][:most]:
        with suppress(ModelError):  # a parameter may have a value of its own in each experiment
            value, _ = asked_of(fit, name).at(fit.estimates)
            ends = fit.interval(name)
            told.append(f"{name} {measured(value, spread(*ends))} {between(*ends, spread(*ends), value)}")
    return ", ".join(told)


def doubts(fit: Fit, most: int = 8) -> str:
    """Which intervals by curvature are not to be trusted, if they have been looked at."""
    named = [f"{label} ({one.words})" for label, one in doubted(fit).items()]
    if not named:
        return ""
    more = [f"{len(named) - most} more"] if len(named) > most else []
    return (
        f"the intervals by curvature of {', '.join(named[:most] + more)}; the table has about those of the "
        "likelihood, and fit.profile exact ones"
    )


def anywhere(fit: Fit, label: str) -> bool:
    """Whether the data say no more of an unknown than its bounds do."""
    bounds = fit.bounds.get(label, (-math.inf, math.inf))
    return fit.found and math.isfinite(sum(map(abs, bounds))) and interval(fit, label) == bounds


def notes(fit: Fit, verbose: bool = False) -> dict[str, str]:
    """What stands under the table, by subject; if asked for, with all that was tried and the time of every stage."""
    told = {"certificate": fit.certificate.sentence}
    if fit.message != fit.certificate.message and fit.message not in state(fit):
        told["ending"] = fit.message
    if verbose:
        told["answered by"] = fit.provenance.sentence
    if columns := fit.problem.by_columns:
        without = ", ".join(f"{name!r}" for name in columns)
        it = "it" if len(columns) == 1 else "them"
        told["known"] = f"{', '.join(columns)} from columns of the data; data.without({without}) has {it} estimated"
    if fit.problem.priors:
        told["priors"] = f"on {', '.join(fit.problem.priors)}: the estimate is the maximum a posteriori"
    if len(fit.solutions) > 1:
        told["solutions"] = f"{len(fit.solutions)} sets of values explain the data equally well"
    if fit.rivals:
        optima = "another optimum is" if len(fit.rivals) == 1 else f"{len(fit.rivals)} other optima are"
        told["rivals"] = f"{optima} nearly as likely, which no interval around this one has"
    if fit.found and fit.undetermined:
        told["not determined"] = f"{', '.join(fit.undetermined)}; other values of them give the same outputs"
    if fit.verdict is not None and fit.verdict.combinations:
        told["known in combination"] = ", ".join(map(readable, fit.verdict.combinations))
    if doubted := doubts(fit):
        told["not to be trusted"] = doubted
    if known := compounds(fit):
        told["determined in combination"] = known
    if fit.found and (values := named(fit)):
        told["named"] = values
    if fit.found:
        told["noise"] = noise(fit)
    if math.isfinite(fit.chi_square) and fit.degrees_of_freedom >= TOLD:
        told["chi-square"] = (
            f"{whole(fit.chi_square)} for {whole(fit.degrees_of_freedom)} degrees of freedom"
            f"{' (noise taken from the residuals)' if all(map(from_residuals, fit.certificate.outputs)) else ''}, "
            f"{f'AIC {fit.aic:.2f}, BIC {fit.bic:.2f}' if math.isfinite(fit.aic) else 'no AIC and no BIC'}"
        )
    if fit.census and verbose:
        told |= {f"census of {stage}": counts(outcomes) for stage, outcomes in fit.census.items()}
    told["time"] = duration(fit.seconds) + (f" ({stages(fit)})" if len(fit.stages) > 1 and verbose else compiling(fit))
    return told


def compiling(fit: Fit) -> str:
    """What a first fit is told, most of whose time no later one takes."""
    return f", of which compiling took {duration(spent)}, once" if (spent := compiled(fit)) else ""


def compiled(fit: Fit) -> float:
    """Seconds that compiling took, if they are most of a fit's; else nothing."""
    spent = fit.stages.get("compile", 0.0)
    return spent if spent > max(5.0, 0.5 * fit.seconds) else 0.0


def side_by_side(fit: Fit, what: str, estimates: Sequence[Estimate], answer: bool = False) -> list[str]:
    """All estimates of a kind, a table for every few of them; beside the answer, only what differs from it."""
    if len(estimates) < 2 - answer:
        return []
    lines = []
    first = fit.solutions[:1] if answer else ()
    for begin in range(0, len(estimates), BESIDE):
        beside = (*first, *estimates[begin : begin + BESIDE])
        heads = [*(["answer"] * len(first)), *(f"{what} {begin + i + 1}" for i in range(len(beside) - len(first)))]
        rows: list[tuple[str, ...]] = [("quantity", *heads)]
        for unknown in fit.unknowns[:MAX_ROWS]:
            cells = [measured(one.value(unknown), fit.stderr[unknown.label]) for one in beside]
            if not answer or len(set(cells)) > 1:
                rows.append((unknown.label, *cells))
        rows.append(("misfit", *(f"{one.cost:.2f}" for one in beside)))
        rows.append(("bounds", *("inside" if one.inside_bounds else "outside" for one in beside)))
        lines += ["", *table(rows, right=range(1, len(rows[0])))]
    return lines


def from_residuals(check: OutputCheck) -> bool:
    """Whether the noise was taken from the residuals themselves, so that their size says nothing."""
    return math.isclose(check.chi_square, check.degrees_of_freedom, rel_tol=1e-9)


def noise(fit: Fit, most: int = 8) -> str:
    """The sds that were found, by output."""
    if len(fit.without_error) == len(fit.labels):
        return "unknown: as many unknowns as measurements leave no residuals to show it; more measurements would"
    sizes: dict[str, dict[str, str]] = {}
    for experiment, own in fit.sds.items():
        for output, sds in own.items():
            typical = sorted(sds.tolist())[len(sds) // 2] if sds.ndim else float(sds)
            shown = f"{significant(typical, 2)}{' (median)' if sds.ndim else ''}"
            sizes.setdefault(output, {})[experiment] = shown
    parts = []
    for output, found in sizes.items():
        if len(set(found.values())) == 1:  # the same wherever it was measured
            parts.append(f"{output} {next(iter(found.values()))}")
        else:
            parts += [f"{output} in {experiment} {shown}" for experiment, shown in found.items()]
    more = [f"and {len(parts) - most} more"] if len(parts) > most else []
    return "sd of " + ", ".join(parts[:most] + more)


def counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "none"


def stages(fit: Fit) -> str:
    return ", ".join(f"{stage} {duration(seconds)}" for stage, seconds in fit.stages.items())
