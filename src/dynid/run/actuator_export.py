"""Files of an actuator run for simulators, each with what it can hold; MJCF proven by a rollout in MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.adapters.mujoco_rollout import roll_out_controls
from dynid.errors import InputError
from dynid.estimation.actuators.model import first_state
from dynid.export.actuators.isaac import write_isaac
from dynid.export.actuators.mjcf import write_actuator_mjcf
from dynid.export.actuators.newton import write_newton
from dynid.export.actuators.table import write_table
from dynid.export.actuators.values import JointActuator, simulated_robot
from dynid.export.urdf import write_urdf
from dynid.run.actuators import ActuatorRun


@dataclass(frozen=True)
class ExportedActuators:
    """Files that were written, what they could not hold, and how well MuJoCo follows the log with its file."""

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    mujoco_rms: float | None = None
    """Root mean square position error of MuJoCo's rollout against the log, rad."""
    mujoco_difference: float | None = None
    """Root mean square difference of MuJoCo's rollout and dynid's own, rad."""


def actuators_of(run: ActuatorRun, log: int = 0) -> tuple[JointActuator, ...]:
    """The numbers of every joint, with the gains of one of the logs."""
    drives = run.model.drives(run.problem.logs[log].control)
    numbers = ("kp", "kd", "limit", "armature", "viscous", "coulomb", "offset", "delay_s")
    return tuple(
        JointActuator(
            joint=joint.name,
            turns=joint.kind != "prismatic",
            velocity=run.problem.logs[log].control.velocity,
            **{name: float(getattr(drives, name)[j]) for name in numbers},
        )
        for j, joint in enumerate(run.robot.joints)
    )


def export_actuators(run: ActuatorRun, forms: Sequence[str], folder: Path) -> ExportedActuators:
    """Write the forms asked for into a folder.

    Args:
        run: an actuator identification.
        forms: some of ``mjcf``, ``isaac``, ``newton``, ``urdf``, ``json``.
        folder: made where it is missing.
    """
    follows_speed = run.problem.logs[0].control.velocity
    for form in ("isaac", "newton"):
        if form in forms and follows_speed:
            raise InputError(
                f"--export {form} holds drives that are sent positions, these are sent speeds (--control velocity); "
                "expected some of mjcf, urdf, json"
            )
    folder.mkdir(parents=True, exist_ok=True)
    actuators, robot = actuators_of(run), run.model.robot
    name = robot.name
    files: list[Path] = []
    notes: list[str] = []
    notes.extend(_left_out(run))
    rms = difference = None
    for form in forms:
        if form == "mjcf":
            written = write_actuator_mjcf(robot, actuators, folder / "robot.xml")
            files.append(written.path)
            notes.extend(written.notes)
            rms, difference = _proof(run, written.path, actuators)
        elif form == "urdf":
            model = write_urdf(simulated_robot(robot, actuators), folder / "robot.urdf")
            files.append(model.path)
            notes.extend(note for note in model.notes if "URDF demands one" not in note)
        elif form == "isaac":
            files.append(write_isaac(name, actuators, folder / "isaac_actuators.py"))
        elif form == "newton":
            files.append(write_newton(name, actuators, folder / "newton_actuators.py"))
        else:
            details = {"sigma": run.sigma, "inseparable": [list(names) for names in run.separability.inseparable]}
            files.append(write_table(name, actuators, details, folder / "actuators.json"))
    return ExportedActuators(tuple(files), tuple(dict.fromkeys(notes)), rms, difference)


def _left_out(run: ActuatorRun) -> list[str]:
    """What of the controller no file holds."""
    control, found = run.problem.logs[0].control, []
    if control.lag_s:
        found.append(f"the files have no place for the lag of the current loop ({1e3 * control.lag_s:g} ms)")
    if control.no_load_speed is not None and np.isfinite(control.no_load_speed).any():
        found.append(
            "the files have no place for torque that falls with speed (Isaac Lab: DCMotorCfg with saturation_effort)"
        )
    if control.dead_band:
        found.append(f"the files have no place for the dead band of the drives ({control.dead_band:g})")
    return found


def _proof(run: ActuatorRun, path: Path, actuators: Sequence[JointActuator]) -> tuple[float, float]:
    """Errors of MuJoCo's own rollout of the written file: against the log, and against dynid's rollout."""
    unseen = bool(run.unseen)
    log = run.unseen[0] if unseen else run.problem.logs[0]
    own = run.rollouts[1 if unseen else 0][0]
    names = [one.joint for one in actuators]
    # commands before the first row still act while they are on their way
    sent = log.command.at(log.time, np.zeros(len(names)))
    theirs = roll_out_controls(path, names, [one.name for one in actuators], sent, log.time, first_state(log))
    rms, difference = (float(np.sqrt(np.mean((theirs - x) ** 2))) for x in (log.position, own.simulated))
    return rms, difference
