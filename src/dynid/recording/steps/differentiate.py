"""Central differences on the clock as it is.

Uniform clock: ``v_k = (q_{k+1} - q_{k-1}) / 2h`` and ``a_k = (q_{k+1} - 2 q_k + q_{k-1}) / h^2``; on a jittery clock
the parabola through three neighbours, which is the same where the steps are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.signals import Signals
from dynid.recording.steps.step import Extent, RowwiseStep


@dataclass(frozen=True)
class Differentiate(RowwiseStep):
    """Velocity and acceleration by central differences.

    Args:
        velocity: ``logged`` keeps the logged velocity and differentiates it once; ``position`` differentiates position twice;
            ``auto`` is ``logged`` where the log has velocity.
        acceleration: ``derived``, or ``logged`` to keep the acceleration of the log.

    Examples:
        >>> import dynid
        >>> dynid.process(dynid.demo_recording(seconds=4.0), [dynid.Differentiate()]).acceleration.shape
        (398, 7)
    """

    velocity: Literal["auto", "logged", "position"] = "auto"
    acceleration: Literal["derived", "logged"] = "derived"

    def __post_init__(self) -> None:
        if self.velocity not in ("auto", "logged", "position"):
            raise InputError(f"unknown velocity source '{self.velocity}'; available: auto, logged, position")
        if self.acceleration not in ("derived", "logged"):
            raise InputError(f"unknown acceleration source '{self.acceleration}'; available: derived, logged")

    def transient(self) -> Extent:
        """One row, whose difference is one-sided."""
        return Extent(rows=1)

    def reach(self, head: Signals) -> Extent:
        """One neighbour; two, so that the one-sided formula at a window's end is never used."""
        return Extent(rows=2)

    def compute(self, window: Signals, starts: bool, ends: bool) -> dict[str, Array]:
        """Velocity and acceleration."""
        logged = from_log(window, self.velocity, self)
        if self.acceleration == "logged":
            window.need(["acceleration"], self)
            return {} if logged else {"velocity": first_derivative(window.time, window.values["position"])}
        if logged:
            return {"acceleration": first_derivative(window.time, window.values["velocity"])}
        window.need(["position"], self)
        q = window.values["position"]
        return {"velocity": first_derivative(window.time, q), "acceleration": second_derivative(window.time, q)}


def from_log(window: Signals, velocity: str, step: object) -> bool:
    """Whether velocity is taken from the log; refuses if it should be and is not there."""
    if velocity == "logged":
        window.need(["velocity"], step)
    return velocity != "position" and "velocity" in window.values


def first_derivative(time: Array, values: Array) -> Array:
    """Slope at the middle of the parabola through three neighbours; at the ends, of that through the last three."""
    _refuse_short(time)
    return np.asarray(np.gradient(values, time, axis=0, edge_order=2))


def second_derivative(time: Array, values: Array) -> Array:
    """Curvature of the parabola through three neighbours; the ends repeat their neighbour's."""
    _refuse_short(time)
    h = np.diff(time)[:, None]
    slope = np.diff(values, axis=0) / h
    inner = 2.0 * np.diff(slope, axis=0) / (h[1:] + h[:-1])
    return np.concatenate([inner[:1], inner, inner[-1:]])


def _refuse_short(time: Array) -> None:
    if len(time) < 3:
        raise InputError(f"signal has {len(time)} rows, central differences need at least 3")
