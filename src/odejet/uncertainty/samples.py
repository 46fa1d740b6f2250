"""Samples: draws of all unknowns for users who carry on in a Bayesian tool.

Unknowns have their priors; those without one are flat within the bounds on the scale of the search (logarithmic for
what keeps its sign), and noise levels that are not known have Jeffreys' prior: integrated out, they leave the
likelihood with each level at its most likely value.  The Laplace approximation draws from the normal law at the
optimum, wider by Student's t where the noise was estimated, cut at bounds that hold an unknown (see `bounded`); emcee
draws from the whole likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from odejet.errors import ModelError
from odejet.extras import needed
from odejet.uncertainty.likelihood import Likelihood

if TYPE_CHECKING:
    import arviz

SAMPLERS = ("laplace", "emcee")
WARMUP = 500
"""Steps of emcee that are not kept."""


def to_inference_data(
    likelihood: Likelihood, observed: Mapping[str, np.ndarray], draws: int, chains: int, sampler: str, seed: int
) -> arviz.InferenceData:
    """Draws and observed data, as ArviZ has them."""
    if sampler not in SAMPLERS:
        raise ModelError(f"the sampler must be one of {', '.join(SAMPLERS)}, not {sampler!r}")
    for name, value in (("draws", draws), ("chains", chains)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ModelError(f"{name} must be a whole number of at least 1, not {value!r}")
    arviz = needed("arviz")
    if not likelihood.misfit.weighted:
        raise ModelError("draws need the likelihood, and this fit is of plain squares; fit with weights='likelihood'")
    theta = laplace(likelihood, draws, chains, seed)
    if sampler == "emcee":
        theta = ensemble(likelihood, theta, draws, chains, seed)
    z = likelihood.frame.back(theta)
    return arviz.from_dict(
        posterior={label: z[:, :, i] for i, label in enumerate(likelihood.misfit.labels)},
        observed_data=dict(observed),
        attrs={"inference_library": "odejet", "model": likelihood.misfit.model.name, "sampler": sampler},
    )


def laplace(likelihood: Likelihood, draws: int, chains: int, seed: int) -> np.ndarray:
    """Draws (chains, draws, unknowns) of theta from the normal law at the optimum, within the box."""
    frame, optimum, known = likelihood.frame, likelihood.optimum, likelihood.full_information
    every = np.eye(len(optimum.z))
    loose = [label for label, moved in zip(optimum.labels, known.moved(every), strict=True) if moved]
    if loose:
        raise ModelError(
            f"the data say nothing of {', '.join(loose[:5])}, so that there is no law to draw from; give them a value"
        )
    if known.untold(every).any():
        raise ModelError("no measurements are left to show the noise, so there is no law to draw from; give its sd")
    rng = np.random.default_rng(seed)
    bounded = likelihood.bounded(optimum.held)
    moves, degrees = bounded.draws((chains, draws), rng), float(known.degrees_of_freedom(every).min())
    if math.isfinite(degrees):
        moves *= np.sqrt(degrees / rng.chisquare(degrees, size=(chains, draws, 1)))
    return frame.to(np.clip(bounded.moved(optimum.z, moves), frame.low, frame.high))


def ensemble(likelihood: Likelihood, start: np.ndarray, draws: int, chains: int, seed: int) -> np.ndarray:
    """Draws by emcee's walkers, which are its chains, started from those of the Laplace approximation."""
    emcee = needed("emcee")
    frame, misfit, n = likelihood.frame, likelihood.misfit, start.shape[2]
    low, high = frame.box
    stated = [one.entry for one in misfit.priors if not one.is_on_scale]
    walkers = max(2 * n + 2, chains)
    rng = np.random.default_rng([seed, 1])
    pool = start.reshape(-1, n)
    begin = np.clip(pool[rng.integers(len(pool), size=walkers)], low + 1e-9, high - 1e-9)
    begin += 1e-6 * rng.normal(size=begin.shape)

    def log_probability(theta: np.ndarray) -> float:
        if np.any(theta < low) or np.any(theta > high):
            return -math.inf
        z = frame.back(theta)
        # A prior is a density of the unknown itself, and this one of theta.
        return float(np.log(frame.slopes(z)[stated]).sum()) - misfit.score(z)

    sampler = emcee.EnsembleSampler(walkers, n, log_probability)
    sampler.random_state = np.random.RandomState(seed).get_state()
    state = sampler.run_mcmc(begin, WARMUP)
    sampler.reset()
    sampler.run_mcmc(state, draws)
    return np.asarray(sampler.get_chain()).transpose(1, 0, 2)
