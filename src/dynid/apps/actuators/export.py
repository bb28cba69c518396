"""Files of an actuator run for simulators, each with what it can hold; MJCF proven by a rollout in MuJoCo itself.

JSON: SI values with deviations, and the same in the units of USD drives (per degree).
Isaac Lab (``isaaclab.actuators``; PhysX 5.6 ``PxJointFrictionParams``): actuator groups as a Python module. ``stiffness`` and ``damping``
are kp and kd per radian, ``armature`` is kg m^2, delays are whole physics steps. From Isaac Sim 5.0 on, ``friction``,
``dynamic_friction`` and ``viscous_friction`` are N m, N m and N m s/rad. Before, ``friction`` was a unitless coefficient on the force that
the joint transmits, which no identified torque converts to: it is left out there and viscous friction is added to the damping.

MJCF with position actuators: ``force = kp (ctrl(t - delay) - q) - kv v - offset``, at most ``forcerange``; of drives that are sent speeds
``kv (ctrl(t - delay) - v) - offset``. Joints get ``armature``, ``damping`` and ``frictionloss``, as stiff as the file's time step allows:
by default it builds up over 20 ms. A constant torque has no place in a ``position`` actuator: a joint with an offset gets the ``general``
actuator that ``position`` stands for, with the offset in its bias.

Newton and MJX: joint values set on a model builder, as a Python module. Damping of the joint has no field of its own there, so viscous
friction is added to the drive's damping (the same while the drive damps absolute velocity). Delays are steps to hold commands back by.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.apps.actuators.identify import ActuatorRun
from dynid.apps.actuators.model import first_state
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.files import write_bytes, write_json, write_text
from dynid.io.robots.mjcf_write import write_mjcf
from dynid.io.robots.mujoco_model import mujoco_warnings
from dynid.io.robots.simulator_joint import WrittenModel, number
from dynid.io.robots.urdf_write import write_urdf
from dynid.io.robots.xml import ElementSpan, XmlText, xml_tag
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Viscous
from dynid.model.robot import Robot


def roll_out_controls(
    path: Path, joints: Sequence[str], actuators: Sequence[str], control: Array, time: Array, first: tuple[Array, Array]
) -> Array:
    """Positions of the joints at ``time``, ``(times, joints)``, from a state, with ``control[k]`` held from ``time[k]`` on.

    Contacts and joint limits are left out: commands were followed in free motion.
    """
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    q_places = [int(model.joint(name).qposadr[0]) for name in joints]
    v_places = [int(model.joint(name).dofadr[0]) for name in joints]
    u_places = [int(model.actuator(name).id) for name in actuators]
    state = mujoco.MjData(model)
    state.qpos[q_places], state.qvel[v_places] = first
    state.ctrl[u_places] = control[0]
    for place, value in zip(u_places, control[0], strict=True):  # delayed actuators remember the first command
        if model.actuator_delay[place] > 0.0:
            n = int(model.actuator_history[place][0])
            mujoco.mj_initCtrlHistory(model, state, place, -model.opt.timestep * np.arange(n, 0.0, -1.0), np.full(n, value))
    found = np.empty((len(time), len(joints)))
    step = model.opt.timestep
    row, clock = 0, float(time[0])
    with mujoco_warnings() as said:
        while row < len(time):
            # a row between two steps is taken along the velocity there
            while row < len(time) and time[row] < clock + 0.5 * step:
                found[row] = state.qpos[q_places] + (time[row] - clock) * state.qvel[v_places]
                row += 1
            held = max(0, int(np.searchsorted(time, clock + 1e-9, side="right")) - 1)
            state.ctrl[u_places] = control[held]
            mujoco.mj_step(model, state)
            clock += step
            if said:  # MuJoCo sets a state that grew without bound back to the beginning
                raise InputError(f"{path} cannot be followed in MuJoCo at a time step of {step:g} s: {said[0].strip()}")
    return found


@dataclass(frozen=True)
class JointActuator:
    """Drive, friction and rotor of one joint, SI units.

    Args:
        joint: its name.
        kp: position gain. kd: velocity gain. limit: largest torque, infinite where unknown.
        armature: rotor inertia. viscous, coulomb: friction. offset: constant torque against the drive.
        delay_s: from a command to its effect.
        turns: whether the joint turns; otherwise it slides.
        velocity: whether the drive is sent speeds: ``force = kd (ctrl - v)``.
    """

    joint: str
    kp: float
    kd: float
    limit: float
    armature: float
    viscous: float
    coulomb: float
    offset: float
    delay_s: float
    turns: bool = True
    velocity: bool = False

    @property
    def name(self) -> str:
        """Of the actuator in a file."""
        return f"{self.joint}_velocity" if self.velocity else f"{self.joint}_position"

    def ticks(self, step_s: float) -> int:
        """Delay in steps of a simulator."""
        return round(self.delay_s / step_s)


def simulated_robot(robot: Robot, actuators: tuple[JointActuator, ...]) -> Robot:
    """The robot with the friction and rotor inertia of its actuators, as a simulator's joints hold them."""
    values: dict[str, float] = {}
    for j, one in enumerate(actuators):
        values |= {f"Ia{j + 1}": one.armature, f"fv{j + 1}": one.viscous, f"fc{j + 1}": one.coulomb}
    return robot.with_effects((Viscous(), Coulomb(), Armature())).with_parameters(values)


