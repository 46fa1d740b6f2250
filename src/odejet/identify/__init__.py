"""Identify: what the outputs of a model can tell of its parameters and initial states, exactly and before any data.

    local         ranks modulo primes: which quantities have finitely many values
    switching     the same for equations that switch, by their modes
    orders        the least derivatives that tell them: the square system at one time
    combinations  what survives of quantities that are lost
    generators    whether all that is identifiable follows from it, with the `invariants` of what has several values
                  and `ratios` of coefficients of input-output equations
    globally      how many values, by counting the solutions of polynomial equations
    elimination   the same by input-output equations
    judge         all of them in order
    verdict       the answer, which `answers` makes of ranks and counts

Counting rests on `ring` (the tape over any ring), `prolong` (explicit equations), `polynomials` (elimination of what is
linear), `msolve` or `groebner` (bases for the rest) and `quotient` (solutions as an algebra).  Elimination rests on
`projection` (input-output equations, by `eliminants` in `symbols`, less what `conservation` finds), `coefficients`
(what they tell of parameters) and `wronskian` (whether one experiment tells them); where it takes long it goes to a
`worker` process.  `blocks` decides experiments in one model by few of them, `replicas` writes several experiments as
one model; `outputs` takes invertible functions off, `excitation` makes inputs of events, and `angles` are known but
for whole turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from odejet.identify.verdict import Quantity, Verdict
from odejet.model import Model
from odejet.problem import Problem
from odejet.renaming import renamed

__all__ = ["Quantity", "Verdict", "identify"]


@renamed("budget", "time_limit")
def identify(
    model: Model | Problem,
    functions: Sequence[object] = (),
    inputs: Literal["generic", "actual"] = "generic",
    time_limit: float = 60.0,
    seed: int = 0,
    engine: Literal["auto", "exact", "elimination", "msolve", "builtin", "monodromy"] = "auto",
    experiments: int | Literal["any"] = 1,
) -> Verdict:
    """What can be known of a model from its outputs, if these were measured without noise at all times.

    Of a problem, what all its experiments together can tell: `x_hot` is the state x of the experiment hot.
    `functions` are expressions in parameters and states (at the initial time) to be judged too.  Known initial states
    and fixed parameters of the model count as known.  Inputs are taken to be known and generic: any signal that excites
    the model enough; `inputs="actual"` takes the model's own functions of time.  `time_limit` is in seconds: what is
    not decided by then is `undecided`.  `engine` says how solutions are counted: by input-output equations
    ("elimination"), by Groebner bases of the prolonged system ("msolve" or "builtin", for what computes them), by
    whichever of these comes to an end ("exact"), or numerically ("monodromy", which gives likely verdicts only); by
    default exactly if possible, and numerically if not.  `experiments` asks what so many experiments tell that have
    their parameters in common and states and inputs of their own; "any" asks for as many as one likes, and from how
    many on nothing more is gained.
    """
    # Exact arithmetic is loaded when it is first asked for: most sessions only simulate.
    from odejet.identify.judge import judge

    verdict = judge(model, functions, inputs, time_limit, seed, engine, experiments)
    if verdict.reason and engine in ("auto", "monodromy"):
        return verdict.likely(max(time_limit - verdict.seconds, 0.0), seed)
    return verdict
