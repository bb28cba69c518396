"""MJCF with position actuators: ``force = kp (ctrl(t - delay) - q) - kv v - offset``, at most ``forcerange``; of drives that
are sent speeds ``kv (ctrl(t - delay) - v) - offset``.

Joints get ``armature``, ``damping`` and ``frictionloss``. MuJoCo's friction is a soft constraint that builds up over 20 ms by default;
it is made as stiff as the file's time step allows, because the identified friction is. A constant torque has no place in a
``position`` actuator, so a joint with an offset gets the ``general`` actuator that ``position`` stands for, with the offset in its bias.
"""

from __future__ import annotations

from pathlib import Path

from dynid.export.actuators.values import JointActuator, finite_limit, simulated_robot
from dynid.export.mjcf import write_mjcf
from dynid.export.mjcf_body import attributes_text
from dynid.export.written import WrittenModel, number
from dynid.export.xml_text import ElementSpan, XmlText
from dynid.files import write_bytes
from dynid.robot.model import Robot

DEFAULT_STEP_S = 0.002
SHORTEST_STEP_S = 5e-4
"""The memory of a delayed actuator is counted in steps; it is long enough for steps down to this one."""


def write_actuator_mjcf(robot: Robot, actuators: tuple[JointActuator, ...], path: Path) -> WrittenModel:
    """Write the robot with its identified joints and a position actuator on each; actuators of these joints before are replaced."""
    written = write_mjcf(simulated_robot(robot, actuators), path)
    text = XmlText(path.read_bytes(), f"file '{path}'")
    step_s = _step_s(text)
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
        return f"<general {attributes_text(values | general)}/>"
    if one.offset == 0.0:
        return f"<position {attributes_text(values | {'kp': number(one.kp), 'kv': number(one.kd)})}/>"
    bias = " ".join(number(x) for x in (-one.offset, -one.kp, -one.kd))
    general = {"gaintype": "fixed", "gainprm": number(one.kp), "biastype": "affine", "biasprm": bias}
    return f"<general {attributes_text(values | general)}/>"


def _step_s(text: XmlText) -> float:
    """The time step of the file."""
    found = DEFAULT_STEP_S
    for option in (child for child in text.root.children if child.tag == "option"):
        found = float(option.attributes.get("timestep", found))
    return found


def _joints(element: ElementSpan) -> list[ElementSpan]:
    found = []
    for child in element.children:
        if child.tag == "joint":
            found.append(child)
        elif child.tag in ("worldbody", "body", "frame"):
            found.extend(_joints(child))
    return found
