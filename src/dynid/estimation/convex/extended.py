"""Standard parameters from base values and the dependent ones, and back (Sousa and Cortesao 2014, 46 and 49)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_shape
from dynid.regression.base import BaseReduction


def extended_base(base: BaseReduction, phi: ArrayLike) -> tuple[Array, Array]:
    """``phi -> (beta, phi_d)``, Sousa (46)."""
    values = np.asarray(phi, dtype=np.float64)
    check_shape("phi", values, (base.n_parameters,))
    return base.base_values(values), np.asarray(values[base.dependent])


def standard_from_extended(base: BaseReduction, beta: ArrayLike, dependent: ArrayLike) -> Array:
    """``(beta, phi_d) -> phi``, Sousa (49): ``phi_b = beta - K_d phi_d``."""
    values, rest = np.asarray(beta, dtype=np.float64), np.asarray(dependent, dtype=np.float64)
    check_shape("base values", values, (base.n_base,))
    columns: IntArray = base.dependent
    check_shape("dependent parameters", rest, (len(columns),))
    phi = np.empty(base.n_parameters)
    phi[columns] = rest
    assert base.independent is not None
    phi[base.independent] = values - base.K[:, columns] @ rest
    return phi
