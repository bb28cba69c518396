"""Couplings and gear ratios from the ``<transmission>`` elements of a URDF, ROS's and ros2_control's.

With ``n_a`` the reduction of an actuator and ``n_j`` that of a joint (1 where not stated), ROS defines

    Simple              x_a = n_a n_j x_j
    Differential        x_a1 = n_a1 (n_j1 x_j1 + n_j2 x_j2),    x_a2 = n_a2 (n_j1 x_j1 - n_j2 x_j2)
    FourBarLinkage      x_a1 = n_a1 n_j1 x_j1,                  x_a2 = n_a2 (x_j1 + n_j2 x_j2)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynid.errors import InputError
from dynid.naming import listed
from dynid.robot.coupling import Coupling

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")
_KINDS = ("SimpleTransmission", "DifferentialTransmission", "FourBarLinkageTransmission")


def coupling_from_transmissions(root: Element, joint_names: Sequence[str], where: str, notes: list[str]) -> Coupling | None:
    """The coupling that the transmissions of a description state; None where every motor turns its own joint one to one."""
    n = len(joint_names)
    B, ratios = np.eye(n), np.full(n, np.nan)
    unknown: dict[str, list[str]] = {}
    for element in root.iter("transmission"):
        name = element.get("name", "?")
        kind = _kind(element)
        places = _joints_moved(element, joint_names)
        if not places:
            continue
        if kind not in _KINDS:
            unknown.setdefault(kind, []).append(name)
            continue
        rows, ratios[places] = _rows_and_ratios(element, kind, f"transmission '{name}' in {where}")
        if len(places) > 1:
            B[np.ix_(places, places)] = rows
    for kind, names in unknown.items():
        notes.append(f"transmissions of the type '{kind}', which is not known, are left out: {listed(names)}")
    plain = bool((np.eye(n) == B).all())
    if plain and np.all(np.isnan(ratios) | (ratios == 1.0)):
        return None
    lacking = [joint for joint, ratio in zip(joint_names, ratios, strict=True) if math.isnan(ratio)]
    if lacking:
        notes.append(f"no transmission states the gear ratio of {listed(lacking)}: a log of the motors needs --gear-ratios")
        if plain:
            return None
    return Coupling(tuple(map(tuple, B.tolist())), None if lacking else tuple(ratios.tolist()))


def _joints_moved(element: Element, joint_names: Sequence[str]) -> list[int]:
    """Numbers of a transmission's joints; none where one of them does not move."""
    joints = [one.get("name", "") for one in element.findall("joint")]
    return [joint_names.index(joint) for joint in joints] if all(joint in joint_names for joint in joints) else []


def _rows_and_ratios(element: Element, kind: str, place: str) -> tuple[list[list[float]], list[float]]:
    """What a transmission of a known kind states of its joints: their rows of the coupling, and the gear ratios."""
    joints, actuators = element.findall("joint"), element.findall("actuator")
    expected = 1 if kind == "SimpleTransmission" else 2
    if len(joints) != expected or len(actuators) != expected:
        raise InputError(f"{place} has {len(joints)} joints and {len(actuators)} actuators, a {kind} has {expected} of each")
    of_joint = [_reduction(one, place) for one in joints]
    of_actuator = [_reduction(one, place) for one in actuators]
    if kind == "SimpleTransmission":
        return [[1.0]], [of_actuator[0] * of_joint[0] * _reduction(element, place)]
    a, b = of_joint
    return [[a, b], [a, -b]] if kind == "DifferentialTransmission" else [[a, 0.0], [1.0, b]], of_actuator


def _kind(element: Element) -> str:
    """Type of a transmission without the package that defines it."""
    texts = [element.get("type"), *(one.text for tag in ("type", "plugin") for one in element.findall(tag))]
    stated = next((text.strip() for text in texts if text and text.strip()), "SimpleTransmission")
    return stated.replace("::", "/").rsplit("/", maxsplit=1)[-1]


def _reduction(element: Element, place: str) -> float:
    for tag in _REDUCTIONS:
        found = element.find(tag)
        if found is None:
            continue
        try:
            value = float(found.text or "")
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value == 0.0:
            raise InputError(f"{place} has a mechanical reduction of '{found.text}', expected a number that is not zero")
        return value
    return 1.0
