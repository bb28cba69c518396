"""A load in the form that each vendor's controller takes: units, frame, order and representation of the inertia.

One table, :data:`FORMS`, says for each form what it is, in which frame, and where that is written; what could not be confirmed in a source
stands in ``unconfirmed`` and is printed with the form. Texts are for people to paste, ``fields`` for programs.

A load on a robot in a vendor's form: carried into the vendor's flange frame where the description has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.model.frames import Frame, frame_named, frames_of
from dynid.model.inertia import change_of_frame, is_consistent, mass_com_inertia
from dynid.model.poses import inverse_pose, quaternion_from_rotation
from dynid.model.robot import Robot

KGF_CM_S2 = 0.0980665
"""kg m^2 of one kgf cm s^2."""


@dataclass(frozen=True, eq=False)
class Load:
    """A body in the frame that its numbers are in.

    Args:
        mass: kg.
        com: centre of mass, m.
        inertia: about the centre of mass, in the frame's axes, kg m^2.
        frame: name of the frame.
        name: what to call the load.
        inertia_known: whether the inertia is more than a guess; controllers get a point mass where it is not.
    """

    mass: float
    com: Array
    inertia: Array
    frame: str = "flange"
    name: str = "load"
    inertia_known: bool = True

    @classmethod
    def of(cls, phi: ArrayLike, frame: str = "flange", name: str = "load", inertia_known: bool = True) -> Load:
        """From the ten parameters in the frame."""
        if not is_consistent(phi):
            raise InputError(
                f"the load on '{frame}' is not physically consistent, and no controller takes such numbers: use the sdp estimate"
            )
        mass, com, inertia = mass_com_inertia(phi)
        tensor = 0.5 * (inertia + inertia.T) if inertia_known else np.zeros((3, 3))
        return cls(float(mass), freeze(com), freeze(tensor), frame, name, inertia_known)

    def principal(self) -> tuple[Array, Array]:
        """Principal moments and the rotation whose columns are their axes, the one nearest to the frame's own axes."""
        moments, axes = np.linalg.eigh(self.inertia)
        best: tuple[float, Array, Array] | None = None
        for order in permutations(range(3)):
            for signs in product((1.0, -1.0), repeat=3):
                Q = axes[:, order] * signs
                if np.linalg.det(Q) > 0.0 and (best is None or np.trace(Q) > best[0] + 1e-12):
                    best = float(np.trace(Q)), moments[list(order)], Q
        assert best is not None
        return best[1], best[2]


Write: TypeAlias = Callable[[Load], tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class VendorForm:
    """One form: what it is for, its frame and units, and the sources of both."""

    name: str
    title: str
    frame: str
    """What the vendor's frame is."""
    links: tuple[str, ...]
    """Names that this frame has in descriptions of these robots."""
    units: str
    inertia: str
    sources: tuple[str, ...]
    write: Write
    unconfirmed: str = ""
    """What could not be confirmed in a source."""
    loses: str = ""
    """What the form cannot hold."""
    without_inertia: str = "moments of zero, a point mass"
    """What is written where the inertia is not known; empty for forms that must have one."""


@dataclass(frozen=True, eq=False)
class VendorText:
    """A load in one form."""

    form: VendorForm
    text: str
    fields: Mapping[str, Any]
    frame: str
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": self.form.name,
            "frame": self.frame,
            "text": self.text,
            "fields": dict(self.fields),
            "notes": list(self.notes),
            "sources": list(self.form.sources),
        }


def _n(value: float) -> str:
    """A number with nine digits, without a negative zero."""
    return f"{value + 0.0:.9g}"


def _list(values: ArrayLike) -> str:
    return ", ".join(_n(float(value)) for value in np.asarray(values).ravel())


