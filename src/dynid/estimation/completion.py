"""From base values to a full parameter set: the prior plus the smallest scaled correction that has the base values.

    minimise || D^-1 (phi - phi0) ||   subject to   K phi = beta,

with a scale ``D`` of each parameter's own size, so that a gram and a kilogram square metre count alike.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction


def complete(base: BaseReduction, beta: Array, prior: Parameters) -> Parameters:
    """All parameters, nearest to ``prior`` in its own scale, with ``K phi = beta``."""
    scale = parameter_scale(prior)
    gap = beta - base.K @ prior.values
    correction = np.linalg.lstsq(base.K * scale, gap, rcond=None)[0]
    phi = prior.values + scale * correction
    # one step of refinement: K phi = beta to round-off, whatever the scales
    phi = phi + scale * np.linalg.lstsq(base.K * scale, beta - base.K @ phi, rcond=None)[0]
    return prior.with_values(phi)


def parameter_scale(prior: Parameters) -> Array:
    """Size by which each parameter may sensibly move: from the mass and radius of gyration of its link, or the robot's mean."""
    scale = np.ones(len(prior))
    phi = prior.inertials
    mass = np.abs(phi[:, 0])
    mass = np.maximum(mass, 0.05 * mass.max(initial=0.0))
    mass[mass == 0.0] = 1.0
    gyration = np.sqrt(np.abs(phi[:, [4, 6, 9]]).sum(axis=1) / (2.0 * mass))
    length = np.maximum(gyration, 0.3 * gyration.max(initial=0.0))
    length[length == 0.0] = 0.1
    links = np.column_stack([mass, *(3 * [mass * length]), *(6 * [mass * length**2])])
    scale[: prior.n_inertial] = links.ravel()
    return scale
