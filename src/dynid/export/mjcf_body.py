"""Bodies as MuJoCo takes them, and tags of MJCF."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynid.adapters.mujoco import inertial_attributes
from dynid.arrays import Array
from dynid.export.escaping import quoteattr
from dynid.inertia import mass_com_inertia, phi_from_mass_com_inertia
from dynid.robot.effects import Place

NEARLY_MASSLESS = 1e-14
"""kg and kg m^2 of a moving body that has none: MuJoCo demands more than 1e-15."""

ATTRIBUTE: dict[Place, str] = {"damping": "damping", "friction": "frictionloss", "armature": "armature"}
"""What a joint of MJCF calls the place of friction and rotor inertia."""


def solid_body(link: str, phi: Array, notes: list[str]) -> Array:
    """A moving body as MuJoCo takes it: some mass, and some inertia about every axis, which points and rods lack."""
    mass, com, inertia = mass_com_inertia(phi)
    if mass == 0.0:
        notes.append(f"link '{link}' has no mass; MuJoCo demands some, written as {NEARLY_MASSLESS:g} kg")
        return phi + NEARLY_MASSLESS * np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    smallest = float(np.linalg.eigvalsh(inertia)[0])
    if smallest >= NEARLY_MASSLESS:
        return phi
    notes.append(f"link '{link}' has no inertia about an axis; MuJoCo demands some, written as {NEARLY_MASSLESS:g} kg m^2")
    return phi_from_mass_com_inertia(mass, com, inertia + (NEARLY_MASSLESS - smallest) * np.eye(3))


def body_inertial(phi: Array) -> dict[str, str]:
    """The attributes of ``<inertial>``."""
    mass, com, inertia = mass_com_inertia(phi)
    return inertial_attributes(float(mass), com, inertia)


def attributes_text(values: Mapping[str, str]) -> str:
    """Attributes as they stand in a tag."""
    return " ".join(f"{name}={quoteattr(value)}" for name, value in values.items())