def _six(I: Array) -> list[float]:
    return [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def _franka(load: Load) -> tuple[str, dict[str, Any]]:
    columns, m, centre = load.inertia.T.ravel().tolist(), _n(load.mass), _list(load.com)
    moments = _list(columns)
    text = (
        f"robot.setLoad({m}, {{{{{centre}}}}}, {{{{{moments}}}}});\n"
        f"ros2 service call /service_server/set_load franka_msgs/srv/SetLoad "
        f'"{{mass: {m}, center_of_mass: [{centre}], load_inertia: [{moments}]}}"\n'
        f'Desk, end effector (endeffector-config.json): "mass": {m}, "centerOfMass": [{centre}], "inertia": [{moments}]'
    )
    return text, {"mass": load.mass, "center_of_mass": load.com.tolist(), "load_inertia": columns}


def _ur(load: Load) -> tuple[str, dict[str, Any]]:
    six = _six(load.inertia)
    x, y, z = (_n(float(value)) for value in load.com)
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    message = ", ".join(f"{name}: {_n(value)}" for name, value in zip(names, six, strict=True))
    mm = ", ".join(f"C{axis} {_n(1e3 * float(value))} mm" for axis, value in zip("XYZ", load.com, strict=True))
    moments = f", [{_list(six)}]" if load.inertia_known else ""
    text = (
        f"set_target_payload({_n(load.mass)}, [{x}, {y}, {z}]{moments})\n"
        f"ros2 service call /io_and_status_controller/set_payload ur_msgs/srv/SetPayload "
        f'"{{mass: {_n(load.mass)}, center_of_gravity: {{x: {x}, y: {y}, z: {z}}}, {message}}}"\n'
        f"pendant, Installation > Payload: mass {_n(load.mass)} kg, {mm}"
    )
    return text, {"mass": load.mass, "cog": load.com.tolist(), "inertia": six if load.inertia_known else None}


def euler_zyx_degrees(R: Array) -> tuple[float, float, float]:
    """``A, B, C``: about z, the new y, the newest x, ``R = Rz(A) Ry(B) Rx(C)``, degrees."""
    B = float(np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0])))
    if abs(np.cos(B)) > 1e-9:
        A, C = float(np.arctan2(R[1, 0], R[0, 0])), float(np.arctan2(R[2, 1], R[2, 2]))
    else:  # A and C turn about one axis: all of it is given to A
        A, C = float(np.arctan2(-R[0, 1], R[1, 1])), 0.0
    a, b, c = np.degrees([A, B, C])
    return float(a), float(b), float(c)


def _kuka(load: Load) -> tuple[str, dict[str, Any]]:
    J, axes = load.principal()
    A, B, C = euler_zyx_degrees(axes)
    x, y, z = (1e3 * float(value) for value in load.com)
    text = (
        f"LOAD_DATA[1]={{M {_n(load.mass)},CM {{X {_n(x)},Y {_n(y)},Z {_n(z)},A {_n(A)},B {_n(B)},C {_n(C)}}},"
        f"J {{X {_n(J[0])},Y {_n(J[1])},Z {_n(J[2])}}}}}"
    )
    return text, {"M": load.mass, "X": x, "Y": y, "Z": z, "A": A, "B": B, "C": C, "JX": J[0], "JY": J[1], "JZ": J[2]}


def _abb(load: Load) -> tuple[str, dict[str, Any]]:
    J, axes = load.principal()
    aom = quaternion_from_rotation(axes).tolist()
    cog = (1e3 * load.com).tolist()
    text = f"PERS loaddata {_identifier(load.name)}:=[{_n(load.mass)},[{_list(cog)}],[{_list(aom)}],{_n(J[0])},{_n(J[1])},{_n(J[2])}];"
    return text, {"mass": load.mass, "cog": cog, "aom": aom, "ix": J[0], "iy": J[1], "iz": J[2]}


def _fanuc(load: Load) -> tuple[str, dict[str, Any]]:
    centre, I = (100.0 * load.com).tolist(), (np.diag(load.inertia) / KGF_CM_S2).tolist()
    lines = [f"PAYLOAD [kg] {_n(load.mass)}"]
    lines += [f"PAYLOAD CENTER {axis} [cm] {_n(value)}" for axis, value in zip("XYZ", centre, strict=True)]
    lines += [f"PAYLOAD INERTIA {axis} [kgfcms^2] {_n(value)}" for axis, value in zip("XYZ", I, strict=True)]
    return "\n".join(lines), {"payload_kg": load.mass, "center_cm": centre, "inertia_kgfcms2": I}


def _yaskawa(load: Load) -> tuple[str, dict[str, Any]]:
    centre, I = (1e3 * load.com).tolist(), np.diag(load.inertia).tolist()
    lines = [f"W {_n(load.mass)} kg"]
    lines += [f"{axis}g {_n(value)} mm" for axis, value in zip("XYZ", centre, strict=True)]
    lines += [f"I{axis} {_n(value)} kg.m2" for axis, value in zip("xyz", I, strict=True)]
    return "\n".join(lines), {
        "W": load.mass,
        "Xg": centre[0],
        "Yg": centre[1],
        "Zg": centre[2],
        "Ix": I[0],
        "Iy": I[1],
        "Iz": I[2],
    }


def _urdf(load: Load) -> tuple[str, dict[str, Any]]:
    from xml.sax.saxutils import quoteattr  # it loads a client for the internet, which models need not

    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    values = " ".join(f'{name}="{_n(value)}"' for name, value in zip(names, _six(load.inertia), strict=True))
    xyz = " ".join(_n(float(value)) for value in load.com)
    link, joint = quoteattr(load.name), quoteattr(f"{load.name}_joint")
    text = f"""<link name={link}>
  <inertial>
    <origin xyz="{xyz}" rpy="0 0 0"/>
    <mass value="{_n(load.mass)}"/>
    <inertia {values}/>
  </inertial>
</link>
<joint name={joint} type="fixed">
  <parent link={quoteattr(load.frame)}/>
  <child link={link}/>
  <origin xyz="0 0 0" rpy="0 0 0"/>
</joint>"""
    return text, {
        "mass": load.mass,
        "origin": load.com.tolist(),
        "inertia": dict(zip(names, _six(load.inertia), strict=True)),
    }