def finite_limit(one: JointActuator) -> float | None:
    """The torque limit, None where there is none."""
    return one.limit if np.isfinite(one.limit) else None


DEGREE = math.pi / 180.0


def write_table(robot: str, actuators: tuple[JointActuator, ...], details: Mapping[str, Any], path: Path) -> Path:
    """Write every actuator in SI units and as USD's physics schemas want it."""
    rows = []
    for one in actuators:
        per = DEGREE if one.turns else 1.0
        axis = "rotX" if one.turns else "transX"
        rows.append(
            {
                "joint": one.joint,
                "kp": one.kp,
                "kd": one.kd,
                "effort_limit": finite_limit(one),
                "armature": one.armature,
                "viscous": one.viscous,
                "coulomb": one.coulomb,
                "offset": one.offset,
                "delay_s": one.delay_s,
                "usd": {
                    "drive:stiffness": one.kp * per,
                    "drive:damping": one.kd * per,
                    "drive:maxForce": finite_limit(one),
                    f"physxJointAxis:{axis}:armature": one.armature,
                    f"physxJointAxis:{axis}:staticFrictionEffort": one.coulomb,
                    f"physxJointAxis:{axis}:dynamicFrictionEffort": one.coulomb,
                    f"physxJointAxis:{axis}:viscousFrictionCoefficient": one.viscous * per,
                },
            }
        )
    units = "SI per radian or metre; usd: per degree where the joint turns, as UsdPhysics drives are"
    return write_json(path, {"robot": robot, "units": units, "actuators": rows, **details})


STEP_S = 0.005
"""Physics step that the delay is counted in; the file says how to change it."""
_CONFIGURATIONS = """# Isaac Sim 5.0 and later: friction in N m
DELAYED_PD = DelayedPDActuatorCfg(
    joint_names_expr=JOINTS,
    stiffness=STIFFNESS,
    damping=DAMPING,
    armature=ARMATURE,
    friction=COULOMB,
    dynamic_friction=COULOMB,
    viscous_friction=VISCOUS,
    effort_limit=EFFORT_LIMIT or None,
    min_delay=DELAY_STEPS[0],
    max_delay=DELAY_STEPS[1],
)

# without delay, integrated with the physics
IMPLICIT = ImplicitActuatorCfg(
    joint_names_expr=JOINTS,
    stiffness=STIFFNESS,
    damping=DAMPING,
    armature=ARMATURE,
    friction=COULOMB,
    dynamic_friction=COULOMB,
    viscous_friction=VISCOUS,
    effort_limit_sim=EFFORT_LIMIT or None,
)

# Isaac Sim before 5.0: joint friction is a unitless coefficient there, so dry friction is left out
BEFORE_5 = ImplicitActuatorCfg(
    joint_names_expr=JOINTS,
    stiffness=STIFFNESS,
    damping={name: DAMPING[name] + VISCOUS[name] for name in JOINTS},
    armature=ARMATURE,
    effort_limit_sim=EFFORT_LIMIT or None,
)
"""
"""Configurations of the tables above them."""


def write_isaac(robot: str, actuators: tuple[JointActuator, ...], path: Path, step_s: float = STEP_S) -> Path:
    """Write actuator configurations for Isaac Lab."""
    limits = {one.joint: limit for one in actuators if (limit := finite_limit(one)) is not None}
    tables = {
        "STIFFNESS": {one.joint: one.kp for one in actuators},
        "DAMPING": {one.joint: one.kd for one in actuators},
        "ARMATURE": {one.joint: one.armature for one in actuators},
        "COULOMB": {one.joint: one.coulomb for one in actuators},
        "VISCOUS": {one.joint: one.viscous for one in actuators},
        "EFFORT_LIMIT": limits,
    }
    ticks = sorted(one.ticks(step_s) for one in actuators)
    names = json.dumps([one.joint for one in actuators])
    parts = "\n".join(f"{name} = {_table(values)}" for name, values in tables.items())
    offsets = {one.joint: one.offset for one in actuators if one.offset != 0.0}
    text = f'''"""Actuators of {robot}, identified by dynid from commands and positions.

SI units per radian or metre. The delay is counted in physics steps of {step_s:g} s: change both together.
Offsets (constant torque against the drive, N m) have no place in these classes; add OFFSET / STIFFNESS to the commands.
"""

from isaaclab.actuators import DelayedPDActuatorCfg, ImplicitActuatorCfg

JOINTS = {names}
{parts}
OFFSET = {_table(offsets)}
DELAY_STEPS = ({ticks[0]}, {ticks[-1]})  # smallest and largest over the joints, {1e3 * actuators[0].delay_s:.2f} ms

{_CONFIGURATIONS}'''
    return write_text(path, text)


