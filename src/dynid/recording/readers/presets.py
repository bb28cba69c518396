"""Column names, units and side of the gearbox of common controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynid.errors import UnknownNameError


@dataclass(frozen=True)
class Preset:
    """How one controller logs.

    ``time`` lists candidates, each one column or a pair of seconds and nanoseconds; ``columns`` gives
    patterns with ``{joint}``, ``{index}`` (from 0) or ``{number}`` (from 1) per quantity, first complete one
    wins; ``side`` is where a quantity is measured, ``joint`` or ``motor``.
    """

    name: str
    about: str
    time: tuple[str | tuple[str, str], ...]
    columns: Mapping[str, tuple[str, ...]]
    units: Mapping[str, str] = field(default_factory=dict)
    side: Mapping[str, str] = field(default_factory=dict)


def _patterns(*names: str) -> tuple[str, ...]:
    forms = ("[{index}]", "_{index}", "{index}", "_{number}", "{number}", "")
    return tuple(name + form for name in names for form in forms)


_JOINT_SIDE = {"position": "joint", "velocity": "joint", "torque": "joint"}

PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="libfranka",
            about="CSV of franka::logToCSV; time in ms, torque sensors at the link side",
            time=("time", "duration"),
            columns={
                "position": _patterns("state.q", "q"),
                "velocity": _patterns("state.dq", "dq"),
                "torque": _patterns("state.tau_J", "tau_J"),
                "external_torque": _patterns("state.tau_ext_hat_filtered", "tau_ext_hat_filtered"),
                "reference_position": _patterns("state.q_d", "q_d"),
            },
            units={"time": "ms", "position": "rad", "velocity": "rad/s", "torque": "Nm"},
            side=_JOINT_SIDE,
        ),
        Preset(
            name="rtde",
            about="Universal Robots RTDE; joint-side encoders, motor current in A (torque needs drive gains)",
            time=("timestamp",),
            columns={
                "position": _patterns("actual_q"),
                "velocity": _patterns("actual_qd"),
                "current": _patterns("actual_current"),
                "reference_position": _patterns("target_q"),
            },
            units={"time": "s", "position": "rad", "velocity": "rad/s", "current": "A"},
            side={"position": "joint", "velocity": "joint", "current": "motor"},
        ),
        Preset(
            name="fri",
            about="KUKA FRI; link-side torque sensors, no velocity, stamps in s and ns",
            time=(
                ("time_stamp_sec", "time_stamp_nano_sec"), ("timestampSec", "timestampNanoSec"),
                ("timestamp_sec", "timestamp_nano_sec"), "timestamp", "time", "t",
            ),
            columns={
                "position": _patterns("measured_joint_position", "measuredJointPosition"),
                "torque": _patterns("measured_torque", "measuredTorque"),
                "external_torque": _patterns("external_torque", "externalTorque"),
                "reference_position": _patterns("commanded_joint_position", "commandedJointPosition"),
            },
            units={"time": "s", "position": "rad", "torque": "Nm"},
            side={"position": "joint", "torque": "joint"},
        ),
        Preset(
            name="joint_states",
            about="sensor_msgs/JointState, from a bag or exported; all at the joint",
            time=(("header.stamp.sec", "header.stamp.nanosec"), ("header.stamp.secs", "header.stamp.nsecs"),
                  "header.stamp", "stamp_ns", "__time", "time", "timestamp", "t"),
            columns={
                "position": ("position.{joint}", "{joint}.position", *_patterns("position")),
                "velocity": ("velocity.{joint}", "{joint}.velocity", *_patterns("velocity")),
                "torque": ("effort.{joint}", "{joint}.effort", *_patterns("effort")),
            },
            units={"position": "rad", "velocity": "rad/s", "torque": "Nm"},
            side=_JOINT_SIDE,
        ),
    )
}  # fmt: skip


def find_preset(name: str) -> Preset:
    """The preset called ``name``."""
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    return PRESETS[name]
