"""MuJoCo simulates a robot on its feet: what joints, base and feet do, and the columns of a log of it.

Motors follow references by a spring and a damper. Friction and rotors of the joints are MuJoCo's; the torque is that of the motors. Feet
are spheres or boxes on a plane, so that slips, bounces and late contacts happen as they do on a robot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.io.robots.mjcf_new import mjcf_text
from dynid.io.robots.mujoco_model import compile_mjcf, mujoco_order, mujoco_warnings
from dynid.io.robots.simulator_joint import vector
from dynid.io.robots.xml import parse_xml, serialize_xml
from dynid.model.frames import Frame, frame_named, leg_joints
from dynid.model.poses import quaternion_from_rotation, rotation_from_quaternion
from dynid.model.robot import Robot

SETTLE_S = 1.0
"""Time before the log begins, in which motors take over from the first pose."""
SAG_RAD, DAMPED_S = 0.03, 0.015
"""How far the weight of a robot turns a joint of its legs, and damping over stiffness."""
STABLE = 0.3
"""Part of its speed that the damping of a motor takes from a joint in a step, at most."""
LEAST_UP = 0.5
"""Cosine of the tilt of the base from which on a robot has fallen."""
NOISE = {"base_": 5e-4, "base_q": 2e-4, "base_v": 5e-3, "base_w": 5e-3, "imu_a": 5e-2, "imu_w": 5e-3, "q": 2e-4, "dq": 5e-3}
"""Usual noise of what is logged of base and joints, SI units."""
SOLE = (0.1, 0.06, 0.01)
"""Half lengths of a usual flat foot, m."""
FORCE_NOISE = np.array([5.0, 5.0, 5.0, 0.1, 0.1, 0.1])
"""Noise of a force and a moment over that of torque."""


@dataclass(frozen=True)
class World:
    """How contacts are simulated and a row is logged."""

    step_s: float = 0.001
    integrator: str = "Euler"
    contact: Mapping[str, str] = field(default_factory=dict)
    """Attributes of feet and ground in MJCF, such as ``solref``."""
    option: Mapping[str, str] = field(default_factory=dict)
    """Attributes of MuJoCo's options, such as ``cone``."""
    radius: float = 0.015
    sole: tuple[float, float, float] | None = None
    """Half lengths of flat feet, m; None for round ones."""
    after: bool = False
    """Whether a row is logged behind a step: state of its end, torque and acceleration of its beginning."""


PLAIN = World()


def on_ground(robot: Robot, feet: Sequence[Frame], world: World, *, ground: bool = True) -> Any:
    """The robot as a ``mujoco.MjModel`` with shapes at its feet, above a plane."""
    from xml.etree.ElementTree import SubElement

    where = f"robot '{robot.name}'"
    root = parse_xml(mjcf_text(robot, limits=False).encode(), where)
    touching = {"friction": "1 0.02 0.001", **world.contact}
    shape = {"type": "sphere", "size": str(world.radius)}
    if world.sole is not None:
        shape = {"type": "box", "size": vector(np.array(world.sole))}
    option, around = next(root.iter("option")), next(root.iter("worldbody"))
    option.attrib |= {"timestep": str(world.step_s), "integrator": world.integrator, **world.option}
    SubElement(option, "flag", eulerdamp="disable")  # logged accelerations and torques are those that velocities follow
    bodies = {body.get("name", ""): body for body in root.iter("body")}
    for foot in feet:
        turn = vector(quaternion_from_rotation(foot.placement[:3, :3]))
        place = {"name": f"sole of {foot.name}", "pos": vector(foot.placement[:3, 3]), "quat": turn}
        SubElement(bodies[robot.links[foot.body]], "geom", place | shape | touching)
        SubElement(bodies[robot.links[foot.body]], "site", place)
    if ground:
        SubElement(around, "geom", {"name": "ground", "type": "plane", "size": "50 50 1"} | touching)
    return compile_mjcf(serialize_xml(root), where)


def stiffness_for(robot: Robot, feet: Sequence[Frame], model: Any, data: Any) -> Array:
    """Stiffness of every joint, N m/rad: that of legs carries the robot with little sag, that of others what they carry."""
    import mujoco

    mujoco.mj_forward(model, data)
    reach = max((float(np.linalg.norm(data.site(f"sole of {foot.name}").xpos - data.xpos[1])) for foot in feet), default=0.5)
    legs = {j for foot in feet for j in leg_joints(robot, foot.body)}
    leg, carried = float(model.body_mass.sum()) * reach / max(len(feet), 1), np.zeros(robot.n_dof - 6)
    for k in range(1, robot.n_bodies):
        at = model.body(robot.links[k]).id
        arm = max(0.1 * reach, float(np.linalg.norm(data.subtree_com[at] - data.xpos[at])))
        carried[k - 1] = leg if k - 1 in legs else float(model.body_subtreemass[at]) * arm
    return (float(np.linalg.norm(robot.gravity)) or 9.81) * carried / SAG_RAD


