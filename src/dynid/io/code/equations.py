"""A robot's equations of motion in symbols: Newton-Euler and composite bodies, link by link.

Every body gets a frame whose z axis is its joint's, ``P' = A_parent^-1 P A``, so that a joint turns by ``Rz(q)`` or slides
along z. Torque does not change when what is symmetric about a joint's axis is counted to the link before it (Gautier and
Khalil's grouping): mass, first and second moment along the axis of a turning link and all second moments of a sliding one
become zero, and with them their products. With angular velocity ``w``, angular acceleration ``b``, linear acceleration
``a`` of a frame's origin less gravity, and ``U = [b] + [w][w]``, the forces on a body with mass ``m``, first moments ``h``
and second moments ``S = tr(I)/2 1 - I`` are

    f = m a + U h,        n = h x a + sum over its points of r x U r,   e.g. n_x = (U S)_zy - (U S)_yz + (h x a)_x.

The functions of one robot, before they are written in a language: what each takes, what it fills, and what it must return.

    tau = M(q) a + C(q, v) v + g(q) + friction(q, v, a, load)

``coriolis_matrix`` is that of Christoffel symbols, so ``dM/dt - 2 C`` is skew; robots on a floating base, whose velocities are no rates of
coordinates, have none. ``forward_dynamics`` takes friction at the sliding sign of the speed; where friction depends on the load, which
depends on the acceleration, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.dynamics.joint_effects import effect_gains, rotor_matrix
from dynid.io.code.expressions import Dialect, Expression, Graph, derivative, inputs_of, straight_line, symbolic_signals
from dynid.model.effects.effect import Effect, Motion
from dynid.model.inertia import change_of_frame, pseudo_inertia
from dynid.model.joint import Joint, axis_point, pitch
from dynid.model.robot import Robot

Vector: TypeAlias = NDArray[np.object_]
"""Expressions, such as three of a vector or one per degree of freedom."""
Matrix: TypeAlias = NDArray[np.object_]
Body: TypeAlias = tuple[Expression, Vector, Matrix]
"""Mass, first moments and inertia about the origin of a body's frame."""

SNAP = 1e-15
"""Entries of rotations this near to 0, 1 or -1 are those: sines of pi are not worth a product."""


