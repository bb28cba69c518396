"""Models drawn from the uncertainty of an estimate, every one of them physically consistent: for domain randomisation.

    beta_k ~ N(beta, covariance),      phi_k = the consistent set with K phi_k = beta_k that is nearest to the estimate

Friction and rotors that cannot be negative are at least zero. Where no consistent robot has the base values drawn, the nearest one has.
"""

from __future__ import annotations

import numpy as np

from dynid.errors import InputError
from dynid.estimation.consistency.repair import repair
from dynid.estimation.linear import base_to_standard
from dynid.model.effects import nonnegative_symbols
from dynid.model.links import with_links_apart
from dynid.model.robot import Robot
from dynid.pipeline.result import IdentificationResult
from dynid.validation.consistency import check_model

MOST = 1000
"""Models that are drawn at once."""


def sample_models(run: IdentificationResult, n: int, seed: int = 0) -> tuple[Robot, ...]:
    """Consistent models drawn from the uncertainty of a run.

    Args:
        run: of a robot.
        n: how many, at most ``MOST``.
        seed: of the draws.

    Returns:
        robots with the effects of the run, parameters in SI units.
    """
    if run.body is not None:
        raise InputError("models are drawn from the run of a robot, this one is that of a body on a force/torque sensor")
    if not 1 <= n <= MOST:
        raise InputError(f"--samples is {n}, expected 1 to {MOST}")
    found = run.estimate
    values, vectors = np.linalg.eigh(found.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = np.random.default_rng(seed)
    signed = set(nonnegative_symbols())
    free = [not (column.kind != "inertial" and column.symbol in signed) for column in found.standard.columns]
    models = []
    for _ in range(n):
        beta = found.base_values + root @ rng.standard_normal(len(values))
        drawn = base_to_standard(found.base, beta, found.standard)
        drawn = drawn.with_values(np.where(free, drawn.values, np.maximum(drawn.values, 0.0)))
        robot = run.robot.with_parameters(drawn)
        if not check_model(robot).feasible:
            robot = repair(robot, run.settings.margin).robot
        models.append(with_links_apart(robot, run.robot)[0])
    return tuple(models)
