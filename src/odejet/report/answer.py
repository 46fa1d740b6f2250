"""Answer: what a page says of the values: estimates, what the data determine of them, and other solutions."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from odejet.clock import now
from odejet.errors import DataError, ModelError
from odejet.numerals import between, measured, short
from odejet.report import text
from odejet.report.combinations import readable
from odejet.report.markup import SMALL, gallery, left_out, more, name, soft, table, toned
from odejet.report.pictures import profile_picture
from odejet.result import Estimate, Fit
from odejet.result.fit import LEVEL
from odejet.uncertainty.doubts import doubts
from odejet.uncertainty.practical import DETERMINED, UNDETERMINED, Practical
from odejet.uncertainty.profile import Profile

DOUBT_SECONDS = 3.0
"""What looking at the ends of intervals without a profile may take."""

PROFILE_SECONDS = 20.0
"""What the profiles of a page may take together."""

MOST_PROFILES = 40
"""Quantities whose profiles a page shows."""

SAME = 0.1
"""Parts of its width by which an interval may differ from another and is still the same to the eye."""

MOST_ROWS, MOST_DRAWN = 60, 12
"""Quantities of the table, and their profiles, that stand open; the others are folded away."""

MOST_BESIDE = 12
"""Solutions that stand side by side."""

_KINDS = {"global": "good", "local": "fair", "none": "bad"}
_VERDICTS = {
    "global": "one value",
    "local": "one of several",
    "none": "cannot be known",
    "undecided": "not decided",
}


@dataclass(frozen=True, eq=False)
class Known:
    """What the data determine, and the profiles of as many unknowns as time allows."""

    practical: Practical | None = None
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)


def known(fit: Fit) -> Known:
    """Return what the data determine, as far as it can be computed: a file may hold values that cannot be simulated."""
    try:
        if not fit.found or fit.weights != "likelihood":
            return Known(doubts=fit.doubts)
        end, found = now() + PROFILE_SECONDS, fit.practical
        profiles = dict(found.profiles)
        for label in _followed(fit):
            if (
                label not in profiles
                and (left := end - now()) > 0
                and not (own := fit.profile(label, time_limit=left)).stopped
            ):
                profiles[label] = own
        return Known(
            found, {label: profiles[label] for label in text.ordered(fit) if label in profiles}, _doubts(fit, profiles)
        )
    except (ModelError, DataError):
        return Known()


def _followed(fit: Fit) -> list[str]:
    """Unknowns whose profiles are drawn: of very many, those that all experiments share."""
    labels = text.ordered(fit)
    return labels if len(labels) <= MOST_PROFILES else labels[: min(_shared(fit), MOST_PROFILES)]


def _doubts(fit: Fit, profiles: Mapping[str, Profile]) -> Mapping[str, str]:
    """Intervals that are not to be trusted, as far as no profile stands beside them."""
    if text.doubted(fit):
        return fit.doubts
    others = {label: interval for label, interval in fit.intervals().items() if label not in profiles}
    found = doubts(fit.likelihood, others, LEVEL, fit.held, DOUBT_SECONDS)
    return {label: doubt.words for label, doubt in found.items()}


def estimates(fit: Fit, found: Known) -> str:
    rows = []
    for label in text.ordered(fit):
        _, value, error, interval, _ = text.row(fit, label)
        rows.append(
            [
                name(label),
                value,
                error,
                interval,
                _profiled(fit, found, label),
                _verdict(fit, label),
                _data(fit, found, label),
            ]
        )
    heads = ["quantity", "value", "± stderr", "95 % interval", "by profile", "can it be known?", "by these data"]
    differ = [row for row in rows if row[4]]
    if differ:
        agree = "Where profiles of the likelihood give another interval than curvature does, they are to be believed."
    elif found.profiles:
        agree = "Profiles of the likelihood give the same intervals."
    right = (1, 2, 3, 4)
    shown = len(rows) if len(rows) <= MOST_ROWS else max(_shared(fit), MOST_DRAWN)
    others = more(f"{len(rows) - shown} more quantities", table(heads, rows[shown:], right)) if rows[shown:] else ""
    told = (soft(agree) if found.profiles else "") + _remarks(fit, found)
    return table(heads, rows[:shown], right) + others + told


def _shared(fit: Fit) -> int:
    """How many unknowns all experiments have in common; they stand first."""
    return sum(unknown.experiment is None for unknown in fit.unknowns)


def _profiled(fit: Fit, found: Known, label: str) -> str:
    """The interval by the likelihood, in the digits of the one by curvature, where the two differ."""
    own = found.profiles.get(label)
    if own is None:
        return ""
    low, high = own.interval()
    if all(own.open):
        return "any value"
    if any(own.open):
        return f"below {short(high, 3)}" if own.open[0] else f"above {short(low, 3)}"
    other = fit.interval(label)
    room = SAME * (high - low)
    if abs(low - other[0]) <= room and abs(high - other[1]) <= room:
        return ""
    return between(low, high, fit.stderr[label], fit.values[label])


def _verdict(fit: Fit, label: str) -> str:
    kind = fit.kind(label)
    return toned(_VERDICTS.get(kind, kind), _KINDS.get(kind, "soft")) if kind else ""


def _data(fit: Fit, found: Known, label: str) -> str:
    """What the data at hand make of an unknown."""
    words = []
    own = found.practical.findings.get(label) if found.practical is not None else None
    if label in fit.undetermined and fit.kind(label) != "none":
        words.append(toned("not determined", "bad"))
    elif label in fit.without_error:
        words.append(toned("of unknown accuracy", "bad"))
    elif own is not None and fit.kind(label) != "none":
        words.append(toned(own.kind, {DETERMINED: "good", UNDETERMINED: "bad"}.get(own.kind, "fair")))
    if fit.at_bound(label):
        words.append(toned("at its bound", "fair"))
    if label not in (*fit.undetermined, *fit.without_error) and text.anywhere(fit, label):
        words.append(toned("anywhere in its bounds", "bad"))
    if label in found.doubts and label not in found.profiles:
        words.append(toned(f"95 % interval {found.doubts[label]}", "fair"))
    return ", ".join(words)


def _remarks(fit: Fit, found: Known) -> str:
    """What the table cannot say: notes on profiles, combinations, and quantities that move together."""
    notes: dict[str, list[str]] = {}
    for label, own in found.profiles.items():
        if own.note:
            notes.setdefault(own.note, []).append(name(label))
    remarks = [f"Along {', '.join(labels)}: {html.escape(note)}." for note, labels in notes.items()]
    if fit.verdict and fit.verdict.combinations:
        shown = ", ".join(name(readable(one)) for one in fit.verdict.combinations)
        remarks.append(f"Known in combination: {shown}.")
    if fit.verdict and fit.verdict.fix:
        fixed = ", ".join(map(name, fit.verdict.fix))
        remarks.append(f"Give a value to {fixed}, and every other quantity can be known.")
    if fit.found and fit.undetermined:
        free = ", ".join(map(name, fit.undetermined))
        remarks.append(f"Other values of {free} give the same outputs: what the table says of them is one choice.")
    return "".join(f"<p>{remark}</p>" for remark in remarks)


def determined(fit: Fit, found: Known) -> str:
    """Combinations that are known where single quantities are loose, and the profiles."""
    if found.practical is None:
        return ""
    told = "".join(
        f"<li>{name(label)} = {html.escape(value)}</li>"
        for label, value in (one.sentence.split(" = ", 1) for one in found.practical.compounds)
    )
    if told:
        told = f"<p>Though single quantities are loose, the data determine (with 95 % intervals)</p><ul>{told}</ul>"
    elif len(found.practical.determined) < len(found.practical.findings):
        told = soft("No simple combination of the loose quantities was found that the data determine better.")
    words = (
        "How much worse the data are explained when one quantity is held and all others are at their best; the "
        "interval holds what stays below the dashed line."
    )
    pictures = [profile_picture(one) for one in found.profiles.values()]
    shown = len(pictures) if len(pictures) <= 2 * MOST_DRAWN else MOST_DRAWN
    others = pictures[shown:]
    drawn = gallery(pictures[:shown], SMALL) + more(f"{len(others)} more profiles", gallery(others, SMALL))
    missing = left_out(len(fit.labels) - len(found.profiles), "fit.profile(name)", "quantities")
    return told + (soft(words) + drawn if pictures else "") + missing


def solutions(fit: Fit) -> str:
    """All equally good solutions side by side, and those nearly as good beside the answer."""
    words = f"{len(fit.solutions)} sets of values explain the data equally well."
    found = _side_by_side(fit, "solution", fit.solutions, words) if len(fit.solutions) > 1 else ""
    if fit.rivals:
        words = "Other optima are nearly as likely, and no interval around the best one has them."
        found += _side_by_side(fit, "rival", fit.rivals, words, answer=fit.solutions[0])
    return found


def _side_by_side(fit: Fit, what: str, beside: Sequence[Estimate], words: str, answer: Estimate | None = None) -> str:
    """Quantities in which they differ, one after the other."""
    shown = beside[:MOST_BESIDE]
    columns = shown if answer is None else (answer, *shown)
    rows, same = [], 0
    for unknown, label in zip(fit.unknowns, fit.labels, strict=True):
        values = [measured(one.value(unknown), fit.stderr[label]) for one in columns]
        if len(set(values)) > 1:
            rows.append([name(label), *values])
        else:
            same += 1
    rows.append(["misfit", *(f"{one.cost:.2f}" for one in columns)])
    rows.append(["within bounds", *("yes" if one.inside_bounds else "no" for one in columns)])
    heads = ["quantity", *(["answer"] if answer is not None else []), *(f"{what} {i + 1}" for i in range(len(shown)))]
    others = "The other quantity is" if same == 1 else f"The other {same} quantities are"
    more = soft(f"{others} the same in all of them.") if same else ""
    more += left_out(len(beside) - MOST_BESIDE, f"fit.{what}s", f"{what}s")
    return f"<p>{words}</p>{table(heads, rows, right=range(1, len(heads)))}{more}"
