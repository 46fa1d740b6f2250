"""Population files: a model as TOML with a table [population], and reports of population fits.

    [population]
    random = { V = "lognormal", Cl = "lognormal" }
    correlated = [["V", "Cl"]]
    covariates = { V = "V*(WT/70)^beta" }
    occasions = "OCC"
    lag = { gut = "Tlag" }
    priors = { Cl = "lognormal(log(0.1), 0.5)" }

The noise stands in [noise] like that of any model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from odejet.attach import attach
from odejet.data import Data
from odejet.errors import ModelError, nearest
from odejet.io import files, toml
from odejet.model import Model
from odejet.population import Population, PopulationFit
from odejet.report.populations import page

TABLE = "population"
KEYS = ("random", "correlated", "covariates", "occasions", "fixed", "lag", "priors")


def is_population(path: str | os.PathLike[str]) -> bool:
    """Tell a TOML file that has a table [population]."""
    return os.fspath(path).endswith(".toml") and TABLE in toml.loads(toml.read_text(path), str(path))


@attach(Population.from_toml)
def read(kind: type[Population], path: str | os.PathLike[str], data: Data) -> Population:
    told = toml.loads(toml.read_text(path), str(path)).get(TABLE)
    if not isinstance(told, Mapping):
        raise ModelError(f"{path}: there is no table [population]; it names random effects, such as random = {{...}}")
    for key in told:
        if key not in KEYS:
            raise ModelError(f"{path} [population]: '{key}' is not known{nearest(key, KEYS) or _known()}")
    if "random" not in told:
        raise ModelError(
            f'{path} [population]: random is missing; name parameters, such as random = {{ V = "normal" }}'
        )
    model = Model.from_toml(path)
    try:
        return kind(model, data, **{key: _plain(value) for key, value in told.items()})
    except ModelError as error:
        raise ModelError(f"{path} [population]: {error}") from None


def _known() -> str:
    return f"; there are {', '.join(KEYS)}"


def _plain(value: Any) -> Any:
    """Numbers as texts, which are read exactly."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return (
        [_plain(one) for one in value] if isinstance(value, list) else value if isinstance(value, bool) else str(value)
    )


@attach(PopulationFit.report)
def write(fit: PopulationFit, path: str | os.PathLike[str]) -> None:
    text = page(fit)
    files.write_all({os.fspath(path): lambda file: file.write(text.encode())})