def _mjcf(load: Load) -> tuple[str, dict[str, Any]]:
    from xml.sax.saxutils import quoteattr

    pos = " ".join(_n(float(value)) for value in load.com)
    full = " ".join(_n(value) for value in _six(load.inertia))
    text = f"""<body name={quoteattr(load.name)}>
  <inertial pos="{pos}" mass="{_n(load.mass)}" fullinertia="{full}"/>
</body>"""
    return text, {"mass": load.mass, "pos": load.com.tolist(), "fullinertia": _six(load.inertia)}


def _identifier(name: str) -> str:
    """A RAPID identifier: letters, digits and underscores, at most 32, a letter first."""
    kept = "".join(letter if letter.isascii() and (letter.isalnum() or letter == "_") else "_" for letter in name)[:31]
    return kept if kept[:1].isalpha() else f"l{kept}"


_DIAGONAL = "products of inertia: the form has three moments about axes parallel to the frame's"
FORMS: Mapping[str, VendorForm] = {
    form.name: form
    for form in (
        VendorForm(
            "franka",
            "libfranka Robot::setLoad, franka_msgs/SetLoad and the end effector of Desk",
            "flange (F)",
            ("panda_link8", "fr3_link8", "fp3_link8", "link8"),
            "kg, m, kg m^2",
            "3x3 about the centre of mass, in flange axes, column by column",
            (
                "https://docs.ros.org/en/humble/p/franka_msgs/srv/SetLoad.html",
                "libfranka include/franka/robot.h, setLoad(load_mass, F_x_Cload, load_inertia); robot_state.h, I_load about the centre",
                "https://download.franka.de/ride-cli-doc-v1.1.1/end_effector_commissioning.html",
            ),
            _franka,
        ),
        VendorForm(
            "ur",
            "URScript set_target_payload and ur_msgs/SetPayload",
            "tool flange",
            ("tool0",),
            "kg, m, kg m^2",
            "Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the centre of gravity, axes aligned with the tool flange",
            (
                "https://www.universal-robots.com/manuals/EN/HTML/SW10_6/Content/prod-scriptmanual/G5/set_target_payload.htm",
                "https://docs.ros.org/en/jazzy/p/ur_msgs/srv/SetPayload.html",
            ),
            _ur,
            without_inertia="no inertia in set_target_payload, which is optional there, and zero in the message",
        ),
        VendorForm(
            "kuka",
            "KUKA load data (LOAD_DATA: M, CM, J)",
            "flange",
            ("flange", "tool0"),
            "kg, mm, degrees, kg m^2",
            "principal moments JX, JY, JZ; A, B, C turn about z, the new y, the newest x into their axes",
            (
                "https://infosys.beckhoff.com/content/1033/tf5120/13081587595.html",
                "https://www.easymanua.ls/kuka/iontec-kr-20-r3100/manual?p=40",
            ),
            _kuka,
        ),
        VendorForm(
            "abb",
            "RAPID loaddata",
            "tool frame for a payload, wrist frame (tool0) for a tool",
            ("tool0",),
            "kg, mm, kg m^2",
            "principal moments ix, iy, iz about the centre of gravity; aom is the quaternion q1..q4 (scalar first) of their axes",
            (
                "http://docs.ros.org/en/noetic/api/abb_rapid_msgs/html/msg/LoadData.html",
                "https://developercenter.robotstudio.com/api/robotstudioApi/html/881a2e07-3833-01bf-fc46-56dbb4cf8161.htm",
            ),
            _abb,
        ),
        VendorForm(
            "fanuc",
            "FANUC MOTION/PAYLOAD SET screen",
            "faceplate",
            ("tool0", "flange"),
            "kg, cm, kgf cm s^2",
            "moments about axes through the centre of gravity, parallel to the faceplate's",
            ("https://ch-delivery.lincolnelectric.com/api/public/content/67cd62debb004088957ebe41ecebc9c1",),
            _fanuc,
            unconfirmed="the unit of inertia, kgf cm s^2: the source at hand confirms kg and cm alone; compare it with the screen",
            loses=_DIAGONAL,
        ),
        VendorForm(
            "yaskawa",
            "Yaskawa tool file: W, Xg Yg Zg, Ix Iy Iz",
            "flange",
            ("flange", "tool0"),
            "kg, mm, kg m^2",
            "moments at the centre of gravity about axes parallel to the flange's",
            ("https://www.easymanua.ls/yaskawa/motoman-nx100/manual?p=259",),
            _yaskawa,
            loses=_DIAGONAL,
        ),
        VendorForm(
            "urdf",
            "URDF link with a fixed joint",
            "the parent link",
            (),
            "kg, m, kg m^2",
            "about the centre of mass, in the link's axes",
            ("https://wiki.ros.org/urdf/XML/link",),
            _urdf,
            without_inertia="",
        ),
        VendorForm(
            "mjcf",
            "MJCF body, to be put inside the body of the frame",
            "the parent body",
            (),
            "kg, m, kg m^2",
            "fullinertia M11 M22 M33 M12 M13 M23 about the centre of mass",
            ("https://mujoco.readthedocs.io/en/stable/XMLreference.html#body-inertial",),
            _mjcf,
            without_inertia="",
        ),
    )
}