def _standing_height(data: Any, feet: Sequence[Frame], world: World) -> float:
    """Of the base where the lowest foot touches the ground."""
    low = min((float(data.site(f"sole of {foot.name}").xpos[2]) for foot in feet), default=0.0)
    return float(data.qpos[2] - low + (world.sole[2] if world.sole else world.radius))


def _refuse_fall(name: str, t: float, said: Sequence[str], up: float) -> None:
    """Refuse a simulation that MuJoCo warned of, or whose base has tilted."""
    if said or up < LEAST_UP:
        why = said[0] if said else "its base has tilted by 60 degrees"
        raise InputError(
            f"robot '{name}' falls over after {t:.3g} s: {why}; expected a motion that it can follow on its feet"
        )


def simulate_on_feet(
    robot: Robot,
    references: Callable[[float, Any, Any], Array],
    seconds: float,
    feet: Sequence[str],
    *,
    world: World = PLAIN,
    rate_hz: float = 100.0,
    height: float | None = None,
    stiffness: ArrayLike | None = None,
    damping: ArrayLike | None = None,
    ground: bool = True,
    push: Callable[[float, Any], Array] | None = None,
) -> dict[str, Array]:
    """Simulate a robot on a floating base, whose motors follow references.

    Args:
        robot: the robot on a floating base, with the values of its effects.
        references: positions that the joints are to have, from the time and MuJoCo's model and data; it starts in those at zero.
        seconds: length of the log, which begins a second after the start.
        feet: frames that touch the ground.
        world: how contacts are simulated.
        rate_hz: rows of the log per second.
        height: of the base at the start, m; None where the lowest foot touches the ground.
        stiffness: of the motors, N m/rad; None for one that carries the robot.
        damping: of the motors, N m s/rad; None for a share of the stiffness.
        ground: whether there is any.
        push: force in the world and moment in the base on the base, from the time and MuJoCo's data.

    Returns:
        arrays by what they are, one row per sample: ``t``, ``pose`` of the base (quaternion x, y, z, w), its ``twist`` and ``rate`` in
            its axes, ``q``, ``dq``, ``ddq``, ``tau``, ``contact`` and ``force`` of the feet in their bodies' axes, ``push``.
    """
    import mujoco

    frames = [frame_named(robot, name) for name in feet]
    model = on_ground(robot, frames, world, ground=ground)
    data, rows = mujoco.MjData(model), list[dict[str, Array]]()
    order = np.array(mujoco_order(robot)[1][6:]) - 6
    data.qpos[7:] = references(0.0, model, data)[order]
    mujoco.mj_forward(model, data)
    data.qpos[2] = _standing_height(data, frames, world) if height is None else height
    kp = np.broadcast_to(stiffness_for(robot, frames, model, data)[order] if stiffness is None else stiffness, len(order))
    kd = np.minimum(DAMPED_S * kp, STABLE / world.step_s * model.dof_M0[6:]) if damping is None else np.asarray(damping)
    every, least_up = max(1, round(1.0 / rate_hz / world.step_s)), 1.0 - 2.0 * float(ground and model.opt.gravity.any())
    with mujoco_warnings() as said:
        for k in range(round((seconds + SETTLE_S) / world.step_s)):
            t = k * world.step_s
            tau = kp * (references(t, model, data)[order] - data.qpos[7:]) - kd * data.qvel[6:]
            data.qfrc_applied[6:] = tau
            if push is not None:
                data.qfrc_applied[:6] = push(t, data)
            (mujoco.mj_step if world.after else mujoco.mj_forward)(model, data)
            if k % every == 0 and t >= SETTLE_S:
                rows.append(_row(model, data, frames) | {"t": np.array([t - SETTLE_S]), "tau": tau})
            if not world.after:
                mujoco.mj_step(model, data)
            _refuse_fall(robot.name, t, said, max(float(data.xmat[1][8]), least_up))
    made = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return made | {name: made[name][:, np.argsort(order)] for name in ("q", "dq", "ddq", "tau")}


