"""Identify: what the outputs of a model can tell of its parameters and initial states, exactly and before any data.

    local         ranks modulo primes: which quantities have finitely many values
    switching     the same for equations that switch, by their modes
    orders        the least derivatives that tell them: the square system at one time
    combinations  what survives of quantities that are lost
    generators    whether all that is identifiable follows from it, with the `invariants` of what has several values
                  and `ratios` of coefficients of input-output equations
    globally      how many values, by counting the solutions of polynomial equations
    elimination   the same by input-output equations
    judge         all of them in order, on one model: `odejet.identifying` makes that of a problem
    verdict       the answer, which `answers` makes of ranks and counts

Counting rests on `ring` (the tape over any ring), `prolong` (explicit equations), `polynomials` (elimination of what is
linear), `msolve` or `groebner` (bases for the rest) and `quotient` (solutions as an algebra).  Elimination rests on
`projection` (input-output equations, by `eliminants` in `symbols`, less what `conservation` finds), `coefficients`
(what they tell of parameters) and `wronskian` (whether one experiment tells them); where it takes long it goes to a
`worker` process.  `blocks` decides experiments in one model by few of them, `replicas` writes several experiments as
one model; `outputs` takes invertible functions off, `excitation` makes inputs of events, and `angles` are known but
for whole turns.
"""

from odejet.identify.verdict import Quantity, Verdict

__all__ = ["Quantity", "Verdict"]
