"""The force of a spring between two points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.model.effects.springs import LEAST_VOLUME, PointSpring


def spring_force(spring: PointSpring, values: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Distance of the points and the force that pulls them together, at positions of one joint.

    Args:
        spring: with one number each for phase, ratio and length.
        values: of its coefficients: ``sk, sf`` of a linear spring, ``sf`` of a constant force, ``sg`` of a gas spring.
        q: positions of the joint, rad.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.springs import PointSpring, spring_force
        >>> spring = PointSpring("linear", phase=0.0, ratio=0.6, length=0.5)
        >>> distance, force = spring_force(spring, [1000.0, -200.0], [0.0, 1.5707963])
        >>> distance.round(3).tolist(), force.round(1).tolist()
        ([0.316, 0.5], [116.2, 300.0])
    """
    values = np.asarray(values, dtype=np.float64)
    turned = np.asarray(q, dtype=np.float64) - float(np.asarray(spring.phase))
    length = float(np.asarray(spring.length))
    relative = np.sqrt(1.0 - float(np.asarray(spring.ratio)) * np.cos(turned))
    distance = length * relative
    if spring.form == "linear":
        return distance, values[0] * distance + values[1]
    if spring.form == "constant":
        return distance, np.full_like(distance, values[0])
    sign = 1.0 if spring.action == "expands" else -1.0
    volume = np.maximum(1.0 + sign * (distance - length) / float(np.asarray(spring.column)), LEAST_VOLUME)
    return distance, values[0] * volume ** -float(np.asarray(spring.exponent))