def _row(model: Any, data: Any, feet: Sequence[Frame]) -> dict[str, Array]:
    """What one row of a log needs of MuJoCo's state; joints in MuJoCo's order."""
    R = rotation_from_quaternion(data.qpos[None, 3:7])[0]
    moved, w, a = R.T @ data.qvel[:3], data.qvel[3:6].copy(), data.qacc
    contact, force = contact_forces(model, data, feet)
    return {
        "pose": np.concatenate([data.qpos[:3], data.qpos[4:7], data.qpos[3:4]]),
        "twist": np.concatenate([moved, w]),
        "rate": np.concatenate([R.T @ a[:3] - np.cross(w, moved), a[3:6]]),
        "q": data.qpos[7:].copy(),
        "dq": data.qvel[6:].copy(),
        "ddq": a[6:].copy(),
        "contact": contact,
        "force": force,
        "push": np.concatenate([R.T @ data.qfrc_applied[:3], data.qfrc_applied[3:6]]),
    }


def contact_forces(model: Any, data: Any, feet: Sequence[Frame]) -> tuple[Array, Array]:
    """Whether each foot touches something, and force and moment on its frame in the axes of its body, ``(feet, 6)``."""
    import mujoco

    touched, force, six = np.zeros(len(feet)), np.zeros((len(feet), 6)), np.zeros(6)
    soles = {model.geom(f"sole of {foot.name}").id: k for k, foot in enumerate(feet)}
    for c, contact in enumerate(data.contact[: data.ncon]):
        for geom, sign in zip(contact.geom, (-1.0, 1.0), strict=True):
            if (k := soles.get(int(geom))) is None:
                continue
            mujoco.mj_contactForce(model, data, c, six)
            own = sign * contact.frame.reshape(3, 3).T @ six[:3]
            turn = data.xmat[model.geom_bodyid[geom]].reshape(3, 3).T
            arm = contact.pos - data.site(f"sole of {feet[k].name}").xpos
            touched[k] = 1.0
            force[k] += np.concatenate([turn @ own, turn @ np.cross(arm, own)])
    return touched, force


def floating_columns(
    made: Mapping[str, Array],
    robot: Robot,
    feet: Sequence[str],
    *,
    torque_noise: ArrayLike = 0.0,
    motion_noise: float = 0.0,
    seed: int = 0,
    by_name: bool = False,
) -> dict[str, Array]:
    """Columns of a log of what was simulated.

    ``torque_noise`` is in N m, one or one per joint; ``motion_noise`` multiplies the usual noise of base, IMU and joints. Without it
    accelerations are logged as well.
    """
    rng, pose, twist, rate = np.random.default_rng(seed), made["pose"], made["twist"], made["rate"]
    up = -np.einsum("nji,j->ni", rotation_from_quaternion(pose[:, [6, 3, 4, 5]]), robot.gravity)
    proper = rate[:, :3] + np.cross(twist[:, 3:], twist[:, :3]) + up
    parts = {"base_": pose[:, :3], "base_q": pose[:, 3:], "base_v": twist[:, :3], "base_w": twist[:, 3:]}
    parts |= {"imu_a": proper, "imu_w": twist[:, 3:], "q": made["q"], "dq": made["dq"]}
    noisy = {name: x + motion_noise * NOISE[name] * rng.normal(size=x.shape) for name, x in parts.items()}
    noisy["base_q"] /= np.linalg.norm(noisy["base_q"], axis=1)[:, None]
    noisy["tau"] = made["tau"] + np.asarray(torque_noise) * rng.normal(size=made["tau"].shape)
    if motion_noise == 0.0:
        noisy |= {"base_a": rate[:, :3], "base_al": rate[:, 3:], "ddq": made["ddq"]}
    columns: dict[str, Array] = {"t": made["t"][:, 0]}
    names = (
        [f"_{joint.name}" for joint in robot.driven_joints] if by_name else [f"{k + 1}" for k in range(made["q"].shape[1])]
    )
    for stem, values in noisy.items():
        ends = "xyzw" if stem.startswith(("base_", "imu_")) else names
        columns |= {f"{stem}{end}": column for end, column in zip(ends, values.T, strict=False)}
    forces = dict(zip(feet, made["force"].swapaxes(0, 1), strict=True))
    if made["push"].any():
        forces[robot.links[0]] = made["push"]
    for name, force in forces.items():
        sensed = force + np.mean(np.asarray(torque_noise, dtype=np.float64)) * (
            FORCE_NOISE if name in feet else 1.0
        ) * rng.normal(size=force.shape)
        columns |= {
            f"{name}_{kind}{axis}": sensed[:, 3 * j + i] for j, kind in enumerate("fm") for i, axis in enumerate("xyz")
        }
    return columns | {f"contact_{name}": made["contact"][:, k] for k, name in enumerate(feet)}
