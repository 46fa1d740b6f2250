"""Identifying: what can be known of a model or problem, exactly where that comes to an end and likely where not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from odejet.algebra.likely import likely
from odejet.errors import ModelError
from odejet.identify import Verdict
from odejet.identify.judge import judge
from odejet.model import Model
from odejet.model.cumulated import of_rates
from odejet.model.transform import written_out
from odejet.population import Population
from odejet.problem import Problem, joint
from odejet.progress import doing
from odejet.renaming import renamed


@renamed("budget", "time_limit")
def identify(
    model: Model | Problem | Population,
    functions: Sequence[object] = (),
    inputs: Literal["generic", "actual"] = "generic",
    time_limit: float = 60.0,
    seed: int = 0,
    engine: Literal["auto", "exact", "elimination", "msolve", "builtin", "monodromy"] = "auto",
    experiments: int | Literal["any"] = 1,
) -> Verdict:
    """What can be known of a model from its outputs, if these were measured without noise at all times.

    Of a problem, what all its experiments together can tell: `x_hot` is the state x of the experiment hot.  Of a
    population, what a subject tells of itself, the first with the most measurements; `population.alone("7")` is the
    problem of another.
    `functions` are expressions in parameters and states (at the initial time) to be judged too.  Known initial states
    and fixed parameters of the model count as known.  Inputs are taken to be known and generic: any signal that excites
    the model enough; `inputs="actual"` takes the model's own functions of time.  Curves that are to be found are
    unknowns at their knots, and judged piece by piece.  `time_limit` is in seconds: what is
    not decided by then is `undecided`.  `engine` says how solutions are counted: by input-output equations
    ("elimination"), by Groebner bases of the prolonged system ("msolve" or "builtin", for what computes them), by
    whichever of these comes to an end ("exact"), or numerically ("monodromy", which gives likely verdicts only); by
    default exactly if possible, and numerically if not.  `experiments` asks what so many experiments tell that have
    their parameters in common and states and inputs of their own; "any" asks for as many as one likes, and from how
    many on nothing more is gained.
    """
    if isinstance(model, Population):
        model = model.alone()
    if isinstance(model, Model):
        starts = (model.start or 0.0,) * 2
        model = of_rates(written_out(model))
    else:
        if experiments != 1:
            raise ModelError("experiments: a problem has experiments of its own; ask its model instead")
        together = joint(model)
        model, starts = together.model, together.starts
    with doing("finding out what can be known", limit=time_limit):
        verdict = judge(model, functions, inputs, time_limit, seed, engine, experiments, starts)
        if verdict.reason and engine in ("auto", "monodromy"):
            return likely(verdict, max(time_limit - verdict.seconds, 0.0), seed)
        return verdict
