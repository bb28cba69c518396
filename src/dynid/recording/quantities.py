"""The quantities of a log: names, the columns they are written under, and the largest value each can have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynid.arrays import Array

#: Quantities of a motion log with one column per joint, and the column name each is written under.
COLUMN_OF_QUANTITY: Mapping[str, str] = {
    "position": "q",
    "velocity": "dq",
    "acceleration": "ddq",
    "torque": "tau",
    "current": "i",
    "reference_position": "q_ref",
    "reference_velocity": "dq_ref",
    "external_torque": "tau_ext",
}

#: Motion of the sensor body in a force/torque log, with the column name each is written under.
COLUMN_OF_BODY_MOTION: Mapping[str, str] = {
    "linear_velocity": "v",
    "angular_velocity": "w",
    "linear_acceleration": "a",
    "angular_acceleration": "alpha",
}


#: The largest magnitude that any machine shows, SI; what lies beyond is no measurement, and its square may overflow.
LARGEST: Mapping[str, float] = {
    "time": 1e12,
    "position": 1e6,
    "velocity": 1e6,
    "acceleration": 1e9,
    "torque": 1e9,
    "current": 1e9,
    "reference_position": 1e6,
    "reference_velocity": 1e6,
    "external_torque": 1e9,
    "linear_velocity": 1e6,
    "angular_velocity": 1e6,
    "linear_acceleration": 1e9,
    "angular_acceleration": 1e9,
    "wrench": 1e9,
    "inertia": 1e9,
    "gravity": 1e9,
}


def beyond(quantity: str, values: Array) -> tuple[int, int] | None:
    """Row and column of the first finite value that no machine can have, None where there is none."""
    if not values.size:
        return None
    bound = LARGEST[quantity]
    columns = values.reshape(len(values), -1)
    # Most logs are in order: two passes without memory of their own tell so. NaN hides what is beside it.
    if -bound <= columns.min() and columns.max() <= bound:
        return None
    places = np.argwhere((np.abs(columns) > bound) & np.isfinite(columns))
    return (int(places[0, 0]), int(places[0, 1])) if len(places) else None