def vendor_text(
    name: str, phi: ArrayLike, frame: str = "flange", load: str = "load", inertia_known: bool = True
) -> VendorText:
    """A load in the form of a vendor.

    Args:
        name: ``franka``, ``ur``, ``kuka``, ``abb``, ``fanuc``, ``yaskawa``, ``urdf`` or ``mjcf``.
        phi: the ten parameters in the vendor's frame.
        frame: name of that frame; the parent link of ``urdf``.
        load: name of the load.
        inertia_known: False to leave an inertia out that is no more than a guess.

    Examples:
        >>> import dynid
        >>> from dynid.io.vendors import vendor_text
        >>> print(vendor_text("ur", [2.0, 0, 0, 0.1, 0.02, 0, 0.02, 0, 0, 0.01]).text.splitlines()[0])
        set_target_payload(2, [0, 0, 0.05], [0.015, 0.015, 0.01, 0, 0, 0])
    """
    if name not in FORMS:
        raise UnknownNameError("format", name, FORMS)
    form = FORMS[name]
    body = Load.of(phi, frame, load, inertia_known or not form.without_inertia)
    text, fields = form.write(body)
    notes = []
    if not inertia_known:
        written = form.without_inertia or "the consistent body nearest to the data, which the simulator needs"
        notes.append(
            f"the inertia is not determined by these data; written is {written}: take it from a drawing where it matters"
        )
    if form.links and frame not in form.links:
        notes.append(
            f"{form.title} takes numbers in the {form.frame} frame; these are in '{frame}': make sure that it is the same frame"
        )
    if form.loses and float(np.abs(body.inertia - np.diag(np.diag(body.inertia))).max()) > 1e-6 * float(
        np.trace(body.inertia)
    ):
        notes.append(f"this form cannot hold {form.loses}")
    if form.unconfirmed:
        notes.append(f"not confirmed in a source: {form.unconfirmed}")
    return VendorText(form, text, fields, frame, tuple(notes))


SAME_BODY = 1e-9
"""Largest relative difference of the carrying body's parameters after the change of frame."""


def vendor_load(
    name: str,
    phi: ArrayLike,
    frame: str | Frame | None = None,
    robot: Robot | None = None,
    load: str = "load",
    inertia_known: bool = True,
) -> VendorText:
    """A load in a vendor's form; in the vendor's own frame where the robot's description has it on the same body.

    Args:
        name: of the form, see :data:`dynid.io.vendors.FORMS`.
        phi: the ten parameters in ``frame``.
        frame: the frame that they are in.
        robot: whose description may name the vendor's frame.
        load: name of the load.
        inertia_known: False to leave an inertia out that is no more than a guess.
    """
    if name not in FORMS:
        raise UnknownNameError("format", name, FORMS)
    if robot is None:
        here_name = frame if isinstance(frame, str) else getattr(frame, "name", "sensor")
        return vendor_text(name, phi, here_name, load, inertia_known)
    here = frame_named(robot, frame)
    known = set(frames_of(robot))
    own = [there for link in FORMS[name].links if link in known and (there := frame_named(robot, link)).body == here.body]
    if not own or here.name in FORMS[name].links:
        return vendor_text(name, phi, here.name, load, inertia_known)
    there = own[0]
    pose = inverse_pose(there.placement) @ here.placement
    carried = change_of_frame(pose[:3, :3], pose[:3, 3]) @ np.asarray(phi, dtype=np.float64)
    # the proof that the frame is right: body, and with it every mass matrix, is the same in both
    difference = float(np.abs(there.into_body @ carried - here.into_body @ np.asarray(phi)).max())
    if difference > SAME_BODY * float(np.abs(phi).max()):
        raise InputError(
            f"the load in '{there.name}' differs from that in '{here.name}' by {difference:.2g}: the frames do not fit"
        )
    found = vendor_text(name, carried, there.name, load, inertia_known)
    return replace(found, notes=(*found.notes, f"carried from '{here.name}' into the vendor's frame '{there.name}'"))