def _table(values: dict[str, float]) -> str:
    """A dictionary of joints as Python source."""
    lines = "".join(f"    {json.dumps(name)}: {value!r},\n" for name, value in values.items())
    return "{\n" + lines + "}" if values else "{}"


DEFAULT_STEP_S = 0.002
SHORTEST_STEP_S = 5e-4
"""The memory of a delayed actuator is counted in steps; it is long enough for steps down to this one."""


def write_actuator_mjcf(robot: Robot, actuators: tuple[JointActuator, ...], path: Path) -> WrittenModel:
    """Write the robot with its identified joints and a position actuator on each; actuators of these joints before are replaced."""
    written = write_mjcf(simulated_robot(robot, actuators), path)
    text = XmlText(path.read_bytes(), f"file '{path}'")
    options = [child for child in text.root.children if child.tag == "option"]
    step_s = float(
        next((one.attributes["timestep"] for one in options[::-1] if "timestep" in one.attributes), DEFAULT_STEP_S)
    )
    driven = {one.joint for one in actuators}
    for section in (child for child in text.root.children if child.tag == "actuator"):
        for actuator in section.children:
            if actuator.attributes.get("joint") in driven:
                text.remove(actuator)
    for joint in _joints(text.root):
        if joint.attributes.get("name") in driven:
            stiff = {"solreffriction": f"{number(2.0 * step_s)} 1", "solimpfriction": "0.99 0.99 0.001 0.5 2"}
            text.set_attributes(joint, stiff)
    lines = ["<actuator>", *(f"  {_line(one, step_s)}" for one in actuators), "</actuator>"]
    text.insert_child(text.root, lines, at_end=True)
    write_bytes(path, text.edited())
    return written


def _line(one: JointActuator, step_s: float) -> str:
    values = {"name": one.name, "joint": one.joint}
    limit = finite_limit(one)
    if limit is not None:
        values["forcerange"] = f"{number(-limit)} {number(limit)}"
    if one.delay_s > 0.0:
        values |= {"delay": number(one.delay_s), "nsample": str(one.ticks(min(step_s, SHORTEST_STEP_S)) + 2)}
    if one.velocity:
        bias = " ".join(number(x) for x in (-one.offset, 0.0, -one.kd))
        general = {"gaintype": "fixed", "gainprm": number(one.kd), "biastype": "affine", "biasprm": bias}
        return xml_tag("general", values | general)
    if one.offset == 0.0:
        return xml_tag("position", values | {"kp": number(one.kp), "kv": number(one.kd)})
    bias = " ".join(number(x) for x in (-one.offset, -one.kp, -one.kd))
    general = {"gaintype": "fixed", "gainprm": number(one.kp), "biastype": "affine", "biasprm": bias}
    return xml_tag("general", values | general)


def _joints(element: ElementSpan) -> list[ElementSpan]:
    found = []
    for child in element.children:
        if child.tag == "joint":
            found.append(child)
        elif child.tag in ("worldbody", "body", "frame"):
            found.extend(_joints(child))
    return found


def write_newton(robot: str, actuators: tuple[JointActuator, ...], path: Path, step_s: float = STEP_S) -> Path:
    """Write values and a function that sets them on a ``newton.ModelBuilder``."""
    rows = {
        one.joint: {
            "target_ke": one.kp,
            "target_kd": one.kd + one.viscous,
            "armature": one.armature,
            "friction": one.coulomb,
            "effort_limit": finite_limit(one),
            "offset": one.offset,
            "delay_steps": one.ticks(step_s),
        }
        for one in actuators
    }
    values = json.dumps(rows, indent=4).replace("null", "None")
    text = f'''"""Actuators of {robot} for Newton, identified by dynid from commands and positions.

SI units. target_kd is the drive's gain plus the joint's viscous friction. delay_steps are steps of {step_s:g} s by which commands are held
back. MJX: use the MJCF export, whose actuators and friction MJX takes as they are; a version without actuator delays needs the commands
held back the same way.
"""

ACTUATORS = {values}


def apply(builder):
    """Set the values on a newton.ModelBuilder that already holds the robot; joints are found by the end of their key."""
    for index, key in enumerate(builder.joint_key):
        name = key.rsplit("/", 1)[-1]
        if name not in ACTUATORS:
            continue
        one, dof = ACTUATORS[name], builder.joint_qd_start[index]
        builder.joint_target_ke[dof] = one["target_ke"]
        builder.joint_target_kd[dof] = one["target_kd"]
        builder.joint_armature[dof] = one["armature"]
        builder.joint_friction[dof] = one["friction"]
        if one["effort_limit"] is not None:
            builder.joint_effort_limit[dof] = one["effort_limit"]
'''
    return write_text(path, text)


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


