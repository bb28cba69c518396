"""A load on a robot in a vendor's form: carried into the vendor's flange frame where the description has it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import InputError, UnknownNameError
from dynid.export.vendors import FORMS, VendorText, vendor_text
from dynid.inertia import change_of_frame
from dynid.robot.frames import Frame, frame_named, frames_of
from dynid.robot.model import Robot

SAME_BODY = 1e-9
"""Largest relative difference of the carrying body's parameters after the change of frame."""


def vendor_load(
    name: str, phi: ArrayLike, frame: str | Frame | None = None, robot: Robot | None = None, load: str = "load"
) -> VendorText:
    """A load in a vendor's form; in the vendor's own frame where the robot's description has it on the same body.

    Args:
        name: of the form, see :data:`dynid.export.vendors.FORMS`.
        phi: the ten parameters in ``frame``.
        frame: the frame that they are in.
        robot: whose description may name the vendor's frame.
        load: name of the load.
    """
    if name not in FORMS:
        raise UnknownNameError("format", name, FORMS)
    if robot is None:
        return vendor_text(name, phi, frame if isinstance(frame, str) else getattr(frame, "name", "sensor"), load)
    here = frame_named(robot, frame)
    known = set(frames_of(robot))
    own = [there for link in FORMS[name].links if link in known and (there := frame_named(robot, link)).body == here.body]
    if not own or here.name in FORMS[name].links:
        return vendor_text(name, phi, here.name, load)
    there = own[0]
    pose = np.linalg.inv(there.placement) @ here.placement
    carried = change_of_frame(pose[:3, :3], pose[:3, 3]) @ np.asarray(phi, dtype=np.float64)
    # the proof that the frame is right: body, and with it every mass matrix, is the same in both
    difference = float(np.abs(there.into_body @ carried - here.into_body @ np.asarray(phi)).max())
    if difference > SAME_BODY * float(np.abs(phi).max()):
        raise InputError(
            f"the load in '{there.name}' differs from that in '{here.name}' by {difference:.2g}: the frames do not fit"
        )
    found = vendor_text(name, carried, there.name, load)
    return replace(found, notes=(*found.notes, f"carried from '{here.name}' into the vendor's frame '{there.name}'"))