@dataclass(frozen=True, eq=False)
class SymbolicRobot:
    """The robot in frames on its joints, with its inertials grouped towards the base."""

    robot: Robot
    graph: Graph
    placements: tuple[Array, ...]
    inertials: Array
    rotates: tuple[float, ...]
    slides: tuple[float, ...]

    @staticmethod
    def of(robot: Robot) -> SymbolicRobot:
        frames = [_frame_on_axis(joint) for joint in robot.joints]
        placements, inertials = [], np.empty((robot.n_bodies, 10))
        for i, joint in enumerate(robot.joints):
            above = np.linalg.inv(frames[joint.parent]) if joint.parent >= 0 else np.eye(4)
            pose = above @ joint.placement @ frames[i]
            R = pose[:3, :3]
            R[np.abs(R) < SNAP] = 0.0
            for sign in (1.0, -1.0):
                R[np.abs(R - sign) < SNAP] = sign
            placements.append(pose)
            into = np.linalg.inv(frames[i])
            inertials[i] = change_of_frame(into[:3, :3], into[:3, 3]) @ robot.parameters.inertials[i]
        rotates = tuple(float(joint.kind in ("revolute", "continuous")) for joint in robot.joints)
        slides = tuple(1.0 if joint.kind == "prismatic" else pitch(joint) for joint in robot.joints)
        _group(robot.joints, placements, inertials)
        return SymbolicRobot(robot, Graph(), tuple(placements), inertials, rotates, slides)

    # Motion -----------------------------------------------------------------------------------

    def constants(self, values: Array) -> NDArray[np.object_]:
        """Known numbers as expressions."""
        return _objects([self.graph.constant(float(value)) for value in np.ravel(values)]).reshape(np.shape(values))

    def inputs(self, letter: str, n: int) -> Vector:
        """``n`` variables ``q0 q1 ..``, the entries of one array that the code is given."""
        return _objects([self.graph.input(f"{letter}{k}") for k in range(n)])

    def motion(self) -> tuple[Vector, Vector, Vector]:
        """Position, velocity and acceleration, as variables of the code."""
        n = self.robot.n_dof
        return self.inputs("q", self.robot.n_position), self.inputs("v", n), self.inputs("a", n)

    def _poses(self, q: Vector) -> list[tuple[Matrix, Vector]]:
        """Rotation and translation of every body in its parent."""
        poses: list[tuple[Matrix, Vector]] = []
        for i, joint in enumerate(self.robot.joints):
            R0, p0 = self.constants(self.placements[i][:3, :3]), self.constants(self.placements[i][:3, 3])
            if joint.kind == "floating":
                poses.append((R0 @ _quaternion_rotation(q[3:7]), p0 + R0 @ q[:3]))
                continue
            angle, R = q[i + 6 if self.robot.floating else i], R0
            if self.rotates[i]:
                c, s = self.graph.cos(angle), self.graph.sin(angle)
                zero, one = self.constants(np.arange(2.0))
                R = R0 @ _objects([[c, -s, zero], [s, c, zero], [zero, zero, one]])
            if self.slides[i]:
                p0 = p0 + R0[:, 2] * (angle * self.slides[i])
            poses.append((R, p0))
        return poses

    def _dof(self, i: int) -> int:
        return i + 5 if self.robot.floating and i > 0 else i

    # Equations --------------------------------------------------------------------------------

    def transmitted_torque(self, q: Vector, v: Vector, a: Vector) -> Vector:
        """Rigid bodies and what else is neither friction nor rotor."""
        robot = self.robot
        torque = self.rigid_torque(q, v, a)
        still = np.zeros((1, len(robot.driven)))
        others = [
            effect
            for effect in robot.effects
            if not effect.is_friction and effect.momentum_signals(Motion(still, still, still)) is None
        ]
        torque += self._effects(others, q, v, a, torque)
        return torque

    def rotor_torque(self, a: Vector) -> Vector:
        """Inertia of rotors, those of coupled motors included."""
        torque = self.constants(np.zeros(self.robot.n_dof))
        for (row, column), value in np.ndenumerate(rotor_matrix(self.robot)):
            torque[row] = torque[row] + a[column] * value
        return torque

    def rigid_torque(self, q: Vector, v: Vector, a: Vector, *, gravity: bool = True) -> Vector:
        """Newton-Euler: outward for motion, inward for forces."""
        joints = self.robot.joints
        poses = self._poses(q)
        down = self.constants(-self.robot.gravity if gravity else np.zeros(3))
        zero, *_ = nothing = self.constants(np.zeros(3))
        w: list[Vector] = []
        b: list[Vector] = []
        acceleration: list[Vector] = []
        U: list[Matrix] = []
        force: list[Vector] = []
        moment: list[Vector] = []
        for i, joint in enumerate(joints):
            R, p = poses[i]
            up = joint.parent
            w_up, b_up = (R.T @ w[up], R.T @ b[up]) if up >= 0 else (nothing, nothing)
            a_up = R.T @ (acceleration[up] + U[up] @ p if up >= 0 else down)
            if joint.kind == "floating":
                w_i, b_i = v[3:6], a[3:6]
                a_i = a_up + (a[:3] + _cross(w_i, v[:3]))
            else:
                speed, rate = v[self._dof(i)], a[self._dof(i)]
                turn, slide = self.constants(np.array([self.rotates[i], self.slides[i]]))
                along_z = _objects([zero, zero, turn * speed])
                w_i = w_up + along_z
                b_i = b_up + (_cross(w_up, along_z) + _objects([zero, zero, turn * rate]))
                sliding = _objects([zero, zero, slide * speed])
                a_i = a_up + (_cross(w_up, sliding) * 2.0 + _objects([zero, zero, slide * rate]))
            w.append(w_i)
            b.append(b_i)
            acceleration.append(a_i)
            U.append(_rotational(w_i, b_i))
            f, n = self._newton_euler(i, w_i, a_i, U[i])
            force.append(f)
            moment.append(n)
        torque = self.constants(np.zeros(self.robot.n_dof))
        for i in range(len(joints) - 1, -1, -1):
            if joints[i].kind == "floating":
                torque[:6] = [*force[i], *moment[i]]
            else:
                torque[self._dof(i)] = self._along(i, force[i], moment[i])
            if joints[i].parent >= 0:
                f, n = _carried(poses[i], force[i], moment[i])
                up = joints[i].parent
                force[up], moment[up] = force[up] + f, moment[up] + n
        return torque

    def _newton_euler(self, i: int, w: Vector, a: Vector, U: Matrix) -> tuple[Vector, Vector]:
        m, h, _ = self._body(i)
        f = a * m + U @ h
        S = self.constants(pseudo_inertia(self.inertials[i])[:3, :3])
        n = _cross(h, a)
        for x in range(3):
            y, z = (x + 1) % 3, (x + 2) % 3
            difference = w[z] * w[z] - w[y] * w[y]  # U_zz - U_yy = w_z^2 - w_y^2
            ahead = _objects([U[z, x], U[z, y], difference]) @ _objects([S[x, y], S[y, y], S[y, z]])
            n[x] = n[x] + (ahead - U[y, [x, z]] @ S[z, [x, z]])
        return f, n

    def coriolis_matrix(self, q: Vector, v: Vector) -> Matrix:
        """``C_ij = sum_k c_ijk v_k`` by Christoffel symbols of the first kind: ``c(q, v)`` is quadratic in ``v``, so ``C = 1/2 dc/dv``."""
        vector = self.rigid_torque(q, v, self.constants(np.zeros(len(v))), gravity=False)
        return np.stack([_objects(derivative(vector, speed)) * 0.5 for speed in v], axis=1)

    def acceleration(self, q: Vector, v: Vector, torque: Vector) -> Vector:
        """``M^-1 (tau - c - g - friction)``, by ``M = L D L^T``; friction at the sliding sign of the speed."""
        n = self.robot.n_dof
        still = self.constants(np.zeros(n))
        M = self.mass_matrix(q)
        rest = torque - self.transmitted_torque(q, v, still) - self.friction(q, v, still, still)
        L, D = self.constants(np.eye(n)), self.constants(np.zeros(n))
        for j in range(n):
            D[j] = M[j, j] - sum((L[j, k] * L[j, k] * D[k] for k in range(j)), start=self.graph.constant(0.0))
            for i in range(j + 1, n):
                known = sum((L[i, k] * L[j, k] * D[k] for k in range(j)), start=self.graph.constant(0.0))
                L[i, j] = (M[i, j] - known) / D[j]
        x = rest.copy()
        for i in range(n):
            for k in range(i):
                x[i] = x[i] - L[i, k] * x[k]
        x = _objects([x[i] / D[i] for i in range(n)])
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                x[i] = x[i] - L[k, i] * x[k]
        return x

    def mass_matrix(self, q: Vector) -> Matrix:
        """Composite bodies: the force that a unit acceleration of each joint needs, carried to the joints below it."""
        joints, poses, n = self.robot.joints, self._poses(q), self.robot.n_dof
        composite = [self._body(i) for i in range(len(joints))]
        for i in range(len(joints) - 1, -1, -1):
            if (up := joints[i].parent) >= 0:
                m, h, tensor = _moved(poses[i], composite[i])
                whole = composite[up][2] + tensor
                composite[up] = composite[up][0] + m, composite[up][1] + h, whole
        M = self.constants(np.zeros((n, n)))
        basis = self.constants(np.eye(3))
        for i, joint in enumerate(joints):
            m, h, tensor = composite[i]
            if joint.kind == "floating":  # accelerations along and about the axes of the base
                for k, e in enumerate(basis):
                    self._fill_column(M, i, k, e * m, _cross(h, e), poses)
                    self._fill_column(M, i, 3 + k, _cross(e, h), tensor @ e, poses)
                continue
            turn, slide = self.constants(np.array([self.rotates[i], self.slides[i]]))
            f = _cross(basis[2], h) * turn + basis[2] * m * slide
            self._fill_column(M, i, self._dof(i), f, tensor @ basis[2] * turn + _cross(h, basis[2]) * slide, poses)
        M += self.constants(rotor_matrix(self.robot))
        return M

    def _fill_column(self, M: Matrix, i: int, column: int, f: Vector, n: Vector, poses: list[tuple[Matrix, Vector]]) -> None:
        joints = self.robot.joints
        while i >= 0:
            if joints[i].kind == "floating":
                M[:6, column] = M[column, :6] = [*f, *n]
            else:
                M[self._dof(i), column] = M[column, self._dof(i)] = self._along(i, f, n)
            f, n = _carried(poses[i], f, n)
            i = joints[i].parent

    def friction(self, q: Vector, v: Vector, a: Vector, load: Vector) -> Vector:
        """Every effect that is friction."""
        return self._effects([effect for effect in self.robot.effects if effect.is_friction], q, v, a, load)

    def _effects(self, effects: Sequence[Effect], q: Vector, v: Vector, a: Vector, load: Vector) -> Vector:
        robot = self.robot
        first = robot.n_dof - len(robot.driven)
        motion = (q[first + robot.floating :], v[first:], a[first:], load[first:])
        torque = self.constants(np.zeros(robot.n_dof))
        for effect, gain in effect_gains(robot):
            if effect not in effects:
                continue
            signals = symbolic_signals(self.graph, effect, *motion)
            for joint, column in zip(*np.nonzero(gain), strict=True):
                k = int(robot.driven[joint])
                torque[k] = torque[k] + signals[column] * float(gain[joint, column])
        return torque

    def _body(self, i: int) -> Body:
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = self.constants(self.inertials[i])
        return m, _objects([hx, hy, hz]), _objects([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    def _along(self, i: int, f: Vector, n: Vector) -> Expression:
        """The component of a force and moment that a joint's axis carries."""
        along: Expression = n[2] * self.rotates[i] + f[2] * self.slides[i]
        return along


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    return np.array(values, dtype=object)


def _cross(x: Vector, y: Vector) -> Vector:
    return _objects([x[r] * y[c] - x[c] * y[r] for r, c in ((1, 2), (2, 0), (0, 1))])


def _quaternion_rotation(quaternion: Vector) -> Matrix:
    x, y, z, w = quaternion
    s = 2.0 / (quaternion @ quaternion)

    def twice(a: Expression, b: Expression) -> Expression:
        product: Expression = s * (a * b)
        return product

    return _objects([
        [1.0 - (twice(y, y) + twice(z, z)), twice(x, y) - twice(z, w), twice(x, z) + twice(y, w)],
        [twice(x, y) + twice(z, w), 1.0 - (twice(x, x) + twice(z, z)), twice(y, z) - twice(x, w)],
        [twice(x, z) - twice(y, w), twice(y, z) + twice(x, w), 1.0 - (twice(x, x) + twice(y, y))],
    ])  # fmt: skip


def _rotational(w: Vector, b: Vector) -> Matrix:
    """``[b] + [w][w]``."""
    square = np.outer(w, w)
    U = square.copy()
    for r in range(3):
        U[r, r] = -(square[r - 2, r - 2] + square[r - 1, r - 1])
    for r, c, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        U[r, c] = square[r, c] - b[k]
        U[c, r] = square[c, r] + b[k]
    return U


def _moved(pose: tuple[Matrix, Vector], body: Body) -> Body:
    """``h' = R h + m p``; ``I' = R I R^T + (2 p.Rh + m p.p) 1 - p (Rh)^T - (Rh) p^T - m p p^T``."""
    (R, p), (m, h, tensor) = pose, body
    Rh = R @ h
    mp = p * m
    turned = R @ tensor @ R.T
    cross = p @ Rh * 2.0 + mp @ p
    moved = turned.copy()
    for r in range(3):
        for c in range(r, 3):
            off = p[r] * Rh[c] + Rh[r] * p[c] + mp[r] * p[c]
            moved[r, c] = moved[c, r] = (turned[r, c] + cross if r == c else turned[r, c]) - off
    return m, Rh + mp, moved


def _carried(pose: tuple[Matrix, Vector], f: Vector, n: Vector) -> tuple[Vector, Vector]:
    """A force and a moment on a body, in the frame of its parent."""
    R, p = pose
    turned = R @ f
    return turned, R @ n + _cross(p, turned)


def _frame_on_axis(joint: Joint) -> Array:
    """Pose in the body frame of a frame with its origin on the joint's axis and its z along it."""
    pose = np.eye(4)
    if joint.kind == "floating":
        return pose
    axis = joint.screw[:3] if joint.kind == "prismatic" else joint.screw[3:]
    pose[:3, 3] = axis_point(joint)
    k = int(np.argmax(np.abs(axis)))
    if abs(abs(axis[k]) - 1.0) < SNAP:  # along an axis of the body: a frame that only renames its axes keeps zeros
        sign = np.sign(axis[k])
        pose[:3, :3] = np.roll(np.eye(3), k + 1, axis=0)
        pose[:3, 1:3] *= sign
        return pose
    x = np.cross(np.eye(3)[np.argmin(np.abs(axis))], axis)
    x /= np.linalg.norm(x)
    pose[:3, :3] = np.column_stack([x, np.cross(axis, x), axis])
    return pose


def _group(joints: Sequence[Joint], placements: Sequence[Array], inertials: Array) -> None:
    """Count what is symmetric about each joint's axis to the link before it, from the tips to the base."""
    for i in range(len(joints) - 1, -1, -1):
        phi = inertials[i]
        if joints[i].kind == "prismatic":
            common = np.concatenate([np.zeros(4), phi[4:]])
        elif joints[i].kind == "floating" or pitch(joints[i]) != 0.0:
            continue
        else:
            common = np.zeros(10)
            along = 0.5 * (phi[4] + phi[6] - phi[9])  # the second moment along z
            common[[0, 3, 4, 6]] = phi[0], phi[3], along, along
        inertials[i] = phi - common
        if joints[i].parent >= 0:
            R, p = placements[i][:3, :3], placements[i][:3, 3]
            inertials[joints[i].parent] += change_of_frame(R, p) @ common


Call: TypeAlias = Callable[[str, Sequence[Array], tuple[int, ...]], Array]
"""Evaluates a function by name at states ``(states, ..)`` into an array of a shape."""


@dataclass(frozen=True, eq=False)
class Function:
    """One function: what it takes, what it fills and its purpose."""

    arguments: tuple[tuple[str, int], ...]
    output: str
    shape: tuple[int, ...]
    values: NDArray[np.object_]
    inputs: frozenset[str]
    purpose: str

    @property
    def size(self) -> int:
        """Numbers that it fills."""
        return int(np.prod(self.shape))

    def body(self, dialect: Dialect) -> list[str]:
        """Its code: inputs into locals ``q0 ..`` first, so that outputs may overwrite them, then the statements."""
        lines: list[str] = []
        for letter, size in self.arguments:
            used = [k for k in range(size) if f"{letter}{k}" in self.inputs]
            lines += [f"{dialect.local}{letter}{k} = {dialect.entry(letter, (k,))}{dialect.end}" for k in used]
            if not used and dialect.unused is not None:
                lines.append(dialect.unused.format(letter))
        places = (dialect.entry(self.output, place) for place in np.ndindex(self.shape))
        return lines + straight_line(dict(zip(places, self.values, strict=True)), dialect)


def robot_functions(robot: Robot) -> dict[str, Function]:
    """Every function of a robot, by its name."""
    symbols = SymbolicRobot.of(robot)
    (q, v, a), n = symbols.motion(), robot.n_dof
    still, load, torque = symbols.constants(np.zeros(n)), symbols.inputs("load", n), symbols.inputs("tau", n)
    carried = symbols.transmitted_torque(q, v, a)
    total = carried + symbols.rotor_torque(a) + symbols.friction(q, v, a, carried)
    position, velocity, acceleration, loads = ("q", robot.n_position), ("v", n), ("a", n), ("load", n)
    found = {
        "inverse_dynamics": _function(
            (position, velocity, acceleration),
            "tau",
            total,
            "tau = M(q) a + C(q, v) v + g(q) + friction: torque of a motion",
        ),
        "mass_matrix": _function((position,), "M", symbols.mass_matrix(q), "inertia matrix with rotor inertias"),
        "gravity": _function((position,), "tau", symbols.rigid_torque(q, still, still), "torque that holds against gravity"),
        "coriolis": _function(
            (position, velocity),
            "tau",
            symbols.rigid_torque(q, v, still, gravity=False),
            "Coriolis and centrifugal torque c(q, v) = C(q, v) v",
        ),
        "friction": _function(
            (position, velocity, acceleration, loads),
            "tau",
            symbols.friction(q, v, a, load),
            "friction and offsets; load is the torque that the joints transmit",
        ),
    }
    if not robot.floating:
        found["coriolis_matrix"] = _function(
            (position, velocity), "C", symbols.coriolis_matrix(q, v), "C(q, v) by Christoffel symbols: dM/dt - 2 C is skew"
        )
    if not load_dependent(found):
        found["forward_dynamics"] = _function(
            (position, velocity, ("tau", n)), "a", symbols.acceleration(q, v, torque), "acceleration under a torque"
        )
    return found


def load_dependent(functions: Mapping[str, Function]) -> bool:
    """Whether friction depends on the torque that the joints transmit."""
    return any(name.startswith("load") for name in functions["friction"].inputs)


def _function(arguments: Sequence[tuple[str, int]], output: str, values: NDArray[np.object_], purpose: str) -> Function:
    flat: NDArray[np.object_] = values.ravel()
    expressions: list[Expression] = flat.tolist()
    return Function(tuple(arguments), output, values.shape, flat, frozenset(inputs_of(expressions)), purpose)


def name_of(robot: str) -> str:
    """A robot's name as one that every language takes."""
    name = re.sub(r"\W+", "_", robot, flags=re.ASCII).strip("_") or "robot"
    return name if name[0].isalpha() else f"robot_{name}"
