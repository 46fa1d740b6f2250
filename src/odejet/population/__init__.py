"""Population: many subjects, one law of how they differ; nonlinear mixed effects without guesses.

population      Population, what is asked
effects         laws of parameters among subjects
covariates      what is known of each; occasions, on which parameters differ
layout          the vector of everything that is estimated
subject         simulations and measurements of one; simulating does many, on several cores
modes           the most probable parameters of each
approximations  FO, FOCE, FOCEI and Laplace, for comparison with other programs, and the exact one at given values
nodes           where the random effects of a subject are integrated over; curved laws that they may follow
integration     nodes that follow posteriors, as many as an error asks for
marginal        the likelihood with random effects integrated out, its gradient and its error
start           the pooled fit
estimation      from nothing to the maximum of the likelihood; rivals are other maxima
result          PopulationFit, the answer; estimates by name, ranking of several
prediction      a new subject
expected        what a design can tell; profiles, what the data tell of one parameter
diagnostics     CWRES, NPDE; figures draw them
"""

from odejet.population.approximations import exact, objective
from odejet.population.expected import expected
from odejet.population.fitting import fit_population
from odejet.population.population import Population
from odejet.population.ranking import PopulationRanking, compare
from odejet.population.result import PopulationFit

__all__ = [
    "Population",
    "PopulationFit",
    "PopulationRanking",
    "compare",
    "exact",
    "expected",
    "fit_population",
    "objective",
]
