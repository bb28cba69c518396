"""The groups that options stand in, by section of a run file, and those that verbs share: which model, and how logs are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from dynid.option_types import (
    Names,
    Number,
    Numbers,
    Switch,
    Table,
    Text,
    effects_option,
    gravity_option,
    lock_option,
    option,
)

TORQUE, WRENCH, FLOATING = "torque", "wrench", "floating"
"""What logs measure: torque of joints, the wrench on a sensor, or joints, base and feet of a robot that is not fixed. Options say which
of them they mean."""
SECTIONS: Mapping[str, str] = {
    "model": "Which model is identified",
    "reading": "How logs are read",
    "rows": "Equations and filtering",
    "estimation": "How the model is estimated",
    "floating": "Robots on a floating base (logs with base_vx.., imu_ax..)",
    "sensor": "Body on a force/torque sensor (logs with fx.. in place of joint torque)",
    "work": "Where the work runs",
}
"""Sections of a run file, and the group of options in each, by the heading that it has in ``--help``."""
MODEL, READING, ROWS, ESTIMATION, BASE, SENSOR, WORK = SECTIONS.values()
BOTH = (TORQUE, WRENCH)
model_option, row_option, fit_option, work_option = (
    partial(option, group=group, only_for=(TORQUE,)) for group in (MODEL, ROWS, ESTIMATION, WORK)
)
reading_option = partial(option, group=READING)
floating_option = partial(option, group=BASE, only_for=(FLOATING,))
sensor_option = partial(option, group=SENSOR, only_for=(WRENCH,))


@dataclass(frozen=True)
class Model:
    """Which model is identified; a class of its own, so that these options come first in :class:`Settings`."""

    effects: tuple[str, ...] = effects_option(group=MODEL, only_for=(TORQUE,))
    friction: str | None = model_option(
        None,
        "Friction model; auto, the default, takes for each joint the one that predicts held-out data best. Models: linear, smooth, "
        "polynomial, sigmoid, gaz, stribeck, load, load_polynomial, presliding (a joint at rest keeps the friction of its last "
        "motion), presliding_polynomial, presliding_load. It replaces viscous, coulomb and offset; with --effects or with "
        "--filter-on signals the effects are used as given.",
        Text("MODEL", known_in="dynid.model.effects.friction_models:friction_choices", what="friction model"),
        example="auto",
    )
    gravity: tuple[float, float, float] | Literal["auto"] | None = gravity_option(found=True, group=MODEL)
    lock: Mapping[str, float] = lock_option(group=MODEL)
    coupling: tuple[str, ...] = model_option(
        (),
        "A motor that also turns with another joint: 6:5=1 for v_m6 = v_6 + v_5, by number or name; repeat for several. Adds the "
        "friction and rotor inertia of that motor; a log with --side motor is carried to the joints.",
        Names("MOTOR:JOINT=VALUE", form="6:5=1"),
        example=("6:5=1",),
    )
    motor_effects: tuple[str, ...] | None = model_option(
        None,
        "Effects of motors that drive several joints; default: viscous and dry friction and rotor inertia as far as the joints "
        "have them.",
        Names("NAMES"),
        example=("viscous", "smooth_coulomb", "armature"),
    )
    spring: tuple[Mapping[str, Any], ...] = model_option(
        (),
        "A spring, counterbalance or cable on a joint: torsion, linear (between two points), constant, gas, potential (Fourier "
        "series in position), cable; repeat for several. Geometry that is not given in a table [[spring]] is fitted.",
        Table("JOINT=KIND", many=True),
        example=({"joint": 2, "kind": "linear"},),
    )
    fix_bodies: str | None = model_option(
        None,
        "Take the rigid bodies from this run, filter as it did, and identify friction alone.",
        Text("RUN", path=True),
        example="earlier_run",
    )


@dataclass(frozen=True)
class Reading:
    """How logs are read, by every verb that reads some."""

    from_s: float | None = reading_option(
        None,
        "Use each log from this time, s; of one log alone: LOG@10:25, LOG@10: or LOG@:25.",
        Number("SECONDS"),
        flag="--from",
        example=2.0,
    )
    to_s: float | None = reading_option(
        None, "Use each log up to this time, s.", Number("SECONDS"), flag="--to", example=60.0
    )
    trim: bool = reading_option(
        True,
        "Leave out the standstill before and after the motion of each log, but for half a second; not of logs that --from or "
        "--to cuts.",
        Switch(),
        only_for=(TORQUE,),
    )
    drive_gains: tuple[float, ...] | None = reading_option(
        None,
        "N m per A, one per joint: torque from motor current.",
        Numbers("K1,K2,.."),
        example=(10.0, 10.0, 8.0),
        only_for=(TORQUE,),
    )
    preset: str | None = reading_option(
        None, "Column names and units of a vendor: libfranka, rtde, fri, joint_states.", Text("NAME"), example="rtde"
    )
    mapping: str | None = reading_option(
        None, "TOML or JSON file that names the log's columns.", Text("FILE", path=True), example="columns.toml"
    )
    joints: tuple[str, ...] | None = reading_option(
        None,
        "Joints of the numbered columns (q1, q2, ..), in order; the others are locked.",
        Names("NAME,NAME,.."),
        example=("shoulder", "elbow"),
    )
    gear_ratios: tuple[float, ...] | None = reading_option(
        None,
        "Motor turns per joint turn, one per joint, where the log holds motor-side quantities.",
        Numbers("N1,N2,.."),
        example=(100.0, 100.0, 80.0),
        only_for=(TORQUE,),
    )
    side: Literal["joint", "motor"] | None = reading_option(
        None,
        "Where the log's positions, velocities and torques were measured: joint, or motor, before gears and coupling. "
        "Default: what the robot file or the preset says, else joint.",
        Text("SIDE", choices=("joint", "motor"), what="side of the gearbox"),
        example="motor",
        only_for=(TORQUE,),
    )
    zero: Mapping[str, float] = reading_option(
        {},
        "What the log reads where the description has the joint's zero, rad or m: it is subtracted from position; repeat for several.",
        Table("JOINT=VALUE"),
        example={"elbow": 1.5708},
        only_for=(TORQUE,),
    )
    ignore_torque: tuple[str, ...] = reading_option(
        (),
        "Joint whose torque is not used: its rows are in no fit and its errors are not counted; repeat for several. Channels that hold "
        "no torque, or torque in another unit than the others', are found and left out by themselves.",
        Names("JOINT", form="NAME"),
        example=("torso_lift",),
        only_for=(TORQUE,),
    )
    rate_hz: float | None = reading_option(
        None,
        "Sampling rate of a log without a clock, Hz; replaces its clock where it has one.",
        Number("HZ", 0.0, open_low=True, unit="Hz"),
        example=500.0,
    )
    episode: int | None = reading_option(
        None, "Episode to read from a data set of several (its column episode_index).", Number("N", 0, whole=True), example=0
    )
    topic: str | None = reading_option(None, "Topic to read from a ROS bag.", Text("NAME"), example="/joint_states")
    stream: Literal["auto", "on", "off"] = reading_option(
        "auto",
        "Read logs piece by piece, in memory that does not grow with their length: on, off, or auto, where they hold more than "
        "32 MB of numbers together. Bands, friction and the data check then come from windows, the estimate and its errors from "
        "all rows.",
        Text("WHEN", choices=("auto", "on", "off"), what="way to read logs"),
        example="on",
        only_for=(TORQUE,),
    )
