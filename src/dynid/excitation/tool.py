"""Where the tool is: a point of a body, and its way through space."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.regression.closed_motion import tree_positions
from dynid.robot.model import Robot


def tool_place(robot: Robot, tool: str | None, point: ArrayLike | None = None) -> tuple[int, Array]:
    """Body and point of the tool."""
    offset = np.zeros(3) if point is None else np.asarray(point, dtype=np.float64)
    if offset.shape != (3,) or not np.isfinite(offset).all():
        raise InputError(f"tool point has {offset.size} numbers, expected 3: x, y, z")
    if tool is None:
        body = robot.n_bodies - 1
        fixed = [link for link in robot.merged if link.body == body]
        if not fixed:
            return body, offset
        placement = max(fixed, key=lambda link: float(np.linalg.norm(link.placement[:3, 3]))).placement
        return body, placement[:3, :3] @ offset + placement[:3, 3]
    if tool in robot.links:
        return robot.links.index(tool), offset
    for link in robot.merged:
        if link.name == tool and link.body >= 0:
            return link.body, link.placement[:3, :3] @ offset + link.placement[:3, 3]
    raise UnknownNameError("tool link", tool, (*robot.links, *(link.name for link in robot.merged if link.body >= 0)))


def tool_path(robot: Robot, q: Array, body: int, point: ArrayLike) -> Array:
    """Positions in the base frame of a point of a body, ``(samples, 3)``.

    From the body to the base: ``p <- R(q_i) p + t(q_i)`` with ``R = M0 + cos q M1 + sin q M2``, ``t = P0 + cos q P1 + sin q P2 + q P3``.
    """
    tree, q = robot.tree, tree_positions(robot, q)
    place = np.tile(np.asarray(point, dtype=np.float64), (len(q), 1))
    i = body
    while i >= 0:
        angle = q[:, i]
        c, s, one = np.cos(angle), np.sin(angle), np.ones_like(angle)
        R = np.einsum("nk,kij->nij", np.column_stack([one, c, s]), tree.rotation[i])
        t = np.column_stack([one, c, s, angle]) @ tree.translation[i]
        place = np.einsum("nij,nj->ni", R, place) + t
        i = int(tree.parent[i])
    return place
