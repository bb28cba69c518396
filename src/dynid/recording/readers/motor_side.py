"""Logs measured at the motors of a coupled transmission, carried to the joints.

Gear ratios have brought every motor to its own joint already (``units.py``); what is left is the coupling ``B``:
``q = B^-1 q_m`` and ``tau = B^T tau_m``, see :mod:`dynid.robot.coupling`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynid.recording.motion import Recording
from dynid.robot.coupling import Coupling

_MOTION = ("position", "reference_position", "velocity", "reference_velocity", "acceleration")


@dataclass(frozen=True)
class MotorSide:
    """Which quantities of a log are those of motors, and how these drive the joints."""

    coupling: Coupling
    motion: tuple[str, ...]
    torque: bool

    def at_joints(self, recording: Recording) -> Recording:
        """The recording with everything measured at the motors carried to the joints."""
        changes = {
            name: self.coupling.position_at_joints(values)
            for name in self.motion
            if (values := getattr(recording, name)) is not None
        }
        if self.torque and recording.torque is not None:
            changes["torque"] = self.coupling.torque_at_joints(recording.torque)
        if not changes:
            return recording
        note = f"carried from motors to joints ({', '.join(self.coupling.terms)}): {', '.join(changes)}"
        return recording.with_(**changes, source=recording.source.noting(note.replace("_", " ")))


def motor_side(
    coupling: Coupling | None, robot: Sequence[str], names: Sequence[str], side: Mapping[str, str]
) -> MotorSide | None:
    """How a log of the joints ``names`` of a robot is carried to its joints; None where nothing is coupled."""
    if coupling is None or not coupling.coupled_motors:
        return None
    motion = tuple(name for name in _MOTION if side.get(name) == "motor")
    torque = side.get("torque") == "motor"
    if not motion and not torque:
        return None
    if tuple(names) != tuple(robot):
        coupling = coupling.kept([list(robot).index(name) for name in names])
    return MotorSide(coupling, motion, torque) if coupling.coupled_motors else None
