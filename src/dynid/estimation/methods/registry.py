"""Methods by the names that users type; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.constraints import Constraint
from dynid.estimation.estimate import Method

_PLACES = {
    "ols": ("methods.least_squares", "OrdinaryLeastSquares"),
    "wls": ("methods.weighted", "WeightedLeastSquares"),
    "robust": ("methods.robust", "IteratedReweighted"),
    "tls": ("methods.total", "TotalLeastSquares"),
    "ridge": ("methods.ridge", "Ridge"),
    "essential": ("methods.essential", "EssentialParameters"),
    "recursive": ("methods.recursive", "RecursiveLeastSquares"),
    "iv": ("methods.instrumental", "InstrumentalVariables"),
    "sdp": ("methods.sdp", "FeasibleSDP"),
    "bpfc": ("methods.corrected", "CorrectedLeastSquares"),
    "fbpe-wls": ("methods.sdp", "WeightedFeasibleSDP"),
    "manifold": ("methods.manifold", "Manifold"),
    "logcholesky": ("methods.log_cholesky", "LogCholesky"),
    "retrieve": ("retrieval.retrieve", "PenaltyRetrieval"),
}
METHODS = tuple(_PLACES)
CONSTRAINED = ("sdp", "bpfc", "fbpe-wls", "manifold", "logcholesky", "retrieve")
"""Methods whose links are always physically consistent."""
TAKES_CONSTRAINTS = ("sdp", "bpfc", "fbpe-wls", "retrieve")
"""Methods that know constraints beyond consistency."""
TAKES_BOUNDS = ("retrieve",)
"""Methods that read a bounds file."""


def method_named(name: str, constraints: Sequence[Constraint] = (), **options: Any) -> Method:
    """The method of that name with these options."""
    if name not in _PLACES:
        raise UnknownNameError("method", name, METHODS)
    if constraints and name not in TAKES_CONSTRAINTS:
        raise InputError(
            f"method '{name}' knows no constraints, {len(constraints)} were given; use {' or '.join(TAKES_CONSTRAINTS)}"
        )
    if options.get("bounds") is not None and name not in TAKES_BOUNDS:
        raise InputError(f"method '{name}' reads no bounds file, one was given; use {' or '.join(TAKES_BOUNDS)}")
    module, kind = _PLACES[name]
    if constraints:
        options = {**options, "constraints": tuple(constraints)}
    method: Method = getattr(import_module(f"dynid.estimation.{module}"), kind)(**options)
    return method