def export_actuators(run: ActuatorRun, forms: Sequence[str], folder: Path) -> dict[str, Any]:
    """Write the forms asked for into a folder.

    Args:
        run: an actuator identification.
        forms: some of ``mjcf``, ``isaac``, ``newton``, ``urdf``, ``json``.
        folder: made where it is missing.

    Returns:
        as ``dynid actuators --json`` prints it: ``files`` that were written, ``export_notes`` on what they could not hold, and of MJCF
            ``mujoco_rollout``, MuJoCo's own rollout of the file: ``rms`` from the log and ``difference`` from dynid's rollout, rad.
    """
    if run.problem.logs[0].control.supply is not None:
        raise InputError(
            "drives that are given a voltage (--motor voltage) have no place in these files; --json prints kt, resistance and friction"
        )
    follows_speed = run.problem.logs[0].control.velocity
    for form in ("isaac", "newton"):
        if form in forms and follows_speed:
            raise InputError(
                f"--export {form} holds drives that are sent positions, these are sent speeds (--control velocity); "
                "expected some of mjcf, urdf, json"
            )
    folder.mkdir(parents=True, exist_ok=True)
    actuators, robot = actuators_of(run), run.model.robot
    files: list[Path] = []
    control, notes, found = run.problem.logs[0].control, list[str](), dict[str, Any]()
    if control.lag_s:
        notes.append(f"the files have no place for the lag of the current loop ({1e3 * control.lag_s:g} ms)")
    if control.no_load_speed is not None and np.isfinite(control.no_load_speed).any():
        notes.append(
            "the files have no place for torque that falls with speed (Isaac Lab: DCMotorCfg with saturation_effort)"
        )
    if control.dead_band:
        notes.append(f"the files have no place for the dead band of the drives ({control.dead_band:g})")
    unlimited = [one.joint for one in actuators if finite_limit(one) is None]
    if unlimited:
        notes.append(
            f"no torque limit is known of {', '.join(unlimited)}, and no drive is at one in these logs: give --limit to have it written"
        )
    unsure = sorted({name for group in run.separability.groups for name in group.names} & set(run.problem.names))
    if unsure:
        notes.append(
            f"written as fitted, because the rollout needs them, though the logs do not determine each alone: {', '.join(unsure)}"
        )
    for form in forms:
        if form == "mjcf":
            written = write_actuator_mjcf(robot, actuators, folder / "robot.xml")
            files.append(written.path)
            notes.extend(written.notes)
            found["mujoco_rollout"] = _proof(run, written.path, actuators)
        elif form == "urdf":
            model = write_urdf(simulated_robot(robot, actuators), folder / "robot.urdf")
            files.append(model.path)
            notes.extend(note for note in model.notes if "URDF demands one" not in note)
        elif form == "isaac":
            files.append(write_isaac(robot.name, actuators, folder / "isaac_actuators.py"))
        elif form == "newton":
            files.append(write_newton(robot.name, actuators, folder / "newton_actuators.py"))
        else:
            details = {"sigma": run.sigma, "inseparable": [list(names) for names in run.separability.inseparable]}
            files.append(write_table(robot.name, actuators, details, folder / "actuators.json"))
    return {"files": [str(path) for path in files], "export_notes": list(dict.fromkeys(notes)), **found}


def _proof(run: ActuatorRun, path: Path, actuators: Sequence[JointActuator]) -> dict[str, float]:
    """Errors of MuJoCo's own rollout of the written file: against the log, and against dynid's rollout."""
    unseen = bool(run.unseen)
    log = run.unseen[0] if unseen else run.problem.logs[0]
    own = run.rollouts[1 if unseen else 0][0]
    names = [one.joint for one in actuators]
    # commands before the first row still act while they are on their way
    sent = log.command.at(log.time, np.zeros(len(names)))
    theirs = roll_out_controls(path, names, [one.name for one in actuators], sent, log.time, first_state(log))
    beside = {"rms": log.position, "difference": own.simulated}
    return {name: float(np.sqrt(np.mean((theirs - x) ** 2))) for name, x in beside.items()}
