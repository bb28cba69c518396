"""A robot's equations of motion in symbols: Newton-Euler and composite bodies, link by link.

Every body gets a frame whose z axis is its joint's, ``P' = A_parent^-1 P A``, so that a joint turns by ``Rz(q)`` or slides
along z. Torque does not change when what is symmetric about a joint's axis is counted to the link before it (Gautier and
Khalil's grouping): mass, first and second moment along the axis of a turning link and all second moments of a sliding one
become zero, and with them their products. With angular velocity ``w``, angular acceleration ``b``, linear acceleration
``a`` of a frame's origin less gravity, and ``U = [b] + [w][w]``, the forces on a body with mass ``m``, first moments ``h``
and second moments ``S = tr(I)/2 1 - I`` are

    f = m a + U h,        n = h x a + sum over its points of r x U r,   e.g. n_x = (U S)_zy - (U S)_yz + (h x a)_x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dynid.adapters.tree import axis_point, pitch
from dynid.arrays import Array
from dynid.export.expressions import Expression, Graph
from dynid.export.friction import symbolic_signals
from dynid.inertia import change_of_frame, pseudo_inertia
from dynid.robot.effects import Effect, Motion
from dynid.robot.joint import Joint
from dynid.robot.model import Robot
from dynid.robot.rotors import effect_gains, rotor_matrix

Vector: TypeAlias = list[Expression]
Matrix: TypeAlias = list[list[Expression]]

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
            placements.append(_snapped(above @ joint.placement @ frames[i]))
            into = np.linalg.inv(frames[i])
            inertials[i] = change_of_frame(into[:3, :3], into[:3, 3]) @ robot.parameters.inertials[i]
        rotates = tuple(float(joint.kind in ("revolute", "continuous")) for joint in robot.joints)
        slides = tuple(1.0 if joint.kind == "prismatic" else pitch(joint) for joint in robot.joints)
        _group(robot.joints, placements, inertials)
        return SymbolicRobot(robot, Graph(), tuple(placements), inertials, rotates, slides)

    # Motion -----------------------------------------------------------------------------------

    def _names(self, letter: str, n: int) -> Vector:
        return [self.graph.input(f"{letter}[{k}]") for k in range(n)]

    def positions(self) -> Vector:
        """The joint positions, as variables of the code."""
        return self._names("q", self.robot.n_position)

    def velocities(self) -> Vector:
        """The joint velocities, as variables of the code."""
        return self._names("v", self.robot.n_dof)

    def accelerations(self) -> Vector:
        """The joint accelerations, as variables of the code."""
        return self._names("a", self.robot.n_dof)

    def still(self) -> Vector:
        """No motion."""
        return [self.graph.zero] * self.robot.n_dof

    def _poses(self, q: Vector) -> list[tuple[Matrix, Vector]]:
        """Rotation and translation of every body in its parent."""
        g = self.graph
        poses: list[tuple[Matrix, Vector]] = []
        for i, joint in enumerate(self.robot.joints):
            R0, p0 = self._matrix(self.placements[i][:3, :3]), self._vector(self.placements[i][:3, 3])
            if joint.kind == "floating":
                turn = self._quaternion_rotation(q[3:7])
                poses.append((self._product(R0, turn), self._sum(p0, self._turned(R0, q[:3]))))
                continue
            angle = q[self._position(i)]
            if self.rotates[i]:
                c, s = g.call("cos", angle), g.call("sin", angle)
                zero, one = g.zero, g.one
                R = self._product(R0, [[c, g.negative(s), zero], [s, c, zero], [zero, zero, one]])
            else:
                R = R0
            if self.slides[i]:
                along = g.multiply(g.constant(self.slides[i]), angle)
                p0 = self._sum(p0, [g.multiply(row[2], along) for row in R0])
            poses.append((R, p0))
        return poses

    def _position(self, i: int) -> int:
        return i + 6 if self.robot.floating else i

    def _dof(self, i: int) -> int:
        return i + 5 if self.robot.floating and i > 0 else i

    def _quaternion_rotation(self, quaternion: Vector) -> Matrix:
        g = self.graph
        x, y, z, w = quaternion
        length = g.zero
        for part in quaternion:
            length = g.add(length, g.multiply(part, part))
        s = g.divide(g.constant(2.0), length)

        def twice(a: Expression, b: Expression) -> Expression:
            return g.multiply(s, g.multiply(a, b))

        def less(a: Expression, b: Expression) -> Expression:
            return g.subtract(g.one, g.add(a, b))

        return [
            [less(twice(y, y), twice(z, z)), g.subtract(twice(x, y), twice(z, w)), g.add(twice(x, z), twice(y, w))],
            [g.add(twice(x, y), twice(z, w)), less(twice(x, x), twice(z, z)), g.subtract(twice(y, z), twice(x, w))],
            [g.subtract(twice(x, z), twice(y, w)), g.add(twice(y, z), twice(x, w)), less(twice(x, x), twice(y, y))],
        ]

    # Equations --------------------------------------------------------------------------------

    def transmitted_torque(self, q: Vector, v: Vector, a: Vector) -> Vector:
        """Rigid bodies, rotors and what else is no friction."""
        g, robot = self.graph, self.robot
        torque = self.rigid_torque(q, v, a)
        still = np.zeros((1, len(robot.driven)))
        others = [
            effect
            for effect in robot.effects
            if not effect.is_friction and effect.momentum_signals(Motion(still, still, still)) is None
        ]
        torque = [g.add(x, y) for x, y in zip(torque, self._effects(others, q, v, a, torque), strict=True)]
        for (row, column), value in np.ndenumerate(rotor_matrix(self.robot)):
            torque[row] = g.add(torque[row], g.multiply(g.constant(value), a[column]))
        return torque

    def rigid_torque(self, q: Vector, v: Vector, a: Vector, *, gravity: bool = True) -> Vector:
        """Newton-Euler: outward for motion, inward for forces."""
        g, joints = self.graph, self.robot.joints
        poses = self._poses(q)
        down = self._vector(-self.robot.gravity if gravity else np.zeros(3))
        nothing = [g.zero] * 3
        w: list[Vector] = []
        b: list[Vector] = []
        acceleration: list[Vector] = []
        U: list[Matrix] = []
        force: list[Vector] = []
        moment: list[Vector] = []
        for i, joint in enumerate(joints):
            R, p = poses[i]
            up = joint.parent
            w_up = self._turned_back(R, w[up]) if up >= 0 else nothing
            b_up = self._turned_back(R, b[up]) if up >= 0 else nothing
            a_up = self._sum(acceleration[up], self._turned(U[up], p)) if up >= 0 else down
            a_up = self._turned_back(R, a_up)
            if joint.kind == "floating":
                w_i, b_i = v[3:6], a[3:6]
                a_i = self._sum(a_up, self._sum(a[:3], self._cross(w_i, v[:3])))
            else:
                speed, rate = v[self._dof(i)], a[self._dof(i)]
                turn, slide = g.constant(self.rotates[i]), g.constant(self.slides[i])
                along_z = [g.zero, g.zero, g.multiply(turn, speed)]
                w_i = self._sum(w_up, along_z)
                b_i = self._sum(b_up, self._sum(self._cross(w_up, along_z), [g.zero, g.zero, g.multiply(turn, rate)]))
                sliding = [g.zero, g.zero, g.multiply(slide, speed)]
                twice = [g.multiply(g.constant(2.0), part) for part in self._cross(w_up, sliding)]
                a_i = self._sum(a_up, self._sum(twice, [g.zero, g.zero, g.multiply(slide, rate)]))
            w.append(w_i)
            b.append(b_i)
            acceleration.append(a_i)
            U.append(self._rotational(w_i, b_i))
            f, n = self._newton_euler(i, w_i, a_i, U[i])
            force.append(f)
            moment.append(n)
        torque = [g.zero] * self.robot.n_dof
        for i in range(len(joints) - 1, -1, -1):
            if joints[i].kind == "floating":
                torque[:6] = [*force[i], *moment[i]]
            else:
                torque[self._dof(i)] = self._along(i, force[i], moment[i])
            if joints[i].parent >= 0:
                f, n = self._carried(poses[i], force[i], moment[i])
                up = joints[i].parent
                force[up], moment[up] = self._sum(force[up], f), self._sum(moment[up], n)
        return torque

    def _newton_euler(self, i: int, w: Vector, a: Vector, U: Matrix) -> tuple[Vector, Vector]:
        g = self.graph
        m, h, _ = self._body(i)
        f = self._sum([g.multiply(m, part) for part in a], self._turned(U, h))
        S = self._matrix(pseudo_inertia(self.inertials[i])[:3, :3])
        n = self._cross(h, a)
        for x in range(3):
            y, z = (x + 1) % 3, (x + 2) % 3
            # U_zz - U_yy = w_z^2 - w_y^2
            difference = g.subtract(g.multiply(w[z], w[z]), g.multiply(w[y], w[y]))
            ahead = self._dot([U[z][x], U[z][y], difference], [S[x][y], S[y][y], S[y][z]])
            behind = self._dot([U[y][x], U[y][z]], [S[x][z], S[z][z]])
            n[x] = g.add(n[x], g.subtract(ahead, behind))
        return f, n

    def _rotational(self, w: Vector, b: Vector) -> Matrix:
        """``[b] + [w][w]``."""
        g = self.graph
        square = [[g.multiply(w[r], w[c]) for c in range(3)] for r in range(3)]
        U = [[square[r][c] for c in range(3)] for r in range(3)]
        for r in range(3):
            other = [square[c][c] for c in range(3) if c != r]
            U[r][r] = g.negative(g.add(*other))
        for r, c, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            U[r][c] = g.subtract(square[r][c], b[k])
            U[c][r] = g.add(square[c][r], b[k])
        return U

    def mass_matrix(self, q: Vector) -> Matrix:
        """Composite bodies: the force that a unit acceleration of each joint needs, carried to the joints below it."""
        g, joints = self.graph, self.robot.joints
        poses = self._poses(q)
        composite = [self._body(i) for i in range(len(joints))]
        for i in range(len(joints) - 1, -1, -1):
            if joints[i].parent >= 0:
                up = joints[i].parent
                composite[up] = self._merged(composite[up], self._moved(poses[i], composite[i]))
        n = self.robot.n_dof
        M = [[g.zero] * n for _ in range(n)]
        for i, joint in enumerate(joints):
            forces = self._forces_of_base if joint.kind == "floating" else self._force_of_joint
            for column, f, moment in forces(i, composite[i]):
                self._fill_column(M, i, column, f, moment, poses)
        for (row, column), value in np.ndenumerate(rotor_matrix(self.robot)):
            M[row][column] = g.add(M[row][column], g.constant(value))
        return M

    def _basis(self) -> Matrix:
        g = self.graph
        return [[g.one if r == c else g.zero for r in range(3)] for c in range(3)]

    def _forces_of_base(self, i: int, body: tuple[Expression, Vector, Matrix]) -> list[tuple[int, Vector, Vector]]:
        """Column, force and moment of unit accelerations of a floating base along and about its axes."""
        m, h, tensor = body
        found: list[tuple[int, Vector, Vector]] = []
        for k, e in enumerate(self._basis()):
            found.append((k, [self.graph.multiply(m, part) for part in e], self._cross(h, e)))
            found.append((3 + k, self._cross(e, h), self._turned(tensor, e)))
        return found

    def _force_of_joint(self, i: int, body: tuple[Expression, Vector, Matrix]) -> list[tuple[int, Vector, Vector]]:
        """Column, force and moment of a unit acceleration of a joint about or along its own axis."""
        g, (m, h, tensor), z = self.graph, body, self._basis()[2]
        turn, slide = g.constant(self.rotates[i]), g.constant(self.slides[i])
        f = self._sum(
            [g.multiply(turn, part) for part in self._cross(z, h)],
            [g.multiply(slide, g.multiply(m, part)) for part in z],
        )
        moment = self._sum(
            [g.multiply(turn, part) for part in self._turned(tensor, z)],
            [g.multiply(slide, part) for part in self._cross(h, z)],
        )
        return [(self._dof(i), f, moment)]

    def _fill_column(self, M: Matrix, i: int, column: int, f: Vector, n: Vector, poses: list[tuple[Matrix, Vector]]) -> None:
        joints = self.robot.joints
        while i >= 0:
            if joints[i].kind == "floating":
                for row, value in enumerate([*f, *n]):
                    M[row][column] = M[column][row] = value
            else:
                M[self._dof(i)][column] = M[column][self._dof(i)] = self._along(i, f, n)
            f, n = self._carried(poses[i], f, n)
            i = joints[i].parent

    def friction(self, q: Vector, v: Vector, a: Vector, load: Vector) -> Vector:
        """Every effect that is friction."""
        return self._effects([effect for effect in self.robot.effects if effect.is_friction], q, v, a, load)

    def _effects(self, effects: Sequence[Effect], q: Vector, v: Vector, a: Vector, load: Vector) -> Vector:
        robot, g = self.robot, self.graph
        first = robot.n_dof - len(robot.driven)
        motion = (q[first + robot.floating :], v[first:], a[first:], load[first:])
        torque = [g.zero] * robot.n_dof
        for effect, gain in effect_gains(robot):
            if effect not in effects:
                continue
            signals = symbolic_signals(g, effect, *motion)
            for joint, column in zip(*np.nonzero(gain), strict=True):
                k = int(robot.driven[joint])
                torque[k] = g.add(torque[k], g.multiply(g.constant(float(gain[joint, column])), signals[column]))
        return torque

    # Bodies -----------------------------------------------------------------------------------

    def _body(self, i: int) -> tuple[Expression, Vector, Matrix]:
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = self._vector(self.inertials[i])
        return m, [hx, hy, hz], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]

    def _moved(
        self, pose: tuple[Matrix, Vector], body: tuple[Expression, Vector, Matrix]
    ) -> tuple[Expression, Vector, Matrix]:
        """``h' = R h + m p``; ``I' = R I R^T + (2 p.Rh + m p.p) 1 - p (Rh)^T - (Rh) p^T - m p p^T``."""
        g = self.graph
        (R, p), (m, h, tensor) = pose, body
        Rh = self._turned(R, h)
        mp = [g.multiply(m, part) for part in p]
        half = self._product(R, tensor)
        turned = [[self._dot(half[r], R[c]) for c in range(3)] for r in range(3)]
        cross = g.add(g.multiply(g.constant(2.0), self._dot(p, Rh)), self._dot(mp, p))
        moved = [[g.zero] * 3 for _ in range(3)]
        for r in range(3):
            for c in range(r, 3):
                off = g.add(g.add(g.multiply(p[r], Rh[c]), g.multiply(Rh[r], p[c])), g.multiply(mp[r], p[c]))
                value = g.subtract(g.add(turned[r][c], cross) if r == c else turned[r][c], off)
                moved[r][c] = moved[c][r] = value
        return m, self._sum(Rh, mp), moved

    def _merged(
        self, one: tuple[Expression, Vector, Matrix], other: tuple[Expression, Vector, Matrix]
    ) -> tuple[Expression, Vector, Matrix]:
        g = self.graph
        tensor = [[g.zero] * 3 for _ in range(3)]
        for r in range(3):
            for c in range(r, 3):
                tensor[r][c] = tensor[c][r] = g.add(one[2][r][c], other[2][r][c])
        return g.add(one[0], other[0]), self._sum(one[1], other[1]), tensor

    def _carried(self, pose: tuple[Matrix, Vector], f: Vector, n: Vector) -> tuple[Vector, Vector]:
        R, p = pose
        turned = self._turned(R, f)
        return turned, self._sum(self._turned(R, n), self._cross(p, turned))

    def _along(self, i: int, f: Vector, n: Vector) -> Expression:
        g = self.graph
        return g.add(g.multiply(g.constant(self.rotates[i]), n[2]), g.multiply(g.constant(self.slides[i]), f[2]))

    # Vectors ----------------------------------------------------------------------------------

    def _vector(self, values: Array) -> Vector:
        return [self.graph.constant(float(value)) for value in values]

    def _matrix(self, values: Array) -> Matrix:
        return [self._vector(row) for row in values]

    def _sum(self, x: Vector, y: Vector) -> Vector:
        return [self.graph.add(a, b) for a, b in zip(x, y, strict=True)]

    def _dot(self, x: Vector, y: Vector) -> Expression:
        total = self.graph.zero
        for a, b in zip(x, y, strict=True):
            total = self.graph.add(total, self.graph.multiply(a, b))
        return total

    def _cross(self, x: Vector, y: Vector) -> Vector:
        g = self.graph
        return [g.subtract(g.multiply(x[r], y[c]), g.multiply(x[c], y[r])) for r, c in ((1, 2), (2, 0), (0, 1))]

    def _turned(self, R: Matrix, x: Vector) -> Vector:
        return [self._dot(row, x) for row in R]

    def _turned_back(self, R: Matrix, x: Vector) -> Vector:
        return [self._dot([R[r][c] for r in range(3)], x) for c in range(3)]

    def _product(self, A: Matrix, B: Matrix) -> Matrix:
        return [[self._dot(row, [B[k][c] for k in range(3)]) for c in range(3)] for row in A]


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


def _snapped(pose: Array) -> Array:
    R = pose[:3, :3]
    R[np.abs(R) < SNAP] = 0.0
    for sign in (1.0, -1.0):
        R[np.abs(R - sign) < SNAP] = sign
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
